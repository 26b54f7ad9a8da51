"""Make long pages short: a field that filters, folded arguments."""

from docutils import nodes
from sphinx import addnodes

REFERENCE = "book/reference"
LONG = f"{REFERENCE}_", "book/symptoms"
SHOWN, MOST = 2, 5


def add_filter(app, name, template, context, doctree):
    if name.startswith(LONG):
        app.add_js_file("filter.js")


def fold_arguments(app, doctree, page):
    """Show the first arguments of many; a click shows all."""
    for entry in [*doctree.findall(addnodes.desc_parameterlist)]:
        names = [part.astext().partition(":")[0] for part in entry]
        names = [name for name in names if name != "*"]
        if page.startswith(REFERENCE) and len(names) > MOST:
            some = ", ".join(names[:SHOWN])
            said = f"({some} and {len(names) - SHOWN} more)"
            fold = f'<details class="arguments"><summary>{said}</summary>'
            entry.replace_self([html(fold), entry, html("</details>")])


def html(text):
    return nodes.raw("", text, format="html")


def setup(app):
    app.connect("html-page-context", add_filter)
    app.connect("doctree-resolved", fold_arguments)
