"""The book as a whole: what holds between its chapters."""

import ast

from tools.rules.common import trees


def named_body(node):
    """Return the name that a function, class or constant text defines."""
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return name
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
    """Map each name to (its first body with its comments, the cell's name)."""
    first = {}
    for notebook in notebooks:
        for name, cell, lines in bodies(notebook):
            body = cell.source.split("\n")[lines]
            first.setdefault(name, ("\n".join(body), notebook.name(cell)))
    return first


def other_bodies(notebook, first):
    """Yield a message for each body that differs from `first_bodies`."""
    for name, cell, lines in bodies(notebook):
        body = "\n".join(cell.source.split("\n")[lines])
        if name in first and body != first[name][0]:
            yield (
                f"{notebook.name(cell)}: {name} differs from the one in "
                f"{first[name][1]}. One name has one body in the book: mend "
                "it there and import it from cellbycell, or give this one a "
                "name of its own."
            )


def one_name_one_body(notebooks):
    """Yield a message for each name with two bodies in the book."""
    first = first_bodies(notebooks)
    for notebook in notebooks:
        yield from other_bodies(notebook, first)
