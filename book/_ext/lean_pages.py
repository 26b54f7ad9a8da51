"""Make pages quick to load, and let no script run but their own.

What no part of a page needs, it does not load. Scripts wait until the page is
there, pictures until the reader is near, and so does the model that some of
them show: a notebook has it in its output, and the site in one file, as it has
the style of moving pictures. Each page says by a content security policy what
it may load; its inline scripts are named by their hashes, so that no other one
runs.
"""

import base64
import hashlib
import re
from pathlib import Path

import imagesize
from docutils import nodes
from PIL import Image
from sphinx.jinja2glue import BuiltinTemplateLoader

from tools.settings import ROOT, chapters

# Themes bring styles for all that somebody might use: half is icons.
THEMES = ["styles/pydata-sphinx-theme.css", "sphinx-design.min.css"]
CLASSES_ALONE = re.compile(r"(?<=[{}])(?:\.[\w-]+(?:::?before)?,?)+\{[^{}]*\}")
POLICY = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-hashes'",  # also for inline handlers
    "style-src": "'self' 'unsafe-inline'",  # styles of tables and formulas
    "img-src": "'self' data:",
    "font-src": "'self' data:",  # the theme's is not used
    "base-uri": "'none'",
    "form-action": "'self'",
}
INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.S)
# Sphinx marks the words of a search in the bars, too, and for ever; and it
# has keys for a search and an index of its own.
UNUSED = re.compile("sphinx_highlight|doctools")
IDLE = re.compile(r"(?m)^ +|^ *//[^\n]*\n")  # of a script
# Of the theme's buttons. On every page, as the search reads pages, too.
HANDLERS = ["toggleFullScreen()", "window.print()"]
# Names, operators, brackets and spaces, which have no colour of their own.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|nb|o|p|w)">([^<]*)</span>')
# Names of the four roles, which have the colours of their pictures.
ROLE = re.compile(
    r'<span class="n">((query|key|value|output)(?:_proj)?(?:_tf)?)</span>'
)
DPI = 100  # of a figure; one that is drawn denser is not shown larger
# As the package writes it, where a picture gets a model.
MODEL = re.compile(r"<script>(window\.namesModel = .*?)</script>", re.S)
STYLE = re.compile(r'(?<=class="moving">)<style>.*?</style>', re.S)
FIGURES = ROOT / "cellbycell" / "figures"
# What each moving picture brings along in a notebook, and the site has once.
TOOLS = (FIGURES / "figure.js").read_text("utf-8").strip()
TOOLS_NAMES = ", ".join(re.findall(r"(?m)^const (\w+)", TOOLS))
TOOLS_CALL = f"const {{{TOOLS_NAMES}}} = figureTools(SHADES, SIGNED, data);"
TOOLS_FILE = "figure_tools.js"
# Files, and what on a page needs them.
NEEDED_BY = {
    "math-font": "<math",
    "sphinx-design": 'class="sd-',
    "design-tabs": 'class="sd-',
    "mystnb": 'class="cell',
    "graphviz": 'class="graphviz',
    "figure_tools": 'class="moving"',
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


def tidy_images(app, doctree):
    """Leave an image its alt text, without the claims in comments.

    Its size is that of its file: a size of its own would be a link, too.
    """
    for image in doctree.findall(nodes.image):
        image.attributes.pop("width", None)
        image.attributes.pop("height", None)
        image["alt"] = re.sub(r"<!--.*?-->", "", image.get("alt", ""))


def lighten(app, name, template, context, doctree):
    # Without a file's name are settings for parts that the book does without.
    context["script_files"] = [
        script
        for script in context["script_files"]
        if script.filename and not UNUSED.search(script.filename)
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
        # The scripts of pictures stand in the page, and need their tools.
        if TOOLS_FILE not in str(script.filename):
            script.attributes["defer"] = "defer"
    sources = {file: path for path, file in app.builder.images.items()}

    def place(picture):
        """Keep the room that a picture will take."""
        width, height = shown_size(app.srcdir / sources[picture[1]])
        return f'<img loading="lazy" width="{width}" height="{height}"'

    def put_aside(model):
        write_static(app, "names_model.js", model[1] + "\n")
        return ""

    if "body" in context:
        body = STYLE.sub("", MODEL.sub(put_aside, context["body"]))
        body = body.replace(TOOLS, TOOLS_CALL)
        body = INLINE.sub(lambda code: IDLE.sub("", code[0]), body)
        # It would be read instead of the title.
        body = body.replace(' aria-label="Toggle hidden content"', "")
        if name in chapters():
            body = ROLE.sub(r'<span class="role-\2">\1</span>', body)
        context["body"] = PICTURE.sub(place, PLAIN_CODE.sub(r"\1", body))


def write_once(app):
    """Write what all moving pictures of the site share."""
    style = (FIGURES / "figure.css").read_text("utf-8")
    write_static(app, "figure.css", style)
    tools = IDLE.sub("", TOOLS)
    write_static(
        app,
        TOOLS_FILE,
        f"const figureTools = (SHADES, SIGNED, data) => {{\n{tools}\n"
        f"return {{{TOOLS_NAMES}}};\n}};\n",
    )


def write_static(app, name, text):
    file = Path(app.outdir) / "_static" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def shown_size(path):
    """Return the width and the height at which a picture is shown."""
    dpi, _ = imagesize.getDPI(path)  # -1 if the file does not say
    return [
        round(pixels * DPI / max(dpi, DPI)) for pixels in imagesize.get(path)
    ]


def leave_out_styles(app, exception):
    """Drop the rules for classes that no page and no script names.

    And let one style stand where it would be asked for.
    """
    if exception or app.builder.format != "html":
        return
    static, names = Path(app.outdir, "_static"), set()
    for file in [*Path(app.outdir).rglob("*.html"), *static.rglob("*.js")]:
        names.update(re.findall(r"[\w-]+", file.read_text("utf-8")))

    def kept(rule):
        classes = re.findall(r"\.([\w-]+)", rule[0].partition("{")[0])
        return rule[0] if names.intersection(classes) else ""

    # The theme's first style is one line, which asks for this one.
    basic = (static / "basic.css").read_text("utf-8")
    first = static / "styles" / "theme.css"
    first.write_text(basic.replace("url(", "url(../"), "utf-8")
    for file in static.glob("mystnb*.css"):
        style = file.read_text("utf-8")
        style = re.sub(r"(?s)/\*.*?\*/|\n\s*", "", style).replace(" {", "{")
        file.write_text(style, "utf-8")
    for theme in THEMES:
        style = (static / theme).read_text("utf-8")
        (static / theme).write_text(CLASSES_ALONE.sub(kept, style), "utf-8")


def pack_pictures(app, exception):
    """Give each plot a palette: it takes a third of the bytes."""
    for file in Path(app.outdir).glob("_images/*.png"):
        with Image.open(file) as plot:
            if plot.mode == "RGBA" and not exception:  # else it has one
                if plot.getextrema()[3][0] == 255:  # nothing shines through
                    plot = plot.convert("RGB")
                packed = plot.quantize(256)
                dpi = plot.info.get("dpi", (DPI, DPI))
                packed.save(file, optimize=True, dpi=dpi)


def setup(app):
    app.connect("build-finished", leave_out_styles)
    app.connect("build-finished", pack_pictures)
    app.add_css_file("figure.css", priority=400)  # custom.css has more to say
    app.add_js_file(TOOLS_FILE)
    app.connect("builder-inited", write_once)
    app.connect("doctree-read", tidy_images)
    # After the theme and other extensions, which add scripts.
    app.connect("html-page-context", lighten, priority=900)
