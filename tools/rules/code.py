"""Code: the size and order of cells, seeds, names, docstrings and shapes."""

import ast
import builtins
import re
import symtable
from itertools import pairwise

from tools.notebooks import tags
from tools.rules.common import (
    code_rule,
    definitions,
    folded,
    rule,
    trees,
    walk,
)
from tools.rules.tables import on_the_page
from tools.run import shapes

MAX_CELL_LINES = 60
MAX_INTERACTIVE_LINES = 75
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
PLAIN = {
    r"filterwarnings|simplefilter": "silences warnings; mend the cause.",
    r"(?i)#\s*nbval": "switches the comparison off.",
    r"(?m)^print\(": "print outside a loop; end with the expression.",
}


@code_rule
def cells_are_short(cell, tree):
    interactive = cell.source.startswith("# @title Interactive")
    most = MAX_INTERACTIVE_LINES if interactive else MAX_CELL_LINES
    lines = re.findall(r"(?m)^(?!# @title ).*\S", cell.source)
    if len(lines) > most:
        yield f"{len(lines)} lines; at most {most}. Divide what it defines."


@rule
def words_before_code(notebook):
    for before, cell in pairwise(notebook.cells):
        if cell.cell_type == before.cell_type == "code" and not folded(cell):
            if not ("pytorch" in tags(before) and "tensorflow" in tags(cell)):
                yield f"{notebook.name(cell)}: no words stand before it."


@code_rule
def one_thing_per_cell(cell, tree):
    if definitions(tree) and len(tree.body) > 1 and not folded(cell):
        yield "defines one thing or shows one, never both: divide the cell."


@code_rule
def code_is_plain(cell, tree):
    for pattern, fault in PLAIN.items():
        if re.search(pattern, cell.source):
            yield fault


@code_rule
def assertions_say_all_or_none(cell, tree):
    for node in walk(tree):
        match node:
            case ast.Assert(ast.Call(ast.Name(name) | ast.Attribute(_, name))):
                if name in ("any", "reduce_any"):
                    yield (
                        f"{ast.unparse(node)} lets one of many suffice: say "
                        "all, not any, how many, or which."
                    )


@code_rule
def draws_are_seeded(cell, tree):
    if RANDOM.search(cell.source) and not SEED.search(cell.source):
        yield "draws at random without a seed in the same cell."


@code_rule
def functions_have_docstrings(cell, tree):
    shaped = {name for name, said in on_the_page().items() if "(" in said[0]}
    twin = tags(cell) and not folded(cell)  # which a reader copies
    for name, node in definitions(tree).items():
        words = ast.get_docstring(node)
        arguments = node.args.args if hasattr(node, "args") else ()
        taken = sorted({arg.arg for arg in arguments} & shaped)
        if not words:
            yield f"{name} has no docstring; say what it takes and gives."
        elif twin and taken and not re.search(shapes.SHAPE, words):
            yield (
                f"the docstring of {name} says no shape of "
                f"{', '.join(taken)}: write it behind the name, as in query "
                "(..., T, K)."
            )


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


@code_rule
def shape_comments_can_be_read(cell, tree):
    try:
        shapes.check_comments(cell.source, tree)
    except shapes.ShapeError as error:
        yield error


@rule
def letters_are_in_the_notation(notebook):
    words = "\n".join(cell.source for cell in notebook.markdown)
    listed = shapes.notation(words).keys() | {"C"}
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
