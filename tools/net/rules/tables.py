"""Tables: what Notation and Summary say, against the code and notation.md."""

import re
from functools import cache

from tools.net import claims, shapes
from tools.net.rules.common import rule
from tools.net.tables import codes, rows_with
from tools.settings import BOOK

# What begins to be about another equation, or about none.
TURN = re.compile(r"\\tag\{(\d+)\}|^(##) ", re.MULTILINE)
REFERENCE = re.compile(r"\$\((\d+)\)\$")


@rule
def notation_is_the_book_s_and_the_code_s(notebook):
    known = set(re.findall(r"\w+", "\n".join(c.source for c in notebook.code)))
    for cell in notebook.markdown:
        for row in rows_with(cell.source, "in code", "letter in shapes"):
            names = codes(row["in code"])
            for fault in [
                *(unknown for unknown in strangers(names, known)),
                *other_sizes(names, row.get("size here", "")),
                *misnamed(names, row),
            ]:
                yield f"{notebook.name(cell)}: the Notation table {fault}"


def strangers(names, known):
    for name in names:
        # A size may be there for its letter alone.
        if re.match(r"\w+", name)[0] not in known | shapes.NAMES.keys():
            yield (
                f"has {name}, which no code of the chapter has. Correct the "
                "name."
            )


def other_sizes(names, cell):
    sizes = [expression for _, expression in claims.find(cell)]
    if names and sizes != [name for name in names if name in sizes]:
        yield (
            f"computes the sizes of {', '.join(names)} by "
            f"{', '.join(sizes)}. Give each its own variable's size."
        )


def misnamed(names, row):
    for head in ("letter in shapes", "in formulas"):
        for name, said in pairs(names, row[head]):
            right = on_the_page().get((name, head), [said])
            if said not in right and (head[0] == "l" or said in formulas()):
                yield (
                    f"says {said} of {name}, and book/notation.md "
                    f"{' or '.join(right)}. Correct the one that is wrong."
                )


def pairs(names, cell):
    """Yield (name, what a cell says of it): a shape, a letter or a formula."""
    said = re.findall(shapes.SHAPE, cell) or re.findall(r"\b[A-Z]\b", cell)
    if "$" in cell:
        said = ", ".join(re.findall(r"\$([^$]+)\$", cell)).split(", ")
    if 1 in (len(names), len(said)):
        said = said[:1] * len(names)
    if len(said) == len(names):
        yield from zip(names, said, strict=True)


@cache
def on_the_page():
    """Map (name, head of a chapter's column) to what notation.md says."""
    page, said = (BOOK / "notation.md").read_text("utf-8"), {}
    for row in rows_with(page, "in code", "in formulas"):
        first = row.get("shape", row.get("letter"))
        for head, cell in (
            ("letter in shapes", first),
            ("in formulas", row["in formulas"]),
        ):
            for name, what in pairs(codes(row["in code"]), cell):
                said.setdefault((name, head), []).append(what)
    # The page has seq_len in two rows; a chapter's tables have it as T.
    one = {(n, "letter in shapes"): [x] for n, x in shapes.NAMES.items()}
    return said | one


def formulas():
    return {f for (_, head), fs in on_the_page().items() for f in fs}


@rule
def summary_numbers_its_equations(notebook):
    named = names_by_equation(notebook)
    for cell in notebook.markdown:
        for row in rows_with(cell.source, "equation"):
            numbers = REFERENCE.findall(row["equation"])
            functions = codes([*row.values()][1])
            about = {n for number in numbers for n in named.get(number, ())}
            if numbers and functions and not about & {*functions}:
                yield (
                    f"{notebook.name(cell)}: the summary has {functions} for "
                    f"equation {' and '.join(numbers)}, below which stands "
                    f"{sorted(about)}. Correct the number, or name the "
                    "function below its equation."
                )


def names_by_equation(notebook):
    """Map an equation's number to the names that stand below it.

    They reach to the next equation or section; a line with the number of
    another one speaks of that.
    """
    named, number = {}, None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            names = re.findall(r"(?m)^(?:def|class) (\w+)", cell.source)
            named.setdefault(number, set()).update(names)
            continue
        text = "\n".join(
            line for line in cell.source.split("\n") if line[:1] != "|"
        )
        before, *parts = TURN.split(text)
        named.setdefault(number, set()).update(codes(before))
        for tag, _, part in zip(*[iter(parts)] * 3, strict=True):
            number = tag
            named.setdefault(number, set()).update(codes(part))
        for line in text.split("\n"):
            for other in REFERENCE.findall(line):
                named.setdefault(other, set()).update(codes(line))
    return named
