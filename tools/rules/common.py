"""The register of rules, and what several of them use to read a chapter."""

import ast
from functools import cache, wraps

from tools.notebooks import parsed, tags

RULES = []
# The title that begins the heading of a side road.
SIDE_ROAD = "Side road: "
# The section with mistakes that are shown.
CASES = "Wrong on purpose"
OTHERS = "The other mistakes"  # of them, the first is told on the main road


def rule(function):
    """Add a function to the rules that every chapter is held to."""
    RULES.append(function)
    return function


def code_rule(function):
    """Make a rule of what says (code cell, its syntax tree) -> its faults."""

    @rule
    @wraps(function)
    def messages(notebook):
        for cell, tree in trees(notebook):
            for fault in function(cell, tree):
                yield f"{notebook.name(cell)}: {fault}"

    return messages


def folded(cell):
    """Tell whether a cell is folded, as a recap or a solution is."""
    return "hide-input" in tags(cell)


@cache
def walk(tree):
    """Return all nodes of a tree from `parsed`."""
    return tuple(ast.walk(tree))


def trees(notebook):
    """Yield (cell, syntax tree) for each code cell that can be parsed."""
    for cell in notebook.code:
        try:
            yield cell, parsed(cell.source)
        except SyntaxError:
            pass  # the chapter's run says so


def definitions(tree):
    """Map the names of a tree's functions and classes to their nodes."""
    kinds = ast.FunctionDef, ast.ClassDef
    return {node.name: node for node in tree.body if isinstance(node, kinds)}
