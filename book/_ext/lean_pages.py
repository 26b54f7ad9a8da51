"""Make pages quick to load, and let no script run but their own.

Scripts wait until the page is there, pictures until the reader is near, and so
does the model that some of them show: a notebook has it in its output, and the
site in one file. Each page says by a content security policy what it may load;
its inline scripts are named by their hashes, so that no other one runs.
"""

import base64
import hashlib
import re
import shutil
from pathlib import Path

from sphinx.jinja2glue import BuiltinTemplateLoader
from sphinx.util.images import get_image_size

POLICY = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-hashes'",  # also for inline handlers
    "style-src": "'self' 'unsafe-inline'",  # styles of tables and formulas
    "img-src": "'self' data:",
    "font-src": "data:",
    "connect-src": "'self'",  # the search shows an extract of each page
    "base-uri": "'none'",
    "form-action": "'self'",
}
INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.S)
# Of the theme's buttons. On every page, as the search reads pages, too.
HANDLERS = ["toggleFullScreen()", "window.print()"]
# Names, operators, brackets and spaces, which have no colour of their own.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|nb|o|p|w)">([^<]*)</span>')
# As show_figure writes it, where it gets a model.
MODEL = re.compile(r"<script>(window\.namesModel = .*?)</script>", re.S)
PICTURE = re.compile(r'<img(?=[^>]*\ssrc="[^"]*_images/([^"/]+)")')


class PagesWithPolicy(BuiltinTemplateLoader):
    def render(self, template, context):
        page = super().render(template, context)
        return page.replace("<head>", f"<head>\n    {policy(page)}", 1)


def policy(page):
    """Return the meta element that allows a page what it needs itself."""
    rules = dict(POLICY)
    rules["script-src"] += hashes(INLINE.findall(page) + HANDLERS)
    content = "; ".join(f"{name} {value}" for name, value in rules.items())
    return f'<meta http-equiv="Content-Security-Policy" content="{content}" />'


def hashes(scripts):
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    texts = {base64.b64encode(digest).decode() for digest in digests}
    return "".join(f" 'sha256-{text}'" for text in sorted(texts))


def lighten(app, name, template, context, doctree):
    # Without a file's name are settings for parts that the book does without.
    context["script_files"] = [
        script
        for script in context["script_files"]
        # Sphinx marks the words of a search in the bars, too, and for ever.
        if script.filename and "sphinx_highlight" not in script.filename
    ]
    for script in context["script_files"]:
        script.attributes["defer"] = "defer"
    if "body" in context:
        sources = {file: path for path, file in app.builder.images.items()}

        def place(picture):
            """Keep the room that a picture will take."""
            path = app.srcdir / sources[picture[1]]
            width, height = get_image_size(path)
            return f'<img loading="lazy" width="{width}" height="{height}"'

        def put_aside(model):
            file = Path(app.outdir) / "_static" / "names_model.js"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(model[1] + "\n", "utf-8")
            return ""

        body = MODEL.sub(put_aside, context["body"])
        body = PLAIN_CODE.sub(r"\1", body)
        context["body"] = PICTURE.sub(place, body)


def lighten_files(app, exception):
    static = Path(app.outdir) / "_static"
    if exception or not (static / "scripts").exists():
        return
    # The icons in use are in icons.css.
    for file in static.glob("scripts/fontawesome.*"):
        file.unlink()
    shutil.rmtree(static / "vendor" / "fontawesome")


def setup(app):
    # After the theme and other extensions, which add scripts.
    app.connect("html-page-context", lighten, priority=900)
    # Before lean_styles.py reads which words the scripts hold.
    app.connect("build-finished", lighten_files, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
