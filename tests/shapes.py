"""Turn shape comments into assertions.

`scores = query @ key.mT  # (B, T, S)` is rewritten so that running the cell
checks the comment. Each letter stands for one size per cell and per call of
a function; `...` stands for any leading axes, `H * K` and `T - 1` for what
they compute, `()` for a scalar. Several shapes, divided by commas, belong to
a tuple: `return output, weights  # (T, V), (T, S)`. A remark may follow
behind a colon. The comment stands on the last line of its statement.
"""

import ast
import io
import re
import tokenize

LETTERS = set("BTSDHKVNFC")
SIZES = "__sizes__"  # the sizes of the letters in the scope that runs
CHECK = "__check_shape__"


class ShapeError(AssertionError):
    """A shape comment is wrong, unreadable, or stands where none can."""


def comments(source):
    """Map the lines of a cell's shape comments to their text."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = {
        t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT
    }
    return {n: text for n, text in texts.items() if re.match(r"#\s*\(", text)}


def parse(comment):
    """Return the shapes of a comment, each a list of dimension nodes."""
    text = comment.lstrip("# ").split(":")[0].strip()
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
    return [shape.elts for shape in shapes]


def shape_of(value):
    """Return the shape of an array, a number or a nested list as a tuple."""
    if hasattr(value, "shape"):
        # A compiled function may not know a size: it is None, and fits.
        return tuple(n if n is None else int(n) for n in value.shape)
    if isinstance(value, (list, tuple)):
        return (len(value), *(shape_of(value[0]) if value else ()))
    return ()


def check_shape(value, comment, sizes):
    """Return `value` if its shape is what the comment says.

    sizes maps letters to sizes and receives the letters that are new.
    Raises ShapeError with both shapes.
    """
    shapes = parse(comment)
    values = [value] if len(shapes) == 1 else list(value)
    wrong = None
    if len(values) != len(shapes):
        wrong = f"{len(values)} values"
    for shape, one in zip(shapes, values, strict=False):
        if not fits(shape, actual := shape_of(one), sizes):
            wrong = f"the shape {actual}"
            break
    if wrong:
        known = ", ".join(f"{k}={v}" for k, v in sorted(sizes.items()))
        raise ShapeError(
            f"the comment says {comment.lstrip('# ')}, the code gives {wrong}"
            f"{f' where {known}' if known else ''}. "
            "Correct the comment or the code."
        )
    return value


def fits(shape, actual, sizes):
    """Tell whether an actual shape fits; bind the letters that are new."""
    if shape and ast.unparse(shape[0]) == "...":
        shape = shape[1:]
        actual = actual[max(len(actual) - len(shape), 0) :]
    if len(shape) != len(actual):
        return False
    for node, size in zip(shape, actual, strict=True):
        if isinstance(node, ast.Name) and size is not None:
            sizes.setdefault(node.id, size)
    try:
        expected = [
            size if size is None else eval(ast.unparse(node), {}, dict(sizes))
            for node, size in zip(shape, actual, strict=True)
        ]
    except NameError as error:
        raise ShapeError(
            f"{error.name} has no size yet where a shape computes with it: "
            "let it stand alone in a shape above, in the same cell or call."
        ) from None
    return expected == list(actual)


class Rewriter(ast.NodeTransformer):
    """Wrap the value of every statement that a shape comment ends."""

    def __init__(self, shape_comments):
        self.waiting = dict(shape_comments)

    def wrapped(self, value, comment):
        call = ast.parse(f"{CHECK}(None, {comment!r}, {SIZES})").body[0].value
        call.args[0] = value
        return call

    def visit_statement(self, node):
        comment = self.waiting.pop(node.end_lineno, None)
        if comment is not None and node.value is not None:
            node.value = self.wrapped(node.value, comment)
        return self.generic_visit(node)

    visit_Assign = visit_AnnAssign = visit_Return = visit_Expr = (
        visit_statement
    )

    def visit_AugAssign(self, node):
        comment = self.waiting.pop(node.end_lineno, None)
        if comment is None:
            return node
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        return [node, ast.Expr(self.wrapped(target, comment))]

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.body.insert(0, ast.parse(f"{SIZES} = {{}}").body[0])
        return node


def rewrite(source):
    """Return a cell's syntax tree with its shape comments as checks.

    Raises ShapeError for a comment that cannot be read or has no statement.
    """
    found = comments(source)
    for comment in found.values():
        parse(comment)
    rewriter = Rewriter(found)
    tree = rewriter.visit(ast.parse(source))
    if rewriter.waiting:
        line, comment = rewriter.waiting.popitem()
        raise ShapeError(
            f"line {line}: the shape {comment.lstrip('# ')} stands on no "
            "assignment, return or expression; put it on the last line of "
            "the statement that it describes."
        )
    tree.body.insert(0, ast.parse(f"{SIZES} = {{}}").body[0])
    return ast.fix_missing_locations(tree)
