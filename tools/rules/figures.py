"""Figures: each has an alt text, and each alt text a figure."""

from tools.notebooks import alt_text, remedy
from tools.rules.common import rule

MIN_ALT = 20


@rule
def figures_have_alt_text(notebook):
    for cell in notebook.code:
        alt = alt_text(cell)
        drawn = any("image/png" in o.get("data", {}) for o in cell.outputs)
        if drawn and len(alt) < MIN_ALT:
            yield (
                f"{notebook.name(cell)}: its figure has no alt text. Say what "
                f"is seen, in {MIN_ALT} characters or more, in the cell's "
                'metadata: {"mystnb": {"image": {"alt": "…"}}}'
            )
        if alt and not drawn:
            yield (
                f"{notebook.name(cell)}: has alt text and no figure. Remove "
                f"the text, or run: {remedy(notebook.path)}"
            )
