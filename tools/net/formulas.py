"""Compute the formulas of a chapter, each beside what it should equal.

The sides of an equation are compared, and the function that is named below
it. Within a line, an equation is a law if no side is a letter, and may else be
a condition, which is left out. What a letter is in code, the Notation table
says: `offset` is $k$, and `similarity(offset, d_model)` is $S(k)$; any other
letter is drawn. What is only nearly equal says how nearly, in a comment behind
the words below it: `<!-- within 0.004 where d_model=512 -->`. A formula that
tex.py does not read is left out, one that has nothing to equal, and one that
is near by no number.
"""

import ast
import inspect
import re
from contextlib import suppress
from itertools import combinations, islice, pairwise

import numpy as np

from tools.net import shapes, tex
from tools.net.tables import codes, rows_with

DISPLAY = re.compile(r"(?s)\$\$(.*?)\$\$((?:(?!\$\$).)*)")
INLINE = re.compile(r"\$([^$\n]+)\$")
# A side that is a letter, or its power: the equation may be a condition.
CONDITION = re.compile(
    r"(?:^|=) *(?!e\^)\\?[A-Za-z]+(?:[_^](?:\w|\{[^{}]*\}))* *(?:=|$)"
)
LETTER = re.compile(r"(.*?)(?:\((\w)\)|_(\w))?")
WITHIN = re.compile(r"<!-- within (\S+)(?: where (.+?))? -->")
ANY = re.compile(rf"[a-z](_\w+)?|[A-Z]\w?|{'|'.join(tex.GREEK)}")
DRAWS, TRIES = 9, 99


class Letters:
    """What the letters of a chapter's formulas are in its code.

    plain: letter -> name; arrays: letter, where it has an index, ->
    expression; calls: letter -> (what stands in its bracket, expression);
    axes: name -> its axes' letters; sizes: those letters -> sizes.
    """

    def __init__(self, notebook):
        self.plain, self.arrays, self.calls, self.axes = {}, {}, {}, {}
        words = "\n".join(cell.source for cell in notebook.markdown)
        self.sizes = shapes.notation(words)
        for row in rows_with(words, "in code", "in formulas"):
            self.add(row)

    def add(self, row):
        names, said = codes(row["in code"]), row["in formulas"]
        if not (names and said) or re.search(r"\\dots|[A-Z]_", said):
            return
        letters = ", ".join(re.findall(r"\$(.+?)\$", said)).split(", ")
        axes = shapes.axes(row["letter in shapes"])
        self.axes |= zip(names, axes, strict=False)
        if 1 in (len(names), len(letters)):
            names = names[:1] * len(letters)
        for name, letter in zip(names, letters, strict=True):
            letter = letter.replace(r"\mathrm", "").partition(" =")[0]
            base, inside, index = LETTER.fullmatch(letter).groups()
            if inside:
                self.calls[tex.identifier(base)] = inside, name
            elif index and name.endswith(f"[{index}]"):
                self.arrays[tex.identifier(base)] = name[:-3]
            else:
                self.plain[tex.identifier(letter)] = name


class Equation:
    """The sides of an equation that can be read.

    words: those below it; within: how far the sides may be apart; where: name
    -> value, where they are; sides: Python -> TeX; used: the letters in them;
    indexed: those with an index; indices: those in one, in their order.
    """

    def __init__(self, sides, letters, words=""):
        within, where = (WITHIN.findall(words) or [("0", "")])[0]
        self.within, self.where = float(within), eval(f"dict({where})")
        self.sides, self.indexed, self.indices = {}, set(), []
        calls = tex.CALLS.keys() | letters.calls.keys()
        for side in sides:
            with suppress(tex.Unread):
                text = tex.Reader(side, letters.plain, calls).whole()
                self.sides[text] = re.sub(r"(\\\w+)", r"\1 ", "".join(side))
        for text in {*self.sides} - letters.plain.keys() - {"I"}:
            if text.isidentifier():
                del self.sides[text]  # a name that the equation gives
        nodes = list(ast.walk(ast.parse(f"[{','.join(self.sides)}]")))
        self.used = names_in(nodes)
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "item":
                self.indexed |= names_in(node.args[:1])
                for place in node.args[1:]:
                    self.indices += names_in(ast.walk(place))


def names_in(nodes):
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names - tex.MEANING.keys()


class Values(dict):
    """The letters' values in one draw, each made when it is asked for.

    takes: the parameters of the function that the equation is compared with;
    code: the chapter's variables, and a number for each name without one.
    """

    def __init__(self, equation, letters, takes, namespace, rng):
        super().__init__(tex.MEANING)
        self.equation, self.letters, self.takes = equation, letters, takes
        self.rng, self.code = rng, dict(namespace)
        letters_used = equation.used - {*equation.indices}
        names = {letters.plain.get(letter) for letter in letters_used}
        # Sizes are drawn where nothing that is used has them.
        free = all(type(namespace.get(name, 0)) is int for name in names)
        for name in letters.plain.values():
            if name not in namespace:
                self.code[name] = self.number()
            elif free and None not in names:
                self.code[name] = 2 + 2 * self.number()
        self.code |= equation.where

    def number(self):
        return int(self.rng.integers(1, 6))

    def __missing__(self, letter):
        """Return a letter's value; raises Unread for one without."""
        self[letter] = self.value(letter)
        return self[letter]

    def value(self, letter):
        of, equation = self.letters, self.equation
        if letter in of.calls:
            inside, expression = of.calls[letter]
            inside = of.plain.get(inside, inside)
            return lambda x: self.run(expression, **{inside: x})
        if letter in equation.indexed & of.arrays.keys():
            return self.run(of.arrays[letter])
        if letter in of.plain:
            return self.variable(of.plain[letter])
        if letter in self.takes:
            return self.rng.random((5, 1))
        if letter in equation.indexed or not ANY.fullmatch(letter):
            raise tex.Unread(letter)
        if letter in equation.indices:
            return int(self.rng.integers(5))
        if letter == "I":
            return np.eye(of.sizes.get("D") or 6)
        if letter[0].isupper():
            return self.rng.standard_normal((6, 6))
        return self.number()

    def variable(self, name):
        """Return a variable's value, or another one of its shape."""
        axes = self.letters.axes.get(name, "").split(", ")
        if name not in self.takes or len(axes) < 2:
            return self.run(name)
        sizes = [self.letters.sizes.get(axis) or 4 for axis in axes]
        return self.rng.standard_normal(sizes)

    def run(self, expression, **more):
        """Return what an expression of the chapter gives, rows as columns."""
        value = eval(expression, self.code | more)
        if np.ndim(value) == 0:
            return value
        value = np.asarray(value, float)
        return value[:, None] if value.ndim == 1 else value

    def results(self, function):
        """Return what a function gives; raises Unread if it takes others."""
        plain = self.letters.plain
        names = {axis(name): letter for letter, name in plain.items()}
        given = [names.get(axis(name), name) for name in self.takes]
        if strange := {*given} - plain.keys() - self.equation.used:
            raise tex.Unread(strange)
        given = [np.squeeze(self[letter])[()] for letter in given]
        try:
            found = function(*given)
        except Exception:  # it takes tensors
            found = function(*map(self.code["torch"].tensor, given))
        found = found if isinstance(found, tuple) else (found,)
        found = [np.squeeze(np.asarray(part, float)) for part in found]
        places = list(dict.fromkeys(self.equation.indices))
        if places and all(np.ndim(a) == len(places) for a in found):
            return [a[tuple(self[i] for i in places)] for a in found]
        return found


def axis(name):
    """Return the letter of a size, as one size has several names."""
    return shapes.NAMES.get(name, name)


def formulas(notebook, namespace):
    """Yield (place, TeX, words below, function) of the chapter's formulas.

    The function is the first that these words name, or the one beside it in
    the Summary table, or what the next cell defines, of a formula that has
    one side; it may be None, as for the laws within a line.
    """
    for cell, follower in pairwise([*notebook.cells, {}]):
        if cell.cell_type == "code":
            continue
        defined = re.findall(r"(?m)^def (\w+)", follower.get("source", ""))
        found = DISPLAY.findall(cell.source)
        for row in rows_with(cell.source, "equation"):
            first, second, *_ = row.values()
            alone = re.fullmatch(r"\$([^$]*[a-z][^$]*)\$", first)
            if alone and re.fullmatch(r"`\w+`", second):
                found.append((alone[1], second))
        within = re.sub(r"`[^`]*`", "", DISPLAY.sub(r"\2", cell.source))
        for formula in INLINE.findall(within):
            if "=" in formula and not CONDITION.search(formula):
                found.append((formula, ""))
        for formula, words in found:
            below = [*codes(words), *(() if "=" in formula else defined)]
            named = map(namespace.get, below)
            function = next(filter(inspect.isfunction, named), None)
            tag = re.search(r"\\tag\{(\d+)\}", formula)
            place = f"equation ({tag[1]})" if tag else "a formula"
            if WITHIN.search(words):
                formula = formula.replace(r"\approx", "=")
            yield f"{notebook.name(cell)}, {place}", formula, words, function


def compare(equation, function, letters, namespace):
    """Return how many sides of an equation were compared, and what differs."""
    takes = []
    if function:
        given = inspect.signature(function).parameters.values()
        takes = [p.name for p in given if p.default is p.empty]
    rng = np.random.default_rng(0)
    draws = (
        Values(equation, letters, takes, namespace, rng) for _ in range(TRIES)
    )
    found = (computed(equation, function, values) for values in draws)
    found = list(islice(filter(None, found), DRAWS))
    for sides in found:
        for (one, a), (other, b) in combinations(sides.items(), 2):
            if not any(same(x, y, equation.within) for x in a for y in b):
                return len(sides), f"{one} is {a[0]}, and {other} is {b[0]}"
    return max(map(len, found), default=0), None


def computed(equation, function, values):
    """Map the sides, and the function, to their values in one draw.

    Returns None where nothing is to be compared, or an array is too short.
    """
    found = {}
    try:
        for text, side in equation.sides.items():
            # A draw may lie where a logarithm has no value.
            with suppress(tex.Unread), np.errstate(all="ignore"):
                found[side] = [np.squeeze(eval(text, values))]
        if function and found:
            (first, *_), name = found.values(), f"`{function.__name__}`"
            with suppress(tex.Unread):
                given = values.results(function)
                found[name] = [a for a in given if a.shape == first[0].shape]
    except Exception:  # the count of formulas says if it is for good
        return None
    found = {side: results for side, results in found.items() if results}
    return found if len(found) > 1 else None


def same(a, b, within):
    return a.shape == b.shape and np.allclose(a, b, 3e-7, 1e-7 + within)


def check_formulas(notebook, namespace):
    """Return how many sides were compared, and a message for each lie."""
    letters, read, messages = Letters(notebook), 0, []
    in_bracket = str(letters.calls)
    for place, formula, words, function in formulas(notebook, namespace):
        if function and function.__name__ in in_bracket:
            function = None  # it is one of the letters
        for sides in tex.equations(formula):
            equation = Equation(sides, letters, words)
            sides, fault = compare(equation, function, letters, namespace)
            read += sides
            if fault:
                messages.append(
                    f"{place}: {fault}, for the same numbers. Correct the "
                    "formula, the letters in the Notation table, or the "
                    "function named below."
                )
    return read, messages
