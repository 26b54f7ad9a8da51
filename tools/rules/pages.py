"""The pages around the chapters, held to what the chapters say."""

from tools.rules.tables import strangers
from tools.run.tables import rows_with


def unknown_names(page, notebooks):
    """Yield a message for each name of notation.md that no code has."""
    for cell in page.markdown:
        for row in rows_with(cell.source, "in code", "in formulas"):
            for fault in strangers(row, notebooks):
                yield f"{page.name(cell)}: {fault}"
