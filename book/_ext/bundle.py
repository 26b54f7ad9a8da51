"""Give the site one script and one style sheet of its own.

They are written as files of their own, a topic each; a reader's browser asks
once for all of them.
"""

import re
from pathlib import Path

OURS = Path(__file__).parents[1] / "_static"
SCRIPTS = "tab_stops progress side_roads contents framework beside".split()
STYLES = "text-font figure icons math custom".split()
# Whole lines of comments, and what a line begins with.
SAID = re.compile(r"(?ms)^ *//[^\n]*\n|/\*.*?\*/|^ +")
PARTS = {
    "book.js": [f"{name}.js" for name in SCRIPTS],
    "book.css": [f"{name}.css" for name in STYLES],
}


def replace(app, name, template, context, doctree):
    for kind, bundle in zip(("script_files", "css_files"), PARTS, strict=True):
        kept, first = [], None
        for file in context[kind]:
            if Path(str(file.filename)).name in PARTS[bundle]:
                first = first or file
            else:
                kept.append(file)
        if first:
            attributes = dict(first.attributes)
            kept.append(type(first)(f"_static/{bundle}", **attributes))
        context[kind] = kept


def write(app):
    """Write both before the pages, which name them with a checksum."""
    static = Path(app.outdir, "_static")
    for bundle, names in PARTS.items():
        files = [OURS / name for name in names]
        files = [f if f.exists() else static / f.name for f in files]
        texts = [SAID.sub("", file.read_text("utf-8")) for file in files]
        (static / bundle).write_text("\n".join(texts), "utf-8")


def setup(app):
    # Behind those that write text-font.css and figure.css.
    app.connect("builder-inited", write, priority=900)
    # Behind lean_pages.py, which sorts out what a page needs.
    app.connect("html-page-context", replace, priority=960)
