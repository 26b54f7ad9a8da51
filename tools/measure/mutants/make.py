"""Make mutants: a notebook's code with one thing changed, one at a time.

They are read off the syntax tree of each code cell, so they are the same on
every run. A mutant is an edit of the text: comments, and with them the
checks of shapes, stay where they are. Nothing in here imports a framework.

Left alone are imports, docstrings, and what only checks: that an assertion is
there, its message, tolerances, and `strict` in a call of zip.
"""

import ast
import copy
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest

from tools.net import shapes
from tools.net.rules.code import SEED

# What is mistaken for what, in either direction.
PAIRS = [
    *(("sin", "cos"), ("exp", "log"), ("sum", "mean"), ("min", "max")),
    *(("argmin", "argmax"), ("minimum", "maximum"), ("zeros", "ones")),
    *(("zeros_like", "ones_like"), ("tril", "triu"), ("all", "any")),
    *(("floor", "ceil"), ("sqrt", "square"), ("softmax", "log_softmax")),
    *(("reduce_sum", "reduce_mean"), ("reduce_min", "reduce_max")),
    *(("reduce_all", "reduce_any"), ("logical_and", "logical_or")),
]
FUNCTIONS = {**dict(PAIRS), **{b: a for a, b in PAIRS}}
NAMES = {
    **{"query": "key", "key": "query", "value": "key"},
    **{"d_head": "d_model", "d_model": "d_head", "num_heads": "d_head"},
    **{"query_len": "key_len", "key_len": "query_len"},
    **{"seq_len": "batch_size", "batch_size": "seq_len"},
}
OPERATORS = {
    **{ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"},
    **{ast.FloorDiv: "*", ast.Mod: "*", ast.Pow: "*"},
    **{ast.BitAnd: "|", ast.BitOr: "&"},
}
COMPARISONS = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot},
    **{ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
SYMBOLS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"},
    **{ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"},
    **{ast.BitAnd: "&", ast.BitOr: "|"},
}
# Calls without which their first argument, or their array, is still of use.
REMOVABLE = {
    *("transpose", "permute", "swapaxes", "moveaxis", "reshape", "view"),
    *("unsqueeze", "expand_dims", "squeeze", "flatten", "expand"),
    *("sqrt", "softmax", "masked_fill", "where", "abs", "round", "exp"),
    *("dropout", "astype", "cast", "clip", "clamp", "cumsum", "max"),
    *("detach", "clone", "copy", "stop_gradient", "eval", "nan_to_num"),
    *("sorted", "set", "flip", "lower", "strip", "square", "contiguous"),
}
# Calls whose value does not depend on the order of their first arguments.
SYMMETRIC = {
    *("allclose", "isclose", "equal", "array_equal", "assert_allclose"),
    *("maximum", "minimum", "add", "logical_and", "logical_or"),
    *("transpose", "swapaxes", "isinstance"),
}
AXES = {"dim", "axis", "axes", "dims", "perm"}
OTHER_AXIS = {-1: -2, -2: -1, -3: -2, 0: 1, 1: 0, 2: 1, 3: 2}
# Arguments that check and change nothing where the check holds.
CHECKS = {"atol", "rtol", "strict"}


@dataclass(frozen=True)
class Mutant:
    """One change of one code cell."""

    notebook: str  # the chapter's name
    cell: int  # counted from 1, code cells only
    kind: str
    scope: str  # the definition that is changed; "" outside of any
    source: str
    start: int  # the change begins here in the bytes of the source
    end: int
    text: str  # what stands there instead

    @cached_property
    def mutated(self):
        """Return the cell's source with the change made."""
        raw = self.source.encode()
        text = raw[: self.start] + self.text.encode() + raw[self.end :]
        return text.decode()

    @cached_property
    def lines(self):
        """Return (before, after): the changed lines without their spacing."""
        before, after = self.source.encode(), self.mutated.encode()
        first = before.rfind(b"\n", 0, self.start) + 1
        rest = (before + b"\n").index(b"\n", self.end) - len(before)
        return tuple(
            " ".join(raw[first : len(raw) + rest].decode().split())
            for raw in (before, after)
        )

    @property
    def id(self):
        return f"{self.cell} {self.start} {self.end} {self.text}"

    def __str__(self):
        before, after = self.lines
        place = f"book/{self.notebook}.ipynb [{self.cell}]"
        return f"{place} {self.kind}\n    - {before}\n    + {after}"


def mutants(notebook):
    """Return the mutants of a notebook's code, in the order of its cells."""
    found = {}
    for number, cell in enumerate(notebook.code, 1):
        for kind, scope, *edit in Mutator(cell.source).edits():
            place = notebook.path.stem, number, kind, scope
            mutant = Mutant(*place, cell.source, *edit)
            if is_other_code(mutant):
                found.setdefault((number, mutant.mutated), mutant)
    return list(found.values())


def is_other_code(mutant):
    """Tell whether a mutant is Python and not the same program."""
    try:
        tree = ast.parse(mutant.mutated)
    except SyntaxError:
        return False
    return ast.dump(tree) != dump(mutant.source)


@cache
def dump(source):
    return ast.dump(ast.parse(source))


class Mutator:
    """Yield the edits of one cell, as (kind, scope, start, end, text)."""

    def __init__(self, source):
        self.raw = source.encode()
        self.tree = ast.parse(source)
        self.starts = [0]
        for line in self.raw.splitlines(True):
            self.starts.append(self.starts[-1] + len(line))
        self.comments = shapes.comments(source)
        nodes = list(ast.walk(self.tree))
        self.names = {node.id for node in nodes if is_name(node)}
        self.names |= {node.arg for node in nodes if is_argument(node)}

    def edits(self):
        yield from self.visit(self.tree, "", False)

    def visit(self, node, scope, asserted):
        """Yield the edits of a node and of all below it."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not scope:
            scope = node.name
        asserted = asserted or isinstance(node, ast.Assert)
        for kind, *edit in self.edits_of(node, asserted):
            yield kind, scope, *edit
        if isinstance(node, ast.JoinedStr):
            return  # the places of what is in an f-string are not known
        for child in children(node):
            yield from self.visit(child, scope, asserted)

    def edits_of(self, node, asserted):
        name = type(node).__name__
        yield from getattr(self, name, lambda node: ())(node)
        if not asserted:
            if isinstance(getattr(node, "body", None), list):
                yield from self.statements(node)
            if isinstance(node, ast.Constant) and type(node.value) is str:
                yield self.put("text", node, repr(node.value + "!"))

    # Where a node stands, and what replaces it

    def span(self, node):
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def put(self, kind, node, new):
        """Return the edit that puts text, or another node, for a node."""
        if isinstance(new, ast.AST):
            whole = isinstance(
                new, (ast.Call, ast.Name, ast.Attribute, ast.Tuple)
            )
            new = ast.unparse(new) if whole else f"({ast.unparse(new)})"
        return kind, *self.span(node), new

    def between(self, kind, left, right, symbol, new):
        """Return the edit that changes an operator between two nodes."""
        start, end = self.span(left)[1], self.span(right)[0]
        start += self.raw[start:end].index(symbol.encode())
        return kind, start, start + len(symbol), new

    # Expressions

    def BinOp(self, node):
        operator = type(node.op)
        if operator is ast.MatMult:
            turned = ast.BinOp(node.right, node.op, node.left)
            yield self.put("arguments", node, turned)
        elif operator in OPERATORS:
            sides = node.left, node.right
            symbols = SYMBOLS[operator], OPERATORS[operator]
            yield self.between("operator", *sides, *symbols)
        yield self.put("term", node, node.left)

    def AugAssign(self, node):
        operator = type(node.op)
        if operator in OPERATORS:
            sides = node.target, node.value
            symbols = SYMBOLS[operator], OPERATORS[operator]
            yield self.between("operator", *sides, *symbols)

    def Compare(self, node):
        for place, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[place] = COMPARISONS[type(operator)]()
            yield self.put("comparison", node, other)

    def BoolOp(self, node):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield self.put("comparison", node, ast.BoolOp(other, node.values))

    def UnaryOp(self, node):
        if ast.unparse(node) in ("-torch.inf", "-np.inf", "-math.inf"):
            yield self.put("published", node, "-1e9")
        if not isinstance(node.operand, ast.Constant):  # see Constant
            yield self.put("polarity", node, node.operand)

    def IfExp(self, node):
        turned = ast.IfExp(node.test, node.orelse, node.body)
        yield self.put("polarity", node, turned)

    def If(self, node):
        opposite = ast.UnaryOp(ast.Not(), node.test)
        yield self.put("polarity", node.test, opposite)

    While = If

    def Constant(self, node):
        if type(node.value) is bool:
            yield self.put("polarity", node, repr(not node.value))
        elif type(node.value) is int:
            yield self.put("constant", node, repr(node.value + 1))
        elif type(node.value) is float:
            yield self.put("constant", node, repr(node.value * 2 or 1.0))
        if node.value == 10000:
            yield self.put("published", node, "1000")

    def JoinedStr(self, node):
        other = copy.deepcopy(node)
        other.values.append(ast.Constant("!"))
        yield self.put("text", node, other)

    def Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in NAMES:
            if NAMES[node.id] in self.names:
                yield self.put("name", node, NAMES[node.id])

    def Attribute(self, node):
        if node.attr in ("mT", "T"):
            yield self.put("removal", node, node.value)

    def Slice(self, node):
        for bound, sign in ((node.lower, "+"), (node.upper, "-")):
            if bound and not isinstance(bound, ast.Constant):
                text = f"{ast.unparse(bound)} {sign} 1"
                yield self.put("range", bound, text)

    def Call(self, node):
        name = called(node)
        if name in FUNCTIONS:
            end = self.span(node.func)[1]
            yield "function", end - len(name), end, FUNCTIONS[name]
        if name in REMOVABLE and (inner := inside(node)):
            yield self.put("removal", node, inner)
        if name in ("transpose", "swapaxes", "permute") and is_method(node):
            array = ast.unparse(node.func.value)
            shape = f"{ast.unparse(node)}.shape"
            text = f"{array}.reshape({shape})"
            yield self.put("published", node, text)
        if name in ("range", "arange") and node.args:
            last = node.args[min(len(node.args), 2) - 1]
            if not isinstance(last, ast.Constant):
                text = f"{ast.unparse(last)} - 1"
                yield self.put("range", last, text)
        yield from self.other_arguments(node)

    def other_arguments(self, node):
        """Yield the exchange of a call's first two, and each keyword's loss.

        Nothing is exchanged where the order does not count.
        """
        swapped = node.args[:2]
        if len(swapped) == 2 and called(node) not in SYMMETRIC:
            if not any(isinstance(a, ast.Starred) for a in swapped):
                turned = [*swapped[::-1], *node.args[2:]]
                other = ast.Call(node.func, turned, node.keywords)
                yield self.put("arguments", node, other)
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in CHECKS:
                kept = [k for k in node.keywords if k is not keyword]
                other = ast.Call(node.func, node.args, kept)
                yield self.put("keyword", node, other)

    def keyword(self, node):
        if node.arg in AXES:
            try:
                axes = ast.literal_eval(node.value)
            except ValueError:
                return
            if isinstance(axes, (tuple, list)):
                yield self.put("axis", node.value, repr(axes[::-1]))
            elif axes in OTHER_AXIS:
                yield self.put("axis", node.value, repr(OTHER_AXIS[axes]))

    # Statements

    def Return(self, node):
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            turned = ast.Tuple(node.value.elts[::-1], ast.Load())
            yield self.put("arguments", node.value, turned)

    def statements(self, parent):
        """Yield deletions and exchanges of the statements of a block.

        Without the first binding of a name, or before it, nothing runs:
        that would show nothing.
        """
        bound = {arg.arg for arg in ast.walk(parent) if is_argument(arg)}
        for block in ("body", "orelse", "finalbody"):
            nodes = getattr(parent, block, [])
            for node, after in zip_longest(nodes, nodes[1:]):
                again = is_deletable(node) and not stored(node) - bound
                bound |= stored(node)
                if not again or ast.unparse(node) == "return None":
                    continue
                text = self.line(node).decode()
                kind = "seed" if SEED.search(text) else "statement"
                place = self.span(node)[0], self.line_end(node)
                yield kind, *place, "pass"
                if after and is_deletable(after) and stored(node):
                    if stored(node) & stored(after):
                        gap = self.raw[place[1] : self.span(after)[0]]
                        both = self.line(after) + gap + self.line(node)
                        end = self.line_end(after)
                        yield "order", place[0], end, both.decode()

    def line(self, node):
        return self.raw[self.span(node)[0] : self.line_end(node)]

    def line_end(self, node):
        """Return where a statement ends, its shape comment included."""
        end = self.span(node)[1]
        if node.end_lineno in self.comments:
            return len(self.raw[: self.starts[node.end_lineno]].rstrip(b"\n"))
        return end


def children(node):
    """Yield the nodes below a node that may be changed."""
    docstring = ast.get_docstring(node) if is_documented(node) else None
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "msg", "decorator_list"):
            continue
        for place, child in enumerate(
            value if isinstance(value, list) else [value]
        ):
            is_docstring = docstring and field == "body" and place == 0
            if is_docstring or not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.keyword) and child.arg in CHECKS:
                continue
            yield child


def is_documented(node):
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def is_name(node):
    return isinstance(node, ast.Name)


def is_argument(node):
    return isinstance(node, ast.arg)


def called(node):
    """Return the last name of what a call calls, or None."""
    function = node.func
    return getattr(function, "attr", getattr(function, "id", None))


def inside(node):
    """Return the array that a call changes, or None."""
    if is_method(node):
        return node.func.value
    return node.args[0] if node.args else None


def is_method(node):
    """Tell a call of an array's method from one of a module's function."""
    if not isinstance(node.func, ast.Attribute):
        return False
    root = ast.unparse(node.func.value).split(".")[0]
    modules = {"torch", "tf", "np", "math", "F", "nn", "keras", "plt"}
    return root not in modules or "(" in ast.unparse(node.func.value)


def is_deletable(node):
    """Tell whether a cell can lose a statement, or exchange it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    return isinstance(
        node,
        (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.Return),
    )


def stored(node):
    """Return the names that a statement binds."""
    names = filter(is_name, ast.walk(node))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}
