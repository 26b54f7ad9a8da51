"""Figures: how many, and their alt texts."""

from tools.net.rules.common import rule
from tools.notebooks import alt_text, remedy

MAX_FIGURES = 5
MIN_ALT = 20


def pictures(cell):
    """Return how many pictures a cell has stored."""
    return sum("image/png" in out.get("data", {}) for out in cell.outputs)


@rule
def figures_have_alt_text(notebook):
    for cell in notebook.code:
        alt = alt_text(cell)
        if pictures(cell) and len(alt) < MIN_ALT:
            yield (
                f"{notebook.name(cell)}: its figure has no alt text. Say what "
                f"is seen, in {MIN_ALT} characters or more, in the cell's "
                'metadata: {"mystnb": {"image": {"alt": "…"}}}'
            )
        if alt and not pictures(cell):
            yield (
                f"{notebook.name(cell)}: has alt text and no figure. Remove "
                f"the text, or run: {remedy(notebook.path)}"
            )


@rule
def figures_are_few(notebook):
    count = sum(map(pictures, notebook.code))
    if count > MAX_FIGURES:
        yield f"{notebook.path.name}: {count} figures, at most {MAX_FIGURES}."
