"""Twins: the cells of PyTorch and TensorFlow that say the same."""

import ast
import re
from itertools import pairwise

from tools.notebooks import tags
from tools.rules.common import definitions, parsed, rule, trees, walk
from tools.run import shapes

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
                continue  # reported by cells_are_python
            yield one, other


def plain(name):
    """Return a twin's name as it is in PyTorch."""
    return re.sub(r"(_tf|TF)\b", "", name)


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


@rule
def twins_take_the_same_steps(notebook):
    own = {plain(n) for _, t in trees(notebook) for n in definitions(t)}
    for cell, twin in pairs(notebook):
        theirs = definitions(parsed(twin.source))
        theirs = {plain(name): node for name, node in theirs.items()}
        for name, node in definitions(parsed(cell.source)).items():
            # What wraps a library's layer does what this library needs.
            if name not in theirs or name.startswith("library_"):
                continue
            first, second = steps(node, own), steps(theirs[name], own)
            if first != second:
                yield (
                    f"{notebook.name(twin)}: {theirs[name].name} calls "
                    f"{second or 'nothing'} of the book, and its twin "
                    f"{first or 'nothing'}. Give both the same steps."
                )


def steps(node, own):
    """Return what a function, or a layer's call, calls of the book's own."""
    if isinstance(node, ast.ClassDef):
        methods = definitions(node)
        node = methods.get("forward") or methods.get("call")
    calls = [n for n in walk(node) if isinstance(n, ast.Call)] if node else []
    calls.sort(key=lambda call: (call.end_lineno, call.end_col_offset))
    names = [plain(ast.unparse(call.func)) for call in calls]
    return [name for name in names if name in own]


@rule
def twins_say_the_same_shapes(notebook):
    for cell, twin in pairs(notebook):
        first, second = shapes_said(cell.source), shapes_said(twin.source)
        for name in first.keys() & second.keys():
            short, long = sorted((first[name], second[name]), key=len)
            rest = iter(long)
            if not all(shape in rest for shape in short):  # in this order
                yield (
                    f"{notebook.name(twin)}: says {second[name]} of {name}, "
                    f"and its twin {first[name]}. Correct the comment that is "
                    "wrong, or give the two other names."
                )


def shapes_said(source):
    """Map what a cell's shape comments describe to the shapes, in order.

    Names go without _tf, and shapes without axes of one.
    """
    said, found = shapes.comments(source), {}
    for node in walk(parsed(source)):
        line = getattr(node, "end_lineno", None)
        if isinstance(node, shapes.STATEMENTS) and line in said:
            targets = getattr(node, "targets", None)
            kind = type(node).__name__.lower()
            name = ast.unparse(targets[0]) if targets else kind
            shape = said[line].partition(":")[0].strip("# ")
            shape = re.sub(r"\b1, |, 1\b", "", shape).replace(",)", ")")
            found.setdefault(plain(name), []).append(shape)
    return found
