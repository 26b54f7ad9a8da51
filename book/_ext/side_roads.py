"""Fold the setup, side roads and the other mistakes on the site.

A side road is a section whose heading begins with `Side road: `. The heading
of such a section and its first paragraph, which says what is in it, are what a
reader clicks on (not a paragraph with a link): one line while it is folded, so
that several in a row are a list. side_roads.js opens what a link leads to, and
remembers the choice between a first reading and everything.

Elsewhere, folded cells that follow one another share one fold. One whose cell
has no output of its own goes into the next, if that has the same kind of
title: "Check: ...", "Interactive: ...".
"""

from itertools import groupby, pairwise

from docutils import nodes
from sphinx import addnodes

MARK = "Side road: "
OTHERS = "The other mistakes"  # the first is told on the main road
SETUP = "Setup"
MANY = 3  # folded cells in a row, which would be as many bars


def title(section):
    return section.next_node(nodes.title).astext()


def is_aside(section):
    """Tell whether a section is to be folded."""
    name = title(section)
    return name.startswith(MARK) or name in (SETUP, OTHERS)


def fold(app, doctree):
    sections = [*doctree.findall(nodes.section)]
    for section in sections:
        parts = joined(section.children)
        if is_aside(section):
            # A link within what a reader clicks on would be no use.
            clicks = 2 if len(parts) > 1 and not has_link(parts[1]) else 1
            section.children = details(
                "side-road", parts[:clicks], parts[clicks:]
            )
        else:
            section.children = [*runs_folded(parts)]


def html(text):
    return nodes.raw("", text, format="html")


def details(name, summary, parts):
    """Return parts of a page between the tags that fold them."""
    opening = html(f'<details class="{name}"><summary>')
    return [opening, *summary, html("</summary>"), *parts, html("</details>")]


def joined(parts):
    """Return parts of a section, with what goes into the next fold in it."""
    for part, after in pairwise(parts):
        kind = kind_of(part)
        if kind and kind == kind_of(after) and not has_output(part):
            after[0].children = part[0].children + after[0].children
            after["classes"] += {"tag_export"} & {*part["classes"]}
            part["classes"].append("joined")
    return [part for part in parts if "joined" not in part.get("classes", [])]


def has_link(part):
    kinds = nodes.reference, addnodes.pending_xref
    return any(isinstance(node, kinds) for node in part.findall())


def kind_of(part):
    """Return the first word of the title of a folded cell, or None."""
    name = getattr(part, "attributes", {}).get("prompt_show", "")
    return name.partition(":")[0] if ":" in name else None


def runs_folded(parts):
    """Yield parts of a section; MANY folded cells in a row are one fold."""
    for folded, run in groupby(parts, is_folded):
        run = [*run]
        if folded and len(run) >= MANY:
            said = nodes.Text(f"Code in {len(run)} folded cells")
            run = details("run", [said], run)
        yield from run


def is_folded(part):
    """Tell whether a part is a folded cell, or a pair, without an output."""
    cells = [
        cell
        for cell in part.findall(nodes.container)
        if "cell" in cell["classes"]
    ]
    return bool(cells) and all(
        "tag_hide-input" in cell["classes"] and not has_output(cell)
        for cell in cells
    )


def has_output(cell):
    return len(cell.children) > 1


def setup(app):
    # Late: the tabs are made, and nothing looks for siblings any more.
    app.connect("doctree-read", fold, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
