"""The text: what every reader's program shows, and the anatomy."""

import re

from tools.markdown import headings, outside_code, outside_maths
from tools.notebooks import ASIDE, alt_text
from tools.rules.common import CASES, OTHERS, rule
from tools.run.claims import faults

# What stands in front, in one folded block.
FRONT = [(2, "Setup"), (3, "What you will be able to do"), (3, "Notation")]
SECTIONS = [
    CASES,
    OTHERS,
    "In your code",
    "Summary",
    "Exercises",
    "Further reading",
]
# Shown raw, or lost, by Colab, JupyterLab or GitHub.
RAW = {
    r"^\s*:{3,}": "a colon fence",
    r"^\s*(`{3,}|~{3,})\{": "a directive",
    r"\{[a-z][\w:-]*\}`": "a role",
    r"^\([\w-]+\)=\s*$": "a target label",
    r"\$\$[ \t]*\([\w-]+\)": "a labelled equation (use \\tag)",
    r"\{\{.*?\}\}": "a substitution",
    r"\[\^[^\]]+\]": "a footnote",
    r"\[\]\(": "a link without text",
    r"^%": "a MyST comment",
    r"^\+{3}": "a block break",
    r"\\(begin|end)\{(align|equation)\*?\}": "an environment outside $$",
}


@rule
def headings_can_be_collapsed(notebook):
    """JupyterLab collapses whole cells, by the heading they begin with."""
    for cell in notebook.markdown:
        (level, _), *others = headings(cell.source) or [(0, "")]
        wrong = [level and not cell.source.startswith("#")]
        wrong += [n <= level or ASIDE.match(f"## {t}") for n, t in others]
        if any(wrong):
            yield (
                f"{notebook.name(cell)}: begin a cell with each heading that "
                "is not below the one before, so that JupyterLab can "
                "collapse it."
            )


@rule
def nothing_shows_raw(notebook):
    for cell in notebook.markdown:
        for pattern, what in RAW.items():
            text = cell.source
            if "begin" in pattern:
                text = outside_maths(text)
            elif "`" not in pattern:
                text = outside_code(text)
            if match := re.search(pattern, text, re.MULTILINE):
                yield (
                    f"{notebook.name(cell)}: {match.group()!r} is {what}, "
                    "which Colab, JupyterLab or GitHub show raw. Use what "
                    "renders in all of them (CONTRIBUTING.md lists it)."
                )


@rule
def sections_are_those_of_a_chapter(notebook):
    found = [h for cell in notebook.markdown for h in headings(cell.source)]
    titles = [title for level, title in found if level == 2]
    if found[1:4] != FRONT:
        yield f"{notebook.path.name}: begins with {FRONT}."
    if [title for title in titles if title in SECTIONS] != SECTIONS:
        yield f"{notebook.path.name}: its sections should stand as {SECTIONS}."
    levels = [level for level, _ in found]
    if levels[0] != 1 or levels.count(1) != 1 or max(levels) > 3:
        yield (
            f"{notebook.path.name}: begins with its one title, #, and has "
            "headings of two levels more, ## and ###."
        )


@rule
def numbers_come_from_somewhere(notebook):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        text, near = alt_text(cell), [cell]
        if cell.cell_type == "markdown":
            text = cell.source
            near = [*nearest(cells[place::-1]), *nearest(cells[place:])]
        for fault in faults(text, "\n".join(map(shown, near))):
            yield f"{notebook.name(cell)}: {fault}"


def nearest(cells):
    """Return the first code cell in a list, in another one; or none."""
    return [cell for cell in cells if cell.cell_type == "code"][:1]


def shown(cell):
    """Return the code of a cell, and what it prints or ends with."""
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    ]
    return "\n".join([cell.source, *texts])
