"""Fold side roads, the setup and the other mistakes; name folded cells.

A side road is a section whose heading begins with `Side road: `. The heading
of such a section and its first paragraph, which says what is in it, are what a
reader clicks on (not a paragraph with a link): one line while it is folded.
Several in a row are a group, under a line that counts them. side_roads.js
opens what a link leads to, and remembers the choice between a first reading
and everything.

A cell tagged `hide-input` whose first line is `# @title Solution` unfolds at
a click on "Solution", as in Colab. Of a picture or a table the title is the
caption: it stands below, and its code unfolds below that. A check of the book,
outside of the exercises, is a small mark at what it proves.
"""

import re
from itertools import groupby

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

ROAD = "Side road: "
ASIDE = re.compile(f"{ROAD}|(?:Setup|The other mistakes)$")
MARK = "# @title "
CHECK = "Check: "
SHOWN = re.compile(r"(?:Interactive|Figure|Table)(?: and check)?: (.)")
STUB = re.compile(r"Exercise \d+: not attempted yet\.")
TWIN = re.compile(r" \((PyTorch|TensorFlow)\)$")  # the tab says so


def name_cells(app, doctree):
    for cell in doctree.findall(nodes.container):
        first = cell.astext().strip().partition("\n")[0]
        if "hide_mode" in cell and first.startswith(MARK):
            title = TWIN.sub("", first.removeprefix(MARK))
            if title.startswith(CHECK) and not is_exercise(cell):
                title = f"✓ checked: {title.removeprefix(CHECK)}"
                cell["classes"].append("checked")
            elif SHOWN.match(title):
                title = SHOWN.sub(lambda first: first[1].upper(), title)
                cell["classes"].append("captioned")
            cell["prompt_show"] = cell["prompt_hide"] = title


def leave_out_stubs(app, doctree):
    """Drop what the check of an untouched exercise says: the reader knows."""
    for output in [*doctree.findall(is_output)]:
        if STUB.fullmatch(output.astext().strip("'\n ")):
            output.parent.remove(output)


def is_output(node):
    return getattr(node, "attributes", {}).get("nb_element") == (
        "cell_code_output"
    )


def is_exercise(node):
    while node := node.parent:
        if "exercises" in node.get("ids", []):
            return True
    return False


class CaptionsBelow(SphinxPostTransform):
    # MyST-NB has folded the code: what it draws comes before it.
    default_priority = 201

    def run(self):
        for cell in self.document.findall(nodes.container):
            if "captioned" in cell["classes"]:
                cell.children.reverse()


def fold_sections(app, doctree):
    sections = doctree.findall(nodes.section)
    for parent in dict.fromkeys([section.parent for section in sections]):
        parent[:] = [*with_groups(parent.children)]
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


def with_groups(siblings):
    """Yield the siblings, side roads that follow each other in a group."""
    for is_road, run in groupby(siblings, is_side_road):
        run = list(run)
        if is_road and len(run) > 1:
            for section in run:
                set_apart(section[0])
            count = f"<p>Side roads ({len(run)})</p>"
            run = [
                html(f'<div class="side-roads">{count}'),
                *run,
                html("</div>"),
            ]
        yield from run


def is_side_road(node):
    return isinstance(node, nodes.section) and node[0].astext().startswith(
        ROAD
    )


def set_apart(title):
    """Part "Side road: " from a title, as the line above its group says it."""
    kind, rest = nodes.inline("", ROAD, classes=["kind"]), title[0].astext()
    title[0:1] = [kind, nodes.Text(rest.removeprefix(ROAD))]


def html(text):
    return nodes.raw("", text, format="html")


def has_link(part):
    kinds = nodes.reference, addnodes.pending_xref
    return any(isinstance(node, kinds) for node in part.findall())


def setup(app):
    app.connect("doctree-read", name_cells)
    app.connect("doctree-read", leave_out_stubs)
    # Late: nothing looks for siblings any more.
    app.connect("doctree-read", fold_sections, priority=900)
    app.add_post_transform(CaptionsBelow)
