"""The Notation table of a chapter, held to its code and to notation.md."""

import re
from functools import cache

from tools.rules.common import rule
from tools.run import shapes
from tools.run.tables import codes, rows_with
from tools.settings import BOOK

LETTER = "letter in shapes"  # the column's head, of whole shapes as well


@rule
def notation_is_the_book_s_and_the_code_s(notebook):
    for cell in notebook.markdown:
        for row in rows_with(cell.source, "in code", LETTER):
            for fault in [*strangers(row, [notebook]), *misnamed(row)]:
                yield f"{notebook.name(cell)}: the Notation table {fault}"


def strangers(row, notebooks):
    """Yield a message for each name in a row that no code has."""
    for name in codes(row["in code"]):
        word = re.match(r"\w+", name)[0]
        there = re.compile(rf"\b{word}\b")
        cells = (c.source for notebook in notebooks for c in notebook.code)
        # A size may be in the table for its letter alone.
        if word not in shapes.NAMES and not any(map(there.search, cells)):
            yield f"has {name}, which no code has. Correct the name."


def misnamed(row):
    """Yield a message for each letter or shape that notation.md denies."""
    for name, said in pairs(row["in code"], row[LETTER]):
        right = on_the_page().get(name, [said])
        if said not in right:
            yield (
                f"says {said} of {name}, and book/notation.md "
                f"{' or '.join(right)}. Correct the one that is wrong."
            )


def pairs(code, cell):
    """Yield (name, shape or letter) of two columns of a table."""
    names = codes(code)
    said = re.findall(shapes.SHAPE, cell) or re.findall(r"\b[A-Z]\b", cell)
    if 1 in (len(names), len(said)):
        said = said[:1] * len(names)
    if len(said) == len(names):
        yield from zip(names, said, strict=True)


@cache
def on_the_page():
    """Map a name to the shapes or letters that notation.md gives it."""
    said = {}
    page = (BOOK / "notation.md").read_text("utf-8")
    for row in rows_with(page, "in code", "in formulas"):
        column = row.get("shape", row.get("letter"))
        for name, what in pairs(row["in code"], column):
            said.setdefault(name, []).append(what)
    # The page has seq_len in two rows; a chapter's tables have it as T.
    return said | {name: [letter] for name, letter in shapes.NAMES.items()}


def unknown_names(page, notebooks):
    """Yield a message for each name of notation.md that no code has."""
    for cell in page.markdown:
        for row in rows_with(cell.source, "in code", "in formulas"):
            for fault in strangers(row, notebooks):
                yield f"{page.name(cell)}: {fault}"
