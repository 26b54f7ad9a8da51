"""Turn shape comments into assertions.

`scores = query @ key.mT  # (B, T, S)` is rewritten so that running the cell
checks the comment. Each letter stands for one size per cell and per call of
a function; `...` stands for any leading axes, `H * K` and `T - 1` for what
they compute, `()` for a scalar. Several shapes, divided by commas, belong to
a tuple: `return output, weights  # (T, V), (T, S)`. A remark may follow
behind a colon. The comment stands on the last line of its statement.

What is known beforehand: a function's letters have the sizes of its
parameters, where their names are in NAMES or its docstring gives their
shapes, `query (..., T, K)`; a cell's letters those of the names in NAMES that
it uses.
"""

import ast
import io
import re
import tokenize
from functools import cache

LETTERS = set("BTSDHKVNFC")
NAMES = {  # what book/notation.md calls the size of a letter in code
    "batch_size": "B",
    "seq_len": "T",
    "query_len": "T",
    "key_len": "S",
    "d_model": "D",
    "num_heads": "H",
    "d_head": "K",
    "d_value": "V",
    "vocab_size": "N",
    "d_ff": "F",
}
STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
SIZES = "__sizes__"  # the sizes of the letters in the scope that runs
CHECK = "__check_shape__"
OPEN = "__open_scope__"
SHAPED = re.compile(r"#\s*\(")  # how a shape comment begins
# In a docstring: `query (..., T, K), key and value (..., S, K)`, and no
# second shape to choose from.
SIZE = r"(?:[A-Z]|\d+)(?: (?:[*+-] )?(?:[A-Z]|\d+))*"  # or 3 D, for 3 * D
SHAPE = rf"\((?:(?:\.\.\.|{SIZE})(?:, |,?(?=\))))+\)"
DESCRIBED = re.compile(
    rf"\b((?:\w+(?:,\s+|\s+and\s+))*\w+)\s+({SHAPE})(?!,?\s*(?:or\s+)?\()"
)


class ShapeError(AssertionError):
    """A shape comment is wrong, unreadable, or stands where none can."""


@cache
def comments(source):
    """Map the lines of a cell's shape comments to their text."""
    if not SHAPED.search(source):
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: token.string
        for token in tokens
        if token.type == tokenize.COMMENT and SHAPED.match(token.string)
    }


@cache
def parse(comment):
    """Return the shapes of a comment, each a list of its sizes' texts."""
    text = comment.lstrip("# ").split(":")[0].strip()
    text = re.sub(r"(?<=\w) (?=[A-Z\d])", " * ", text)
    unreadable = ShapeError(
        f"{comment!r} cannot be read as a shape: write (B, T), (T,), () or "
        "(..., T, S), a remark behind a colon, and start a comment that is "
        "no shape without a parenthesis."
    )
    try:
        shapes = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise unreadable from None
    if not isinstance(shapes, ast.Tuple):
        raise unreadable
    several = shapes.elts and all(
        isinstance(s, ast.Tuple) for s in shapes.elts
    )
    shapes = shapes.elts if several else [shapes]
    names = {
        n.id for s in shapes for n in ast.walk(s) if isinstance(n, ast.Name)
    }
    if names - LETTERS:
        raise ShapeError(
            f"{comment!r} uses {sorted(names - LETTERS)}: the letters of "
            f"book/notation.md are {' '.join(sorted(LETTERS))}."
        )
    return [[ast.unparse(size) for size in shape.elts] for shape in shapes]


def shape_of(value):
    """Return the shape of an array, a number or a nested list as a tuple."""
    if hasattr(value, "shape"):
        # A compiled function may not know a size: it is None, and fits.
        return tuple(n if n is None else int(n) for n in value.shape)
    if isinstance(value, (list, tuple)):
        return (len(value), *(shape_of(value[0]) if value else ()))
    return ()


def known_sizes(variables, described):
    """Return the sizes of letters that a cell's or call's variables say.

    described: the shapes that a docstring gives to some of the variables.
    """
    known = {}
    for name, size in variables.items():
        if name in NAMES and isinstance(size, int):
            known.setdefault(NAMES[name], size)
    for name, comment in described.items():
        sizes = dict(known)
        # A call that is wrong on purpose says nothing of the sizes.
        if fits(parse(comment)[0], shape_of(variables[name]), sizes):
            known = sizes
    return known


def hooks(faults):
    """Return what rewritten code calls, as variables for its namespace.

    faults: a list that receives a message for each line whose shape is wrong.
    """

    def checked(value, comment, sizes, place):
        try:
            check_shape(value, comment, sizes, place)
        except ShapeError as error:
            if not any(fault.startswith(f"{place}: ") for fault in faults):
                faults.append(str(error))
        return value

    return {CHECK: checked, OPEN: known_sizes}


def check_shape(value, comment, sizes, place):
    """Raise ShapeError, with both shapes, unless a comment is true.

    sizes maps letters to sizes and receives the letters that are new.
    place: what a message calls the line, 'book/masks.ipynb [3], line 2'.
    """
    shapes = parse(comment)
    values = [value] if len(shapes) == 1 else list(value)
    wrong = None
    if len(values) != len(shapes):
        wrong = f"{len(values)} values"
    try:
        for shape, one in zip(shapes, values, strict=False):
            if not fits(shape, actual := shape_of(one), sizes):
                wrong = f"the shape {actual}"
                break
    except NameError as error:
        raise ShapeError(
            f"{place}: {error.name} has no size yet where a shape computes "
            "with it. Correct the comment, or let it stand alone in a shape "
            "above, in the same cell or call."
        ) from None
    if wrong:
        known = ", ".join(f"{k}={v}" for k, v in sorted(sizes.items()))
        raise ShapeError(
            f"{place}: the comment says {comment.lstrip('# ')}, the code "
            f"gives {wrong}{f' where {known}' if known else ''}. "
            "Correct the comment or the code."
        )


def fits(shape, actual, sizes):
    """Tell whether an actual shape fits; bind the letters that are new."""
    if shape and shape[0] == "...":
        shape = shape[1:]
        actual = actual[max(len(actual) - len(shape), 0) :]
    if len(shape) != len(actual):
        return False
    for text, size in zip(shape, actual, strict=True):
        if text in LETTERS and size is not None:
            sizes.setdefault(text, size)
    expected = [
        # Most are letters, and calls are many.
        size
        if size is None
        else sizes.get(text) or eval(code(text), {}, sizes)
        for text, size in zip(shape, actual, strict=True)
    ]
    return expected == list(actual)


@cache
def code(text):
    """Return what computes a size, such as H * K."""
    return compile(text, "shape", "eval")


class Rewriter(ast.NodeTransformer):
    """Wrap the value of every statement that a shape comment ends."""

    def __init__(self, shape_comments, cell):
        self.waiting = dict(shape_comments)
        self.cell = cell
        self.docstring = ""

    def wrapped(self, value, comment, line):
        place = f"{self.cell}, line {line}"
        call = f"{CHECK}(None, {comment!r}, {SIZES}, {place!r})"
        call = ast.parse(call).body[0].value
        call.args[0] = value
        return call

    def visit_statement(self, node):
        line = node.end_lineno
        comment = self.waiting.pop(line, None)
        if comment is not None and node.value is not None:
            node.value = self.wrapped(node.value, comment, line)
        return self.generic_visit(node)

    visit_Assign = visit_AnnAssign = visit_Expr = visit_statement
    visit_Return = visit_statement

    def generic_visit(self, node):
        # No statement stands in an expression.
        return (
            node if isinstance(node, ast.expr) else super().generic_visit(node)
        )

    def visit_AugAssign(self, node):
        line = node.end_lineno
        comment = self.waiting.pop(line, None)
        if comment is None:
            return node
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        checked = ast.Expr(self.wrapped(target, comment, line))
        return [node, ast.copy_location(checked, node)]

    def opened(self, names, described):
        variables = {*(names & NAMES.keys()), *described}
        inside = ", ".join(f"{name!r}: {name}" for name in sorted(variables))
        call = f"{OPEN}({{{inside}}}, {described})"
        return ast.parse(f"{SIZES} = {call}").body[0]

    def visit_FunctionDef(self, node):
        words = ast.get_docstring(node) or self.docstring
        names = {a.arg for a in node.args.args + node.args.kwonlyargs}
        described = {
            name: shape
            for several, shape in DESCRIBED.findall(words)
            if (group := set(re.split(r",\s+|\s+and\s+", several))) <= names
            for name in group
        }
        self.generic_visit(node)
        node.body.insert(0, self.opened(names, described))
        return node

    def visit_ClassDef(self, node):
        self.docstring = ast.get_docstring(node) or ""
        self.generic_visit(node)
        self.docstring = ""
        return node


def names_used(tree):
    """Return the names that a cell uses, and does not set, outside of defs."""
    used, names = [tree], {ast.Load: set(), ast.Store: set()}
    while used:
        node = used.pop()
        if isinstance(node, ast.Name):
            names[type(node.ctx)].add(node.id)
        used += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, (ast.FunctionDef, ast.ClassDef))
        ]
    return names[ast.Load] - names[ast.Store]


def check_comments(source, tree):
    """Raise ShapeError for a comment that is unread or has no statement.

    tree: the syntax tree of the source.
    """
    if not (found := comments(source)):
        return
    ends = {n.end_lineno for n in ast.walk(tree) if isinstance(n, STATEMENTS)}
    for line, comment in found.items():
        parse(comment)
        if line not in ends:
            raise ShapeError(
                f"line {line}: the shape {comment.lstrip('# ')} stands on no "
                "assignment, return or expression; put it on the last line "
                "of the statement that it describes."
            )


def rewrite(source, cell="the cell"):
    """Return a cell's syntax tree with its shape comments as checks.

    cell: its name in messages. Raises ShapeError for a comment that cannot
    be read or has no statement.
    """
    tree = ast.parse(source)
    check_comments(source, tree)
    rewriter = Rewriter(comments(source), cell)
    opened = rewriter.opened(names_used(tree), {})
    tree = rewriter.visit(tree)
    tree.body.insert(0, opened)
    return tree
