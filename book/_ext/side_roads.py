"""Fold the setup, side roads and each case of "Wrong on purpose" on the site.

A side road is a section whose heading begins with `Side road: `. Its heading
and its first paragraph, which says what is in it, stay in sight; the rest is
folded. side_roads.js opens what a link leads to, and remembers the choice
between a first reading and everything.

Elsewhere, folded cells that follow one another share one fold.
"""

from itertools import groupby

from docutils import nodes

MARK = "Side road: "
CASES = "Wrong on purpose"
SETUP = "Setup"
MANY = 3  # folded cells in a row, which would be as many bars
# A script that put it in, or showed it, would make the text below jump.
SWITCH = """<div class="reading" role="group"
  aria-label="How much to read">
<button type="button" value="first">First reading</button>
<button type="button" value="everything">Everything</button>
</div>"""


def title(section):
    return section.next_node(nodes.title).astext()


def kind(section):
    """Return what a section is to be folded as, or None."""
    if title(section).startswith(MARK):
        return "side road"
    if title(section) == SETUP:
        return "setup"
    above = section.parent
    if isinstance(above, nodes.section) and title(above) == CASES:
        return "case"
    return None


def fold(app, doctree):
    sections = [*doctree.findall(nodes.section)]
    if any(map(kind, sections)):
        switch = nodes.raw("", SWITCH, format="html")
        sections[0].insert(1, switch)
    for section in sections:
        if name := kind(section):
            # The heading, the first paragraph, and the rest.
            rest = section.children[2:]
            if rest:
                said = f"Open this {name}"
                section.children[2:] = details("side-road", said, rest)
        else:
            section.children = [*runs_folded(section.children)]


def details(name, summary, parts):
    """Return parts of a page between the tags that fold them."""
    opening = f'<details class="{name}"><summary>{summary}</summary>'
    return [
        nodes.raw("", opening, format="html"),
        *parts,
        nodes.raw("", "</details>", format="html"),
    ]


def runs_folded(parts):
    """Yield parts of a section; MANY folded cells in a row are one fold."""
    for folded, run in groupby(parts, is_folded):
        run = [*run]
        if folded and len(run) >= MANY:
            run = details("run", f"Code in {len(run)} folded cells", run)
        yield from run


def is_folded(part):
    """Tell whether a part is a folded cell, or a pair, without an output."""
    cells = [
        cell
        for cell in part.findall(nodes.container)
        if "cell" in cell["classes"]
    ]
    return bool(cells) and all(
        "tag_hide-input" in cell["classes"] and len(cell.children) == 1
        for cell in cells
    )


def setup(app):
    # Late: the tabs are made, and nothing looks for siblings any more.
    app.connect("doctree-read", fold, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
