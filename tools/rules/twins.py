"""Twins: the cells of PyTorch and TensorFlow that say the same."""

import ast
import re
from itertools import pairwise

from tools.notebooks import parsed, tags
from tools.rules.common import definitions, rule

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
