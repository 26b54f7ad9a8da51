"""Code: seeds, names and shapes."""

import ast
import builtins
import re
import symtable

from tools.rules.common import (
    code_rule,
    definitions,
    rule,
    trees,
    walk,
)
from tools.rules.tables import LETTER
from tools.run import shapes
from tools.run.tables import rows_with

RANDOM = re.compile(
    r"(torch\.(rand|randn|randint|randperm|normal)\w*"
    r"|tf\.random\.(?!set_seed)\w+|keras\.random\.\w+"
    r"|\.(normal_|uniform_|xavier_\w+|kaiming_\w+))\("
)
SEED = re.compile(r"manual_seed|set_random_seed|set_seed|seed=")
RESHAPING = {
    *("reshape", "view", "transpose", "permute", "swapaxes", "moveaxis"),
    *("unsqueeze", "squeeze", "expand_dims", "flatten", "mT"),
    *("stack", "concat", "cat", "one_hot"),
}


@code_rule
def draws_are_seeded(cell, tree):
    if RANDOM.search(cell.source) and not SEED.search(cell.source):
        yield "draws at random without a seed in the same cell."


@rule
def functions_read_no_globals(notebook):
    known = set(dir(builtins))
    for _, tree in trees(notebook):
        known |= definitions(tree).keys()
        for node in walk(tree):
            if isinstance(node, ast.alias):
                known.add((node.asname or node.name).split(".")[0])
    for cell, _ in trees(notebook):
        table = symtable.symtable(cell.source, "cell", "exec")
        for scope in scopes(table):
            names = {n for n in scope.get_globals() if not n.isupper()}
            for name in sorted(names - known):
                yield (
                    f"{notebook.name(cell)}: {scope.get_name()} reads the "
                    f"global {name}; pass it as an argument."
                )


def scopes(table):
    """Yield the functions in a symbol table, at any depth."""
    for child in table.get_children():
        if isinstance(child, symtable.Function):
            name = child.get_name()
            if name not in ("lambda", "genexpr") and name[-4:] != "comp":
                yield child
        yield from scopes(child)


@rule
def letters_are_in_the_notation(notebook):
    listed = {"C"}
    for cell in notebook.markdown:
        for row in rows_with(cell.source, LETTER):
            listed |= {*re.findall(r"\b[A-Z]\b", row[LETTER])}
    for cell, _ in trees(notebook):
        said = " ".join(shapes.comments(cell.source).values())
        letters = set(re.findall(r"\b[A-Z]\b", re.sub(r":[^#]*", "", said)))
        if missing := sorted(letters - listed):
            yield (
                f"{notebook.name(cell)}: its shape comments use {missing}, "
                "which the table of the Notation section lacks. Correct the "
                "comment, or add the letter there."
            )


@code_rule
def reshaping_lines_say_their_shape(cell, tree):
    lines = shapes.comments(cell.source)
    for node in walk(tree):
        if isinstance(node, (ast.Assign, ast.Return)):
            used = {getattr(inside, "attr", None) for inside in walk(node)}
            if used & RESHAPING and node.end_lineno not in lines:
                yield (
                    f"line {node.end_lineno} calls {min(used & RESHAPING)} "
                    "and does not say the shape it leaves: end it with one, "
                    "as in # (B, T, D)."
                )
