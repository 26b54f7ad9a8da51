"""Twins: the cells of PyTorch and TensorFlow that say the same."""

import ast
import re
from itertools import pairwise

from tools.notebooks import parsed, tags
from tools.rules.common import definitions, rule
from tools.sheets.cells import names

SIDES = (  # a tag, its twin's, where the twin stands, the libraries it has not
    ("pytorch", "tensorflow", 1, "right below", r"(tf|keras)\."),
    ("tensorflow", "pytorch", -1, "right above", r"(torch|nn|F)\."),
)


@rule
def twins_stand_together(notebook):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        for tag, other, step, where, library in SIDES:
            if tag not in tags(cell):
                continue
            if other not in tags(cells[(place + step) % len(cells)]):
                yield (
                    f"{notebook.name(cell)}: is tagged {tag}; its twin, "
                    f"tagged {other}, has to stand {where}."
                )
            if found := re.search(rf"(?<![\w.]){library}", cell.source):
                yield f"{notebook.name(cell)}: {found[0]} in a {tag} cell."


@rule
def frameworks_do_without_each_other(notebook):
    """An edition in one framework would lose what needs the other."""
    for tag, other, *_ in SIDES:
        theirs = bound_by(c for c in notebook.code if other in tags(c))
        rest = bound_by(c for c in notebook.code if other not in tags(c))
        for cell in notebook.code:
            read = names(cell.source)[1] if tag in tags(cell) else set()
            for name in sorted(read & theirs - rest):
                yield (
                    f"{notebook.name(cell)}: uses {name}, which only a "
                    f"{other} cell sets; set it in this {tag} cell, too."
                )


def bound_by(cells):
    """Return the names that cells bind."""
    return {name for cell in cells for name in names(cell.source)[0]}


@rule
def frameworks_are_proved_equal(notebook):
    compared = re.compile(r"(?s)\bassert\b.*(_tf|TF)\b")
    untagged = [
        cell.source
        for cell in notebook.code
        if set(tags(cell)) <= {"hide-input"}
    ]
    if not any(map(compared.search, untagged)):
        yield (
            f"{notebook.path.name}: no untagged cell asserts that PyTorch and "
            "TensorFlow give the same numbers."
        )


def pairs(notebook):
    """Yield (PyTorch's cell, TensorFlow's) for each pair of twins."""
    for one, other in pairwise(notebook.cells):
        if "pytorch" in tags(one) and "tensorflow" in tags(other):
            try:
                parsed(one.source), parsed(other.source)
            except SyntaxError:
                continue  # the chapter's run says so
            yield one, other


@rule
def twins_have_the_same_name_and_docstring(notebook):
    for cell, twin in pairs(notebook):
        where, theirs = notebook.name(twin), definitions(parsed(twin.source))
        for name, node in definitions(parsed(cell.source)).items():
            other = f"{name}TF" if name[0].isupper() else f"{name}_tf"
            if other not in theirs:
                yield f"{where}: the twin of {name} is to be called {other}."
            elif ast.get_docstring(theirs[other]) != ast.get_docstring(node):
                yield f"{where}: {other} and {name} have different docstrings."
