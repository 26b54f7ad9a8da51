"""Fold side roads, the setup and the other mistakes; name folded cells.

A side road is a section whose heading begins with `Side road: `. The heading
of such a section and its first paragraph, which says what is in it, are what a
reader clicks on (not a paragraph with a link): one line while it is folded, so
that several in a row are a list. side_roads.js opens what a link leads to, and
remembers the choice between a first reading and everything.

A cell tagged `hide-input` whose first line is `# @title Solution` unfolds at
a click on "Solution", as in Colab. A check of the book, outside of the
exercises, is a small mark at what it proves.
"""

import re

from docutils import nodes
from sphinx import addnodes

ASIDE = re.compile("Side road: |(?:Setup|The other mistakes)$")
MARK = "# @title "
CHECK = "Check: "
TWIN = re.compile(r" \((PyTorch|TensorFlow)\)$")  # the tab says so


def name_cells(app, doctree):
    for cell in doctree.findall(nodes.container):
        first = cell.astext().strip().partition("\n")[0]
        if "hide_mode" in cell and first.startswith(MARK):
            title = TWIN.sub("", first.removeprefix(MARK))
            if title.startswith(CHECK) and not is_exercise(cell):
                title = f"✓ checked: {title.removeprefix(CHECK)}"
                cell["classes"].append("checked")
            cell["prompt_show"] = cell["prompt_hide"] = title


def is_exercise(node):
    while node := node.parent:
        if "exercises" in node.get("ids", []):
            return True
    return False


def fold_sections(app, doctree):
    for section in [*doctree.findall(nodes.section)]:
        parts = section.children
        if ASIDE.match(parts[0].astext()):
            # A link within what a reader clicks on would be no use.
            clicks = 2 if len(parts) > 1 and not has_link(parts[1]) else 1
            section.children = [
                html('<details class="side-road"><summary>'),
                *parts[:clicks],
                html("</summary>"),
                *parts[clicks:],
                html("</details>"),
            ]


def html(text):
    return nodes.raw("", text, format="html")


def has_link(part):
    kinds = nodes.reference, addnodes.pending_xref
    return any(isinstance(node, kinds) for node in part.findall())


def setup(app):
    app.connect("doctree-read", name_cells)
    # Late: nothing looks for siblings any more.
    app.connect("doctree-read", fold_sections, priority=900)
