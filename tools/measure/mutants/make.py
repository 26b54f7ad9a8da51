"""Make mutants: a notebook's code with one thing changed, one at a time.

They are read off the syntax tree of each code cell, so they are the same on
every run. A mutant is an edit of the text: comments, and with them the
checks of shapes, stay where they are. Nothing in here imports a framework.

Left alone are imports, docstrings, texts, and what only checks: that an
assertion is there, its message, tolerances, and `strict` in a call of zip.
"""

import ast
import copy
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256

from tools.net import shapes

# What is mistaken for what, in either direction.
PAIRS = """sin/cos exp/log sum/mean min/max argmin/argmax minimum/maximum
zeros/ones zeros_like/ones_like tril/triu all/any floor/ceil sqrt/square
softmax/log_softmax reduce_sum/reduce_mean reduce_min/reduce_max
reduce_all/reduce_any logical_and/logical_or"""
FUNCTIONS = dict(pair.split("/") for pair in PAIRS.split())
FUNCTIONS |= {after: before for before, after in FUNCTIONS.items()}
NAMES = {
    **{"query": "key", "key": "query", "value": "key"},
    **{"d_head": "d_model", "d_model": "d_head", "num_heads": "d_head"},
    **{"query_len": "key_len", "key_len": "query_len"},
    **{"seq_len": "batch_size", "batch_size": "seq_len"},
}
OPERATORS = {
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/")},
    **{ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*")},
    **{ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&")},
}
COMPARISONS = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot},
}
# Calls without which their first argument, or their array, is still of use.
REMOVABLE = """transpose permute swapaxes moveaxis reshape view unsqueeze
expand_dims squeeze flatten expand sqrt softmax masked_fill where abs round
exp dropout astype cast clip clamp cumsum max detach clone copy stop_gradient
eval nan_to_num sorted set flip lower strip square contiguous""".split()
# Calls whose value does not depend on the order of their first arguments.
SYMMETRIC = """allclose isclose equal array_equal assert_allclose maximum
minimum add logical_and logical_or transpose swapaxes isinstance""".split()
MODULES = {"torch", "tf", "np", "math", "F", "nn", "keras", "plt"}
AXES = {"dim", "axis", "axes", "dims", "perm"}
OTHER_AXIS = {-1: -2, -2: -1, -3: -2, 0: 1, 1: 0, 2: 1, 3: 2}
# Arguments that check and change nothing where the check holds.
CHECKS = {"atol", "rtol", "strict"}
# Statements that a cell can lose.
DELETABLE = ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.Return


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
    id: str = ""  # the same as long as what changes stays the same

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

    def __str__(self):
        before, after = self.lines
        place = f"book/{self.notebook}.ipynb [{self.cell}]"
        return f"{place} {self.kind}\n    - {before}\n    + {after}"


def mutants(notebook):
    """Return the mutants of a notebook's code, in the order of its cells.

    An id is made of what changes, and of how often the same change stood
    above; a cell that is inserted elsewhere moves none.
    """
    found, above = {}, Counter()
    for number, cell in enumerate(notebook.code, 1):
        for kind, scope, *edit in Mutator(cell.source).edits():
            place = notebook.path.stem, number, kind, scope
            mutant = Mutant(*place, cell.source, *edit)
            if not is_other_code(mutant) or (number, mutant.mutated) in found:
                continue
            change = notebook.path.stem, scope, *mutant.lines
            above[change] += 1
            digest = sha256(repr((*change, above[change])).encode())
            mutant = replace(mutant, id=digest.hexdigest()[:12])
            found[number, mutant.mutated] = mutant
    return list(found.values())


def is_other_code(mutant):
    """Tell whether a mutant is Python and not the same program."""
    with suppress(SyntaxError):
        return dump(mutant.mutated) != dump(mutant.source)
    return False


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
        self.names = {n.id for n in nodes if isinstance(n, ast.Name)}
        self.names |= {n.arg for n in nodes if isinstance(n, ast.arg)}

    def edits(self):
        yield from self.visit(self.tree, "", False)

    def visit(self, node, scope, asserted):
        """Yield the edits of a node and of all below it."""
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
            return  # the places of what is in an f-string are not known
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not scope:
            scope = node.name
        asserted = asserted or isinstance(node, ast.Assert)
        edits = getattr(self, type(node).__name__, lambda node: ())
        for kind, *edit in edits(node):
            yield kind, scope, *edit
        if not asserted and isinstance(getattr(node, "body", None), list):
            for kind, *edit in self.deletions(node):
                yield kind, scope, *edit
        for child in children(node):
            yield from self.visit(child, scope, asserted)

    # Where a node stands, and what replaces it

    def span(self, node):
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def put(self, kind, node, new):
        """Return the edit that puts text, or another node, for a node."""
        if isinstance(new, ast.AST):
            whole = ast.Call, ast.Name, ast.Attribute, ast.Tuple
            text = ast.unparse(new)
            new = text if isinstance(new, whole) else f"({text})"
        return kind, *self.span(node), new

    # Expressions

    def BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            turned = ast.BinOp(node.right, node.op, node.left)
            yield self.put("arguments", node, turned)
        if symbols := OPERATORS.get(type(node.op)):
            start, end = self.span(node.left)[1], self.span(node.right)[0]
            start += self.raw[start:end].index(symbols[0].encode())
            yield "operator", start, start + len(symbols[0]), symbols[1]
        yield self.put("term", node, node.left)

    def Compare(self, node):
        for place, operator in enumerate(node.ops):
            if opposite := COMPARISONS.get(type(operator)):
                other = copy.deepcopy(node)
                other.ops[place] = opposite()
                yield self.put("comparison", node, other)

    def UnaryOp(self, node):
        if ast.unparse(node) in ("-torch.inf", "-np.inf", "-math.inf"):
            yield self.put("published", node, "-1e9")
        if not isinstance(node.operand, ast.Constant):  # see Constant
            yield self.put("polarity", node, node.operand)

    def If(self, node):
        opposite = ast.UnaryOp(ast.Not(), node.test)
        yield self.put("polarity", node.test, opposite)

    def Constant(self, node):
        if type(node.value) is bool:
            yield self.put("polarity", node, repr(not node.value))
        elif type(node.value) is int:
            yield self.put("constant", node, repr(node.value + 1))
        elif type(node.value) is float:
            yield self.put("constant", node, repr(node.value * 2 or 1.0))
        if node.value == 10000:
            yield self.put("published", node, "1000")

    def Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in NAMES:
            if NAMES[node.id] in self.names:
                yield self.put("name", node, NAMES[node.id])

    def Attribute(self, node):
        if node.attr in ("mT", "T"):
            yield self.put("removal", node, node.value)

    def Call(self, node):
        name = called(node)
        if name in FUNCTIONS:
            end = self.span(node.func)[1]
            yield "function", end - len(name), end, FUNCTIONS[name]
        if name in REMOVABLE and (inner := inside(node)):
            yield self.put("removal", node, inner)
        if name in ("transpose", "swapaxes", "permute") and is_method(node):
            array, shape = ast.unparse(node.func.value), ast.unparse(node)
            text = f"{array}.reshape({shape}.shape)"
            yield self.put("published", node, text)
        if name in ("range", "arange") and node.args:
            last = node.args[min(len(node.args), 2) - 1]
            if not isinstance(last, ast.Constant):
                yield self.put("range", last, f"{ast.unparse(last)} - 1")
        swapped = node.args[:2]
        if len(swapped) == 2 and name not in SYMMETRIC:
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
            with suppress(ValueError, TypeError, KeyError):
                axis = OTHER_AXIS[ast.literal_eval(node.value)]
                yield self.put("axis", node.value, repr(axis))

    # Statements

    def deletions(self, parent):
        """Yield the deletion of each statement of a block.

        Without the first binding of a name nothing runs: that would show
        nothing.
        """
        nodes = list(ast.walk(parent))
        bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
        for block in ("body", "orelse", "finalbody"):
            for node in getattr(parent, block, []):
                again = stored(node) <= bound and isinstance(node, DELETABLE)
                bound |= stored(node)
                docstring = isinstance(getattr(node, "value", 0), ast.Constant)
                if again and not (isinstance(node, ast.Expr) and docstring):
                    end = self.line_end(node)
                    yield "statement", self.span(node)[0], end, "pass"

    def line_end(self, node):
        """Return where a statement ends, its shape comment included."""
        end = self.span(node)[1]
        if node.end_lineno in self.comments:
            return len(self.raw[: self.starts[node.end_lineno]].rstrip(b"\n"))
        return end


def children(node):
    """Yield the nodes below a node that may be changed."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "msg", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            checks = isinstance(child, ast.keyword) and child.arg in CHECKS
            if isinstance(child, ast.AST) and not checks:
                yield child


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
    return root not in MODULES or "(" in ast.unparse(node.func.value)


def stored(node):
    """Return the names that a statement binds."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}
