"""Make pages quick to load, and let no script run but their own.

What no part of a page needs, it does not load. Scripts wait until the page is
there, pictures until the reader is near, and so does the model that some of
them show: a notebook has it in its output, and the site in one file. Each page
says by a content security policy what it may load; its inline scripts are
named by their hashes, so that no other one runs.
"""

import base64
import hashlib
import re
from pathlib import Path

from docutils import nodes
from sphinx.jinja2glue import BuiltinTemplateLoader
from sphinx.util.images import get_image_size

POLICY = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-hashes'",  # also for inline handlers
    "style-src": "'self' 'unsafe-inline'",  # styles of tables and formulas
    "img-src": "'self' data:",
    "font-src": "'self' data:",  # the theme's is not used
    "connect-src": "'self'",  # the search shows an extract of each page
    "base-uri": "'none'",
    "form-action": "'self'",
}
INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.S)
# Of the theme's buttons. On every page, as the search reads pages, too.
HANDLERS = ["toggleFullScreen()", "window.print()"]
# Names, operators, brackets and spaces, which have no colour of their own.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|nb|o|p|w)">([^<]*)</span>')
# As the package writes it, where a picture gets a model.
MODEL = re.compile(r"<script>(window\.namesModel = .*?)</script>", re.S)
# Files, and what on a page needs them.
NEEDED_BY = {
    "math-font": "<math",
    "sphinx-design": 'class="sd-',
    "design-tabs": 'class="sd-',
    "mystnb": 'class="cell',
    "graphviz": 'class="graphviz',
}
PICTURE = re.compile(r'<img(?=[^>]*\ssrc="[^"]*_images/([^"/]+)")')


class PagesWithPolicy(BuiltinTemplateLoader):
    def render(self, template, context):
        page = super().render(template, context)
        rules = dict(POLICY)
        rules["script-src"] += hashes(INLINE.findall(page) + HANDLERS)
        said = "; ".join(f"{name} {value}" for name, value in rules.items())
        policy = (
            f'<meta http-equiv="Content-Security-Policy" content="{said}">'
        )
        return page.replace("<head>", f"<head>\n    {policy}", 1)


def hashes(scripts):
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    texts = {base64.b64encode(digest).decode() for digest in digests}
    return "".join(f" 'sha256-{text}'" for text in sorted(texts))


def read_aloud(app, doctree):
    """Leave in an alt text what is read, without the claims in comments."""
    for image in doctree.findall(nodes.image):
        image["alt"] = re.sub(r"<!--.*?-->", "", image.get("alt", ""))


def lighten(app, name, template, context, doctree):
    # Without a file's name are settings for parts that the book does without.
    context["script_files"] = [
        script
        for script in context["script_files"]
        # Sphinx marks the words of a search in the bars, too, and for ever.
        if script.filename and "sphinx_highlight" not in script.filename
    ]
    for kind in ("script_files", "css_files"):
        context[kind] = [
            file
            for file in context[kind]
            if all(
                part not in str(file.filename) or need in context["body"]
                for part, need in NEEDED_BY.items()
                if "body" in context
            )
        ]
    for script in context["script_files"]:
        script.attributes["defer"] = "defer"
    sources = {file: path for path, file in app.builder.images.items()}

    def place(picture):
        """Keep the room that a picture will take."""
        width, height = get_image_size(app.srcdir / sources[picture[1]])
        return f'<img loading="lazy" width="{width}" height="{height}"'

    def put_aside(model):
        file = Path(app.outdir) / "_static" / "names_model.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(model[1] + "\n", "utf-8")
        return ""

    if "body" in context:
        body = MODEL.sub(put_aside, context["body"])
        context["body"] = PICTURE.sub(place, PLAIN_CODE.sub(r"\1", body))


def setup(app):
    app.connect("doctree-read", read_aloud)
    # After the theme and other extensions, which add scripts.
    app.connect("html-page-context", lighten, priority=900)
