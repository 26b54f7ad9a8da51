"""Code: its size, its twins, its names, and what its comments may say."""

import ast
import builtins
import re
import symtable
from itertools import pairwise
from statistics import median, quantiles

from tools.net import shapes
from tools.net.rules.common import folded, parsed, rule, trees, walk
from tools.notebooks import alt_text, tags

MAX_CELL_LINES = 25
MAX_INTERACTIVE_LINES = 75
MAX_TOLERANCE = 0.05  # numbers that are drawn lie near one
RANDOM = re.compile(
    r"(torch\.(rand|randn|randint|randperm|normal)\w*"
    r"|tf\.random\.(?!set_seed)\w+|keras\.random\.\w+"
    r"|\.(normal_|uniform_|xavier_\w+|kaiming_\w+))\("
)
SEED = re.compile(r"manual_seed|set_random_seed|set_seed|seed=")
OPPOSITE = {"any": "all", "all": "any"}
RESHAPING = {
    *("reshape", "view", "transpose", "permute", "swapaxes", "moveaxis"),
    *("unsqueeze", "squeeze", "expand_dims", "flatten", "mT"),
    *("stack", "concat", "cat", "one_hot"),
}


@rule
def cells_are_short(notebook):
    lines = [
        sum(bool(line.strip()) for line in cell.source.split("\n"))
        for cell in notebook.code
        if not folded(cell)
    ]
    for cell in notebook.code:
        # A recap has a title, and the cell that it repeats has none.
        code = cell.source.split("\n")[cell.source.startswith("# @title") :]
        count = sum(bool(line.strip()) for line in code)
        interactive = cell.source.startswith("# @title Interactive")
        most = MAX_INTERACTIVE_LINES if interactive else MAX_CELL_LINES
        if count > most:
            yield (
                f"{notebook.name(cell)}: {count} lines; at most {most}. "
                "Split the function, not the cell."
            )
    if len(lines) > 10 and (
        median(lines) > 5 or quantiles(lines, n=10)[8] > 15
    ):
        yield (
            f"{notebook.path.name}: its cells have {median(lines)} lines in "
            f"the median and {quantiles(lines, n=10)[8]:.0f} at nine in ten; "
            "5 and 15 are the most."
        )


@rule
def words_before_code(notebook):
    for before, cell in pairwise(notebook.cells):
        if cell.cell_type != "code" or before.cell_type != "code":
            continue
        twin = "pytorch" in tags(before) and "tensorflow" in tags(cell)
        if not twin and not folded(cell):
            yield f"{notebook.name(cell)}: no words stand before this cell."


@rule
def one_thing_per_cell(notebook):
    for cell, tree in trees(notebook):
        kinds = [
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            for node in tree.body
        ]
        if any(kinds) and len(kinds) > 1 and not folded(cell):
            yield (
                f"{notebook.name(cell)}: defines one thing or shows one "
                "thing, never both: divide the cell."
            )


@rule
def twins_stand_together(notebook):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        after = cells[place + 1] if place + 1 < len(cells) else None
        before = cells[place - 1] if place else None
        if "pytorch" in tags(cell):
            if after is None or "tensorflow" not in tags(after):
                yield (
                    f"{notebook.name(cell)}: is tagged pytorch; its twin, "
                    "tagged tensorflow, has to follow at once."
                )
            if re.search(r"(?<![\w.])(tf|keras)\.", cell.source):
                yield f"{notebook.name(cell)}: TensorFlow in a pytorch cell."
        if "tensorflow" in tags(cell):
            if before is None or "pytorch" not in tags(before):
                yield (
                    f"{notebook.name(cell)}: is tagged tensorflow; its twin, "
                    "tagged pytorch, has to stand right before it."
                )
            elif missing := twin_faults(before, cell):
                yield f"{notebook.name(cell)}: {missing}"
            if re.search(r"(?<![\w.])(torch|nn|F)\.", cell.source):
                yield f"{notebook.name(cell)}: PyTorch in a tensorflow cell."


def twin_faults(cell, twin):
    """Return what is wrong with the definitions of a pair, or None."""

    def defined(source):
        return {
            node.name: ast.get_docstring(node)
            for node in parsed(source).body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }

    theirs = defined(twin.source)
    for name, words in defined(cell.source).items():
        other = f"{name}TF" if name[0].isupper() else f"{name}_tf"
        if other not in theirs:
            return f"the twin of {name} is to be called {other}."
        if theirs[other] != words:
            return f"{other} and {name} have different docstrings."
    return None


@rule
def frameworks_are_proved_equal(notebook):
    for cell, tree in trees(notebook):
        names = {n.id for n in walk(tree) if isinstance(n, ast.Name)}
        asserts = any(isinstance(n, ast.Assert) for n in walk(tree))
        twins = any(name.endswith(("_tf", "TF")) for name in names)
        if asserts and twins and not tags(cell):
            return
    yield (
        f"{notebook.path.name}: no untagged cell asserts that PyTorch and "
        "TensorFlow give the same numbers."
    )


@rule
def code_is_plain(notebook):
    for cell, tree in trees(notebook):
        if re.search(r"filterwarnings|simplefilter", cell.source):
            yield f"{notebook.name(cell)}: silences warnings; mend the cause."
        if re.search(r"(?i)#\s*nbval", cell.source):
            yield f"{notebook.name(cell)}: switches the comparison off."
        for node in tree.body:
            if isinstance(node, ast.Expr) and is_print(node.value):
                yield (
                    f"{notebook.name(cell)}: print outside a loop; end the "
                    "cell with the expression."
                )
            elif (
                isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
            ):
                yield f"{notebook.name(cell)}: a star import."


def is_print(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "print"


@rule
def checks_can_fail(notebook):
    for cell, tree in trees(notebook):
        nodes = walk(tree)
        denied = {
            inside
            for node in nodes
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
            for inside in walk(node)
        }
        for node in nodes:
            if node not in denied and (why := hollow(node)):
                yield f"{notebook.name(cell)}: {ast.unparse(node)} {why}"


def hollow(node):
    """Return why a part of a check holds whatever is computed, or None."""
    match node:
        case ast.Compare(left, [ast.Eq()], [right]):
            if ast.dump(left) == ast.dump(right):
                return "compares a thing with itself: name the other one."
        case ast.keyword("atol" | "rtol", ast.Constant(tolerance)):
            if tolerance > MAX_TOLERANCE:
                return (
                    "lets nearly all numbers pass: at most "
                    f"{MAX_TOLERANCE}, but behind `not`."
                )
    return None


@rule
def assertions_say_all_or_none(notebook):
    for cell, tree in trees(notebook):
        for check in walk(tree):
            if isinstance(check, ast.Assert):
                for call in satisfied_by_one(check.test):
                    yield (
                        f"{notebook.name(cell)}: {ast.unparse(call)} lets one "
                        "of many suffice; if all are meant, no run shows the "
                        "slip. Say all of them, how many, or which."
                    )


def satisfied_by_one(test, word="any"):
    """Yield the calls of any in an assertion, and behind `not` those of all.

    With the other word an assertion says more, and its run shows if it holds.
    """
    match test:
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from satisfied_by_one(part, word)
        case ast.UnaryOp(ast.Not(), inside):
            yield from satisfied_by_one(inside, OPPOSITE[word])
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            if name in (word, f"reduce_{word}"):
                yield test


@rule
def names_are_read(notebook):
    words = [cell.source for cell in notebook.markdown]
    words += [alt_text(cell) for cell in notebook.code]
    read = set(re.findall(r"\w+", " ".join(words)))
    for _, tree in trees(notebook):
        for node in walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read |= {node.id, f"{node.id}_tf"}  # a twin may show less
    for cell, tree in trees(notebook):
        for node in tree.body:
            match node:
                case ast.Assign([ast.Name(name)]) if name not in read:
                    yield (
                        f"{notebook.name(cell)}: nobody reads {name!r}; "
                        "remove it, or use it."
                    )


@rule
def draws_are_seeded(notebook):
    for cell in notebook.code:
        if RANDOM.search(cell.source) and not SEED.search(cell.source):
            yield (
                f"{notebook.name(cell)}: draws at random without a seed in "
                "the same cell."
            )


@rule
def functions_have_docstrings(notebook):
    for cell, tree in trees(notebook):
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if not ast.get_docstring(node):
                    yield (
                        f"{notebook.name(cell)}: {node.name} has no "
                        "docstring; say what it takes, gives and raises."
                    )


@rule
def functions_read_no_globals(notebook):
    known = set(dir(builtins))
    for _, tree in trees(notebook):
        for node in walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known |= {
                    (a.asname or a.name).split(".")[0] for a in node.names
                }
        known |= {
            node.name
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
    for cell, _ in trees(notebook):
        if "def " not in cell.source:
            continue  # symtable is slow
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
def shape_comments_can_be_read(notebook):
    for cell, tree in trees(notebook):
        try:
            shapes.check_comments(cell.source, tree)
        except shapes.ShapeError as error:
            yield f"{notebook.name(cell)}: {error}"


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


@rule
def twins_say_the_same_shapes(notebook):
    for before, cell in pairwise(notebook.cells):
        if not ("pytorch" in tags(before) and "tensorflow" in tags(cell)):
            continue
        first, second = shapes_said(before.source), shapes_said(cell.source)
        for name in first.keys() & second.keys():
            short, long = sorted((first[name], second[name]), key=len)
            if not subsequence(short, long):
                yield (
                    f"{notebook.name(cell)}: says {second[name]} of {name}, "
                    f"and its twin {first[name]}. Correct the comment that "
                    "is wrong, or give the two other names."
                )


def shapes_said(source):
    """Map what a cell's shape comments describe to the shapes, in order.

    Names go without _tf, and shapes without axes of one.
    """
    try:
        tree, said = parsed(source), shapes.comments(source)
    except SyntaxError:
        return {}  # reported by cells_are_python
    found = {}
    for node in walk(tree):
        line = getattr(node, "end_lineno", None)
        if isinstance(node, shapes.STATEMENTS) and line in said:
            targets = getattr(node, "targets", None)
            kind = type(node).__name__.lower()
            name = ast.unparse(targets[0]) if targets else kind
            shape = said[line].partition(":")[0].strip("# ")
            shape = re.sub(r"\b1, |, 1\b", "", shape).replace(",)", ")")
            found.setdefault(re.sub(r"_tf\b", "", name), []).append(shape)
    return found


def subsequence(short, long):
    """Tell whether all of one list stands in another, in the same order."""
    rest = iter(long)
    return all(item in rest for item in short)


@rule
def reshaping_lines_say_their_shape(notebook):
    for cell, tree in trees(notebook):
        lines = shapes.comments(cell.source)
        for node in walk(tree):
            if (
                not isinstance(node, (ast.Assign, ast.Return))
                or not node.value
            ):
                continue
            calls = {
                sub.attr
                for sub in walk(node.value)
                if isinstance(sub, ast.Attribute)
            }
            if calls & RESHAPING and node.end_lineno not in lines:
                yield (
                    f"{notebook.name(cell)}: line {node.end_lineno} calls "
                    f"{sorted(calls & RESHAPING)[0]} and does not say the "
                    "shape it leaves: end it with one, as in # (B, T, D)."
                )
