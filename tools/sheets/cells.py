"""Which cells of a chapter others need, and which one framework leaves over.

Answered for whole cells, by the names that each binds and reads; nothing
runs. Of a cell that imports, what nobody reads goes.
"""

import ast
import builtins
import symtable
from functools import cache

from nbformat import from_dict

from tools.notebooks import parsed, tags

# The modules of each framework, and the tag of its cells.
MODULES = {
    "pytorch": ("torch", "cellbycell.pytorch"),
    "tensorflow": ("tensorflow", "keras", "cellbycell.tensorflow"),
}


@cache
def names(source):
    """Return the names that code binds at its top, and all that it reads."""
    table = symtable.symtable(source, "cell", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned()}
    binds |= {s.get_name() for s in table.get_symbols() if s.is_imported()}
    reads, inner = set(), [table]
    while inner:
        scope = inner.pop()
        inner += scope.get_children()
        for symbol in scope.get_symbols():
            is_ours = scope is table or symbol.is_global()
            if is_ours and symbol.is_referenced():
                reads.add(symbol.get_name())
    return binds, reads - {*dir(builtins)} | reads & {"globals"}


def read_by(cells):
    """Return all names that cells read."""
    return {name for cell in cells for name in names(cell.source)[1]}


def imports(cell):
    """Tell whether a cell imports."""
    kinds = ast.Import, ast.ImportFrom
    return any(isinstance(n, kinds) for n in parsed(cell.source).body)


def defined(cell):
    """Return the names of modules, functions and classes that a cell binds."""
    kinds = ast.FunctionDef, ast.ClassDef
    nodes = parsed(cell.source).body
    if imports(cell) or any(isinstance(node, kinds) for node in nodes):
        return names(cell.source)[0]
    return set()


def needed(before, asked):
    """Return the cells before others that bind what these others need."""
    kept = []
    while True:
        # What a cell that imports reads itself, lean() knows.
        need = read_by([*(c for c in kept if not imports(c)), *asked])
        if "globals" in need:  # which looks a function up by its name
            need |= {n for c in before for n in defined(c)}
        more = [c for c in before if names(c.source)[0] & need]
        if more == kept:
            return [lean(c, need) if imports(c) else c for c in kept]
        kept = more


def left(cells, framework):
    """Return the code cells that do without the other framework.

    framework: "pytorch" or "tensorflow"; None leaves all.
    """
    if framework is None:
        return cells
    [other] = MODULES.keys() - {framework}
    lost = {
        alias.asname or alias.name.split(".")[0]
        for cell in cells
        for node in parsed(cell.source).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if f"{getattr(node, 'module', '')}.{alias.name}".strip(".").startswith(
            MODULES[other]
        )
    }
    bound = {n for cell in cells for n in names(cell.source)[0]}
    kept = [cell for cell in cells if other not in tags(cell)]
    while True:
        there = {n for cell in kept for n in names(cell.source)[0]} - lost
        lost |= bound - there
        more, made = [], set()
        for cell in kept:
            late = read_at_once(cell.source) & bound - made
            if imports(cell) or not (late or read_by([cell]) & lost):
                more.append(cell)
                made |= names(cell.source)[0]
        if more == kept:
            return [lean(c, lost=lost) if imports(c) else c for c in kept]
        kept = more


@cache
def read_at_once(source):
    """Return the names that code reads while it runs, not in functions.

    Those that it binds itself are left out.
    """
    table = symtable.symtable(source, "cell", "exec")
    reads = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return reads - names(source)[0]


def lean(cell, need=None, lost=frozenset()):
    """Return a cell that imports, without what is lost, or is not needed.

    need: names; None if all are.
    """
    lines, parts = cell.source.split("\n"), []
    start = int(lines[0].startswith("# @title"))
    nodes = ast.parse(cell.source).body  # its own, as it changes them
    kept, gone = [], {*lost}
    for node in nodes:
        binds, reads = names(ast.unparse(node))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if reads & (lost if binds else gone):  # also a check of what goes
            continue
        if need and binds and not binds & need:
            gone |= binds
        else:
            kept.append(node)
    read = {name for n in kept for name in names(ast.unparse(n))[1]}
    for node in nodes:
        source = "\n".join(lines[start : node.end_lineno])
        start = node.end_lineno
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            wanted = []
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                if name not in lost and (not need or name in need | read):
                    wanted.append(alias)
            if not wanted:
                continue
            if len(wanted) < len(node.names):
                node.names = wanted
                source = ast.unparse(node)
        elif node not in kept:
            continue
        parts.append(source)
    title = lines[:1] if lines[0].startswith("# @title") else []
    new = from_dict(cell)
    new.source = "\n".join([*title, *parts]).strip("\n")
    return new
