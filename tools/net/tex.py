r"""Read a formula in TeX as an expression of Python.

`\frac{2 i}{d}` becomes `over(times(2, i), d)`; what such an expression calls
is in MEANING. The reader knows what the chapters' formulas are made of: sums,
roots, sines, indices, small matrices, cases. It raises Unread for the rest.
"""

import math
import re
from itertools import count

import numpy as np

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\S")
IGNORED = {r"\,", r"\;", r"\:", r"\!", "\\ ", r"\quad", "~", r"\left"}
IGNORED |= {r"\right", r"\big", r"\Big"}
CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
DEEPER, HIGHER = {*CLOSED_BY, r"\begin"}, {*CLOSED_BY.values(), r"\end"}
FUNCTIONS = {r"\sin", r"\cos", r"\ln", r"\exp"}
RELATIONS = {"<": "<", ">": ">", r"\le": "<=", r"\ge": ">="}
PRODUCTS = {"/": "over", r"\cdot": "dot"}
SIGNED = ("+", "-")
SIGNS = {*SIGNED, *RELATIONS}
GREEK = ("alpha", "omega", "gamma", "delta", "pi", "infty")
LETTER = re.compile(rf"[A-Za-z]|\\(?:{'|'.join(GREEK)})")
LONGEST = 300  # terms, of a sum that names no end


class Unread(Exception):
    """The formula has something that the reader does not know."""


def tokens(tex):
    """Return the tokens of a formula, without spaces and its number."""
    tex = re.sub(r"\\tag\{.*?\}", "", tex).strip(" \n.,")
    return [token for token in TOKEN.findall(tex) if token not in IGNORED]


def split(items, mark):
    """Divide tokens at a mark that stands in no bracket."""
    parts, depth = [[]], 0
    for token in items:
        depth += (token in DEEPER) - (token in HIGHER)
        if token == mark and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def equations(tex):
    """Return the equations of a display, each a list of its sides' tokens."""
    return [
        split(part[:-1] if part[-1:] == [","] else part, "=")
        for part in split(tokens(tex), r"\qquad")
    ]


def identifier(name):
    r"""Return a letter's name in Python: omega for \omega, d_k for d_{k}."""
    return re.sub(r"\W", "", name)


class Reader:
    """Reads tokens from the left; each method returns an expression.

    names: what Python calls the letters that a mark belongs to, such as d_k;
    calls: what it calls those that stand before their argument's bracket.
    """

    def __init__(self, items, names, calls):
        self.items, self.names, self.calls = list(items), names, calls

    @property
    def next(self):
        return self.items[0] if self.items else ""

    def take(self):
        if not self.items:
            raise Unread("its end")
        return self.items.pop(0)

    def group(self):
        """Take what stands in a bracket, or a single token."""
        inside, depth = [self.take()], 1
        if inside[0] not in DEEPER:
            return inside
        while depth:
            inside.append(self.take())
            depth += (inside[-1] in DEEPER) - (inside[-1] in HIGHER)
        return inside[1:-1]

    def part(self, items):
        return Reader(items, self.names, self.calls).whole()

    def argument(self):
        return self.part(self.group())

    def arguments(self, items):
        return ", ".join(map(self.part, split(items, ",")))

    def whole(self):
        value = self.sum()
        if self.next in RELATIONS:
            value = f"({value} {RELATIONS[self.take()]} {self.sum()})"
        if self.items:
            raise Unread(self.next)
        return value

    def sum(self):
        value = "" if self.next in SIGNED else self.product()
        if self.next not in SIGNED:
            return value
        while self.next in SIGNED:
            value += f" {self.take()} {self.product()}"
        return f"({value.strip()})"

    def product(self):
        value = self.factor()
        while self.items and self.next not in SIGNS:
            kind = PRODUCTS.get(self.next, "times")
            if self.next in PRODUCTS:
                self.take()
            value = f"{kind}({value}, {self.factor()})"
        return value

    def factor(self):
        if self.next == r"\sum":
            return self.series()
        return self.function() if self.next in FUNCTIONS else self.power()

    def series(self):
        """A sum over an index: between bounds, or over all there is."""
        self.items = self.items[2:]  # \sum and _
        index, *first = self.group()
        bounds = f", {self.part(first[1:])}" if first else ""
        if first[:1] not in ([], ["="]) or bool(first) != (self.next == "^"):
            raise Unread("its bounds")
        if first:
            self.take()
            bounds += f", {self.argument()}"
        return f"total(lambda {index}: {self.product()}{bounds})"

    def function(self):
        """Its argument ends at a sign or where the next function begins."""
        name, exponent = self.take()[1:], ""
        if self.next == "^":
            self.take()
            exponent = self.argument()
        value = self.power()
        ends = SIGNS | FUNCTIONS | PRODUCTS.keys() | {r"\sum"}
        while self.items and self.next not in ends:
            value = f"times({value}, {self.power()})"
        value = f"{name}({value})"
        return f"power({value}, {exponent})" if exponent else value

    def power(self):
        value = self.atom()
        while self.next == "^":
            self.take()
            mark = self.group()
            if mark == [r"\top"]:
                value = f"transpose({value})"
            else:
                value = f"power({value}, {self.part(mark)})"
        return value

    def atom(self):
        if self.next in CLOSED_BY:
            return self.argument()
        token = self.take()
        if token.isdigit():
            while self.next.isdigit():
                token += self.take()
            return token
        if token in (r"\frac", r"\tfrac"):
            return f"over({self.argument()}, {self.argument()})"
        if token == r"\min":
            return f"least({self.arguments(self.group())})"
        if token == r"\sqrt":
            return f"sqrt({self.argument()})"
        if token == r"\begin":
            return self.environment()
        if token == r"\mathrm":
            return self.letter("".join(self.group()))
        if LETTER.fullmatch(token):
            return self.letter(token)
        raise Unread(token)

    def environment(self):
        """A matrix, or cases for even and odd numbers."""
        kind, inside = "".join(self.group()), []
        while self.next != r"\end":
            inside.append(self.take())
        self.take(), self.group()
        rows = [split(row, "&") for row in split(inside, r"\\")]
        if kind == "pmatrix":
            cells = [", ".join(map(self.part, row)) for row in rows]
            return f"matrix([[{'], ['.join(cells)}]])"
        chosen = ""
        for value, when in rows:
            letter, _, words = "".join(when).partition(r"\text")
            if kind != "cases" or words not in ("{even}", "{odd}"):
                raise Unread(words or kind)
            rest = int(words == "{odd}")
            chosen += f"{self.part(value)} if {letter} % 2 == {rest} else "
        return f"({chosen}None)"

    def letter(self, name):
        """A letter, and what belongs to its name, its indices or bracket."""
        indices = ""
        while self.next in ("_", "^") and self.items:
            before = list(self.items)
            mark, items = self.take(), self.group()
            longer = f"{name}{mark}{''.join(items)}"
            capital = len(items) == 1 and items[0].isupper()
            if capital or identifier(longer) in self.names:
                name = longer
            elif mark == "_":
                indices = self.indices(items)
            else:
                self.items = before  # an exponent
                break
        if indices:
            return f"item({identifier(name)}, {indices})"
        name = identifier(name)
        if name in self.calls and self.next == "(":
            return f"{name}({self.arguments(self.group())})"
        if re.match(r"\(-?.\)", "".join(self.items)):
            raise Unread(name)  # a function that the code does not name
        return name

    def indices(self, items):
        """Read the indices of `ts`, of `(p, 2i)`, or the one of `x_t`."""
        parts = [items] if "_" in items else [[item] for item in items]
        if items[0] == "(":
            parts = split(items[1:-1], ",")
        return ", ".join(map(self.part, parts))


def total(term, first=0, last=math.inf):
    """Add up terms, to the last or as far as the arrays in them go."""
    terms = []
    for i in count(int(first)):
        if i > last:
            break
        try:
            terms.append(term(i))
        except IndexError:
            if last < math.inf or not terms:
                raise
            break
        if len(terms) > LONGEST:
            raise Unread("a sum without end")
    return sum(terms)


def item(array, *place):
    place = [int(i) for i in place]
    if min(place) < 0:
        raise IndexError(place)
    return array[(*place, 0)[: array.ndim]]  # a vector is a column


def times(a, b):
    matrices = np.ndim(a) == 2 == np.ndim(b)
    return a @ b if matrices else np.multiply(a, b)


def dot(a, b):
    return times(np.transpose(a), b)


def power(a, b):
    if np.ndim(a) == 2 and b == -1:
        return np.linalg.inv(a)
    return np.float64(a) ** b


def matrix(rows):
    return np.array(rows, float)


def softmax(scores):
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True)


def least(*numbers):
    return min(map(float, numbers))


def diag(p):
    return np.diag(np.ravel(p))


MEANING = {
    "total": total,
    "item": item,
    "times": times,
    "dot": dot,
    "over": np.divide,
    "power": power,
    "transpose": np.transpose,
    "matrix": matrix,
    "least": least,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "ln": np.log,
    "exp": np.exp,
}
CONSTANTS = {
    **{"e": math.e, "pi": math.pi, "infty": math.inf},
    "delta": np.eye(9),
}
CALLS = {"softmax": softmax, "diag": diag}
MEANING |= CONSTANTS | CALLS
