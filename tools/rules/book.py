"""The book as a whole: what holds between its chapters."""

import ast

from tools.rules.common import trees


def bodies(notebook):
    """Yield (name, text with comments, cell) of each function and class.

    And of each constant text, as JAVASCRIPT = "...".
    """
    for cell, tree in trees(notebook):
        for node in tree.body:
            match node:
                case ast.FunctionDef(name) | ast.ClassDef(name):
                    pass
                case ast.Assign([ast.Name(name)], ast.Constant(str())):
                    if not name.isupper():
                        continue
                case _:
                    continue
            lines = cell.source.split("\n")[node.lineno - 1 : node.end_lineno]
            yield name, "\n".join(lines), cell


def one_name_one_body(notebooks):
    """Yield a message for each name with two bodies in the book."""
    first = {}
    for notebook in notebooks:
        for name, body, cell in bodies(notebook):
            where = notebook.name(cell)
            known, there = first.setdefault(name, (body, where))
            if body != known:
                yield (
                    f"{where}: {name} differs from the one in {there}. One "
                    "name has one body in the book: mend it there and import "
                    "it from cellbycell, or give this one a name of its own."
                )
