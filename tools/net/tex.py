r"""Compute a formula in TeX, `\frac{2 i}{d}`, from what its letters are.

The chapters' formulas are made of sums, roots, sines, indices, small matrices
and cases; Unread is raised for anything else. A vector is a column.
"""

import math
import operator
import re
from itertools import count

import numpy as np

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\S")
IGNORED = {r"\,", r"\;", r"\:", r"\!", "\\ ", r"\quad", "~", r"\left"}
IGNORED |= {r"\right", r"\big", r"\Big"}
CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
DEEPER, HIGHER = {*CLOSED_BY, r"\begin"}, {*CLOSED_BY.values(), r"\end"}
GREEK = ("alpha", "omega", "gamma", "delta", "pi", "infty")
LETTER = re.compile(rf"[A-Za-z]|\\(?:{'|'.join(GREEK)})")
LONGEST = 300  # terms, of a sum that names no end


class Unread(Exception):
    """The formula has something that the reader does not know."""


def times(a, b):
    matrices = np.ndim(a) == 2 == np.ndim(b)
    return a @ b if matrices else np.multiply(a, b)


def dot(a, b):
    return times(np.transpose(a), b)


def power(a, b):
    if np.ndim(a) == 2 and b == -1:
        return np.linalg.inv(a)
    return np.float64(a) ** b


def softmax(scores):
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True)


def diag(p):
    return np.diag(np.ravel(p))


CONSTANTS = {
    **{"e": math.e, "pi": math.pi, "infty": math.inf},
    "delta": np.eye(9),
}
CALLS = {"softmax": softmax, "diag": diag}
FUNCTIONS = {r"\sin": np.sin, r"\cos": np.cos, r"\ln": np.log}
FUNCTIONS[r"\exp"] = np.exp
RELATIONS = {"<": operator.lt, ">": operator.gt}
RELATIONS |= {r"\le": operator.le, r"\ge": operator.ge}
PRODUCTS = {"/": operator.truediv, r"\cdot": dot}
SIGNED = {"+": operator.add, "-": operator.sub}
SIGNS = SIGNED.keys() | RELATIONS.keys()


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
    tex = re.sub(r"\\tag\{.*?\}", "", tex).strip(" \n.,")
    tokens = [token for token in TOKEN.findall(tex) if token not in IGNORED]
    return [
        split(part[:-1] if part[-1:] == [","] else part, "=")
        for part in split(tokens, r"\qquad")
    ]


def identifier(name):
    r"""Return a letter's name in Python: omega for \omega, d_k for d_{k}."""
    return re.sub(r"\W", "", name)


class Reader:
    """Reads tokens from the left; its methods return numbers or arrays.

    values: letter -> value, with the attributes names, those letters whose
    name includes a mark, such as d_k; calls: letter -> function of what
    stands in its bracket; places, which receives the letters of indices; and
    the method array, for a letter with an index.
    """

    def __init__(self, items, values):
        self.items, self.values = list(items), values

    @property
    def next(self):
        return self.items[0] if self.items else ""

    def take(self):
        if not self.items:
            raise Unread("it ends too early")
        return self.items.pop(0)

    def until(self, ends):
        """Take the tokens before one of `ends` that stands in no bracket."""
        taken, depth = [], 0
        while self.items and (depth or self.next not in ends):
            depth += (self.next in DEEPER) - (self.next in HIGHER)
            taken.append(self.take())
        return taken

    def group(self):
        """Take what stands in a bracket, or a single token."""
        first = self.take()
        if first not in CLOSED_BY:
            return [first]
        inside = self.until({CLOSED_BY[first]})
        self.take()
        return inside

    def part(self, items):
        return Reader(items, self.values).whole()

    def argument(self):
        return self.part(self.group())

    def arguments(self):
        return map(self.part, split(self.group(), ","))

    def whole(self):
        value = self.sum()
        if self.next in RELATIONS:
            value = RELATIONS[self.take()](value, self.sum())
        if self.items:
            raise Unread(f"{self.next} is not read")
        return value

    def sum(self):
        value = 0 if self.next in SIGNED else self.product()
        while self.next in SIGNED:
            value = SIGNED[self.take()](value, self.product())
        return value

    def product(self):
        value = self.factor()
        while self.items and self.next not in SIGNS:
            combine = times
            if self.next in PRODUCTS:
                combine = PRODUCTS[self.take()]
            value = combine(value, self.factor())
        return value

    def factor(self):
        if self.next == r"\sum":
            return self.series()
        if self.next in FUNCTIONS:
            return self.function()
        value = self.atom()
        while self.next == "^":
            self.take()
            mark = self.group()
            if mark == [r"\top"]:
                value = np.transpose(value)
            else:
                value = power(value, self.part(mark))
        return value

    def series(self):
        """Add up between bounds, or without them as far as the arrays go."""
        self.take(), self.take()  # \sum and _
        index, *bound = self.group()
        first, last = 0, math.inf
        if bound:
            if bound[0] != "=" or self.next != "^":
                raise Unread("the bounds of a sum are not read")
            self.take()
            first, last = self.part(bound[1:]), self.argument()
        term, terms = self.until(SIGNS), []
        for i in count(int(first)):
            if i > last:
                break
            self.values[index] = i
            try:
                terms.append(self.part(term))
            except IndexError:
                if bound or not terms:
                    raise
                break
            if len(terms) > LONGEST:
                raise Unread("a sum has no end")
        self.values.pop(index, None)
        return sum(terms)

    def function(self):
        """Its argument ends at a sign or where the next function begins."""
        name, exponent = self.take(), 1
        if self.next == "^":
            self.take()
            exponent = self.argument()
        ends = SIGNS | FUNCTIONS.keys() | PRODUCTS.keys() | {r"\sum"}
        value = FUNCTIONS[name](self.part(self.until(ends)))
        return power(value, exponent)

    def atom(self):
        if self.next in CLOSED_BY:
            return self.argument()
        token = self.take()
        if token.isdigit():
            while self.next.isdigit():
                token += self.take()
            return int(token)
        if token in (r"\frac", r"\tfrac"):
            return self.argument() / self.argument()
        if token == r"\min":
            return min(map(float, self.arguments()))
        if token == r"\sqrt":
            return np.sqrt(self.argument())
        if token == r"\begin":
            return self.environment()
        if token == r"\mathrm":
            return self.letter("".join(self.group()))
        if LETTER.fullmatch(token):
            return self.letter(token)
        raise Unread(f"{token} is not read")

    def environment(self):
        """Read a matrix, or cases for even and odd numbers."""
        kind = "".join(self.group())
        rows = split(self.until({r"\end"}), r"\\")
        self.take(), self.group()
        rows = [split(row, "&") for row in rows]
        if kind == "pmatrix":
            return np.array([[*map(self.part, row)] for row in rows], float)
        for value, when in rows:
            letter, _, words = "".join(when).partition(r"\text")
            if kind != "cases" or words not in ("{even}", "{odd}"):
                raise Unread(f"{words or kind} is not read")
            if self.values[letter] % 2 == (words == "{odd}"):
                return self.part(value)
        raise Unread(f"{kind} is not read")

    def letter(self, name):
        """Read what belongs to a letter's name, its indices or bracket."""
        while self.next and self.next in "_^":
            rest = list(self.items)
            mark, inside = self.take(), self.group()
            longer = f"{name}{mark}{''.join(inside)}"
            capital = len(inside) == 1 and inside[0].isupper()
            if capital or identifier(longer) in self.values.names:
                name = longer
            elif mark == "_":
                return self.item(identifier(name), inside)
            else:
                self.items = rest  # it is an exponent
                break
        name = identifier(name)
        if name in self.values.calls and self.next == "(":
            return self.values.calls[name](*self.arguments())
        if re.match(r"\(-?.\)", "".join(self.items)):
            raise Unread(f"{name}() stands in no Notation table")
        return self.values[name]

    def item(self, name, inside):
        """Return the number at the indices `ts`, `(p, 2i)` or `x_t`."""
        parts = [inside] if "_" in inside else [[item] for item in inside]
        if inside[0] == "(":
            parts = split(inside[1:-1], ",")
        self.values.places += filter(LETTER.fullmatch, inside)
        place = [int(self.part(part)) for part in parts]
        if min(place) < 0:
            raise IndexError(place)
        array = self.values.array(name)
        return array[(*place, 0)[: array.ndim]]
