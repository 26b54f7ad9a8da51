"""Fold the setup, side roads and each case of "Wrong on purpose" on the site.

A side road is a section whose heading begins with `Side road: `. Its heading
and its first paragraph, which says what is in it, stay in sight; the rest is
folded. side_roads.js opens what a link leads to, and remembers the choice
between a first reading and everything.
"""

from docutils import nodes

MARK = "Side road: "
CASES = "Wrong on purpose"
SETUP = "Setup"


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
    for section in doctree.findall(nodes.section):
        if name := kind(section):
            # The heading, the first paragraph, and the rest.
            rest = section.children[2:]
            if rest:
                opening = (
                    '<details class="side-road">'
                    f"<summary>Open this {name}</summary>"
                )
                section.children[2:] = [
                    nodes.raw("", opening, format="html"),
                    *rest,
                    nodes.raw("", "</details>", format="html"),
                ]


def setup(app):
    # Late: the tabs are made, and nothing looks for siblings any more.
    app.connect("doctree-read", fold, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
