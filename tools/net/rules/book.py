"""The book as a whole: what holds between its chapters."""

import ast
import re

from tools.net import shapes
from tools.net.rules.common import trees
from tools.net.tables import codes, rows_with
from tools.notebooks import label
from tools.settings import chapters

# Shapes that one comment of the book has; any other is taken for a slip.
ONCE = {
    *("32", "101", "32, D", "B, D", "B, 1, T"),
    *("B, H, S, K", "B, S, H, K", "B, H, T, D", "H, B, T, K", "B, T, 1, D"),
    *("B, T, C, 2", "C, T, D", "C, T, S", "10, 3, 2", "C, S, V", "C, T, V"),
    *("D, K", "D, 2", "K", "N, 2", "T, 2", "3, H, K, D"),
}


def shapes_said_once(notebooks):
    """Yield a message for each shape that stands in one comment alone.

    It may be a slip, such as (B, D, T), that no run tells from another order
    of axes of one size. What is meant is in ONCE.
    """
    places = {}
    for notebook in notebooks:
        for cell in notebook.code:
            for comment in shapes.comments(cell.source).values():
                for shape in shapes.axes(comment):
                    places.setdefault(shape, []).append(notebook.name(cell))
    for shape, where in places.items():
        if len(where) == 1 and shape not in ONCE:
            yield (
                f"{where[0]}: says the shape ({shape}), which stands nowhere "
                "else in the book. Correct the comment, or add the shape to "
                "ONCE in tools/net/rules/book.py."
            )
    for shape in sorted(ONCE):
        if len(places.get(shape, [])) != 1:
            yield f"{label(__file__)}: ({shape}) is not said once; remove it."


def one_thing_one_name(notebooks):
    """Yield a message for each thing that two Notation tables name apart."""
    first = {}
    for notebook in notebooks:
        for cell in notebook.markdown:
            for row in rows_with(cell.source, "in code", "in formulas"):
                for thing, name in things(row):
                    known = first.setdefault(thing, name)
                    if name != known:
                        yield (
                            f"{notebook.name(cell)}: the Notation table calls "
                            f"{thing!r} {name}, and another {known}. Correct "
                            "the one that is wrong."
                        )


def things(row):
    """Yield (thing, name) of a row of a Notation table.

    The thing is without articles and plurals; a size is named by its letter.
    """
    if not (said := row.get("axis") or row.get("thing")):
        return
    said = re.sub(r"\b(the|an?) |s\b", "", said)
    names = [shapes.NAMES.get(n, n) for n in codes(row["in code"])]
    parts = re.split(", (?:and )?", said)
    if len({*names}) == 1:
        yield parts[0], names[0]
    elif len(parts) == len(names):
        yield from zip(parts, names, strict=True)
    elif names:
        yield f"all of {parts[0]}", ", ".join(names)


def named_body(node):
    """Return the name that a function, class or constant text defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    match node:
        case ast.Assign([ast.Name(name)], ast.Constant(str())):
            return name if name.isupper() else None
    return None


def bodies(notebook):
    """Yield (name, cell, its lines of the body, as a slice) of each body."""
    for cell, tree in trees(notebook):
        for node in tree.body:
            if name := named_body(node):
                yield name, cell, slice(node.lineno - 1, node.end_lineno)


def first_bodies(notebooks):
    """Map each name to (its body as text, the cell's name), where it is first.

    As text, for the comments belong to it.
    """
    first = {}
    for notebook in notebooks:
        for name, cell, lines in bodies(notebook):
            body = cell.source.split("\n")[lines]
            first.setdefault(name, ("\n".join(body), notebook.name(cell)))
    return first


def other_bodies(notebook, first):
    """Yield a message for each body that is not the first of its name.

    first: the first ones, from `first_bodies`.
    """
    for name, cell, lines in bodies(notebook):
        body = "\n".join(cell.source.split("\n")[lines])
        if name in first and body != first[name][0]:
            yield (
                f"{notebook.name(cell)}: {name} differs from the one in "
                f"{first[name][1]}. One name has one body in the book: mend "
                "it there and run `make copies`, or give this one a name of "
                "its own."
            )


def one_name_one_body(notebooks):
    """Yield a message for each name with two bodies in the book."""
    first = first_bodies(notebooks)
    for notebook in notebooks:
        yield from other_bodies(notebook, first)


def files_not_built(notebooks):
    """Yield a message for each notebook that the table of contents lacks."""
    for notebook in notebooks:
        if f"book/{notebook.path.stem}" not in chapters():
            yield f"{notebook.path.name}: is not in _toc.yml; add it there."
