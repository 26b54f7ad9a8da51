"""Compute the formulas of a chapter, each beside what it should equal.

The sides of an equation are compared, and the function that is named below
it. Within a line, an equation is a law if no side is a letter, and may else be
a condition, which is left out. What a letter is in code, the Notation table
says: `offset` is $k$, and `similarity(offset, d_model)` is $S(k)$; any other
letter is drawn. What is only nearly equal says how nearly, in a comment behind
the words below it: `<!-- within 0.004 where d_model=512 -->`. A numbered
equation that cannot be computed says so there: `<!-- not computed -->`.
"""

import inspect
import re
from itertools import combinations, pairwise

import numpy as np

from tools.net import shapes, tex
from tools.net.tables import codes, rows_with

DISPLAY = re.compile(r"(?s)\$\$(.*?)\$\$((?:(?!\$\$).)*)")
INLINE = re.compile(r"\$([^$\n]+)\$")
# A side that is a letter, or its power: the equation may be a condition.
CONDITION = re.compile(
    r"(?:^|=) *(?!e\^)\\?[A-Za-z]+(?:[_^](?:\w|\{[^{}]*\}))* *(?:=|$)"
)
NAME = re.compile(r"[A-Za-z]|\\[a-z]+|\\mathrm\{\w+\}")
LETTER = re.compile(r"(.*?)(?:\((\w)\)|_(\w))?")
WITHIN = re.compile(r"<!-- within (\S+)(?: where (.+?))? -->")
NOT_COMPUTED = "<!-- not computed -->"
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


class Values(dict):
    """The letters' values in one draw, each made when it is asked for.

    takes: the parameters of the function that the equation is compared with;
    where: name -> value, for those that the words below the equation set;
    places: the letters of indices, in their order; code: the chapter's
    variables, and a number for each name without one.
    """

    def __init__(self, letters, takes, where, namespace, rng):
        super().__init__(tex.CONSTANTS)
        self.letters, self.takes, self.rng = letters, takes, rng
        self.names, self.places, self.code = letters.plain, [], {**namespace}
        self.calls = tex.CALLS | {
            letter: self.function(*of) for letter, of in letters.calls.items()
        }
        # A function of sizes is asked for other sizes than the chapter's.
        sizes = takes and all(type(namespace.get(n, 0)) is int for n in takes)
        for name in letters.plain.values():
            if name not in namespace:
                self.code[name] = self.number()
            elif sizes and type(namespace[name]) is int:
                self.code[name] = 2 + 2 * self.number()
        self.code |= where

    def number(self):
        return int(self.rng.integers(1, 6))

    def function(self, inside, expression):
        """Return what a letter with a bracket stands for, as in S(k)."""
        inside = self.letters.plain.get(inside, inside)
        return lambda x: self.run(expression, **{inside: x})

    def array(self, letter):
        """Return the array of a letter with an index."""
        if letter in self.letters.arrays:
            return self.run(self.letters.arrays[letter])
        if {letter} & {*self.letters.plain, *self.takes, *tex.CONSTANTS}:
            return self[letter]
        raise tex.Unread(f"{letter} has no value")

    def __missing__(self, letter):
        self[letter] = self.value(letter)
        return self[letter]

    def value(self, letter):
        """Return a value for a letter; raises Unread if it has none."""
        if letter in self.letters.plain:
            name = self.letters.plain[letter]
            axes = self.letters.axes.get(name, "").split(", ")
            if name not in self.takes or len(axes) < 2:
                return self.run(name)
            sizes = [self.letters.sizes.get(axis) or 4 for axis in axes]
            return self.rng.standard_normal(sizes)
        if letter in self.takes:
            return self.rng.random((6, 1))
        if not ANY.fullmatch(letter):
            raise tex.Unread(f"{letter} has no value")
        if letter == "I":
            return np.eye(self.letters.sizes.get("D") or 6)
        if letter[0].isupper():
            return self.rng.standard_normal((6, 6))
        return self.number()

    def run(self, expression, **more):
        """Return what an expression of the chapter gives, rows as columns."""
        value = eval(expression, self.code | more)
        if np.ndim(value) == 0:
            return value
        value = np.asarray(value, float)
        return value[:, None] if value.ndim == 1 else value

    def results(self, function):
        """Return what a function gives; raises Unread if it takes others."""
        used, plain = set(self), self.letters.plain
        names = {axis(name): letter for letter, name in plain.items()}
        given = [names.get(axis(name), name) for name in self.takes]
        if strange := {*given} - plain.keys() - used:
            raise tex.Unread(f"its function takes {strange.pop()}")
        given = [np.squeeze(self[letter])[()] for letter in given]
        tensor = self.code["torch"].tensor
        found = function(*(tensor(x) if np.ndim(x) else x for x in given))
        found = found if isinstance(found, tuple) else (found,)
        found = [np.squeeze(np.asarray(part, float)) for part in found]
        places = list(dict.fromkeys(self.places))
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
    one side. It is None for the laws within a line, and if it is a letter.
    """
    letters = str(Letters(notebook).calls)
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
            if function and function.__name__ in letters:
                function = None
            tag = re.search(r"\\tag\{(\d+)\}", formula)
            place = f"equation ({tag[1]})" if tag else "a formula"
            if WITHIN.search(words):
                formula = formula.replace(r"\approx", "=")
            yield f"{notebook.name(cell)}, {place}", formula, words, function


def compare(sides, function, words, letters, namespace):
    """Compare the sides of an equation, and a function, for drawn numbers.

    Returns how many were compared, how two of them differ, or None, and why
    another one is not computed.
    """
    within, where = (WITHIN.findall(words) or [("0", "")])[0]
    where, takes = eval(f"dict({where})"), []
    if function:
        given = inspect.signature(function).parameters.values()
        takes = [p.name for p in given if p.default is p.empty]
    rng, draws, compared = np.random.default_rng(0), 0, 0
    for _ in range(TRIES):
        values = Values(letters, takes, where, namespace, rng)
        try:
            found, why = computed(sides, function, values)
        except Exception as error:  # such as an index beyond its array
            why = f"{type(error).__name__}: {error}"
            continue
        for (one, a), (other, b) in combinations(found.items(), 2):
            if not any(same(x, y, float(within)) for x in a for y in b):
                return 2, f"{one} is {a[0]}, and {other} is {b[0]}", why
        draws, compared = draws + 1, max(compared, len(found))
        if draws == DRAWS:
            break
    return compared if compared > 1 else 0, None, why


def computed(sides, function, values):
    """Map the sides and the function to their values, and say what is unread.

    A side that is a letter without a value is what the equation defines.
    """
    found, unread = {}, "it has one side and no function"
    for side in sides:
        text = "".join(side)
        name = tex.identifier(text.replace(r"\mathrm", ""))
        if NAME.fullmatch(text) and name not in {*values.names, "I"}:
            continue
        try:
            # A draw may lie where a logarithm has no value.
            with np.errstate(all="ignore"):
                value = tex.Reader(side, values).whole()
            found[re.sub(r"(\\\w+)", r"\1 ", text)] = [np.squeeze(value)]
        except tex.Unread as error:
            unread = str(error)
    if function and found:
        (first, *_), *_ = found.values()
        try:
            results = values.results(function)
        except tex.Unread as error:
            unread = str(error)
        else:
            if fit := [a for a in results if a.shape == first.shape]:
                found[f"`{function.__name__}`"] = fit
    return found, unread


def same(a, b, within):
    return a.shape == b.shape and np.allclose(a, b, 3e-7, 1e-7 + within)


def check_formulas(notebook, namespace):
    """Return how many sides were compared, and a message for each lie."""
    letters, read, messages = Letters(notebook), 0, []
    for place, formula, words, function in formulas(notebook, namespace):
        found = [
            compare(sides, function, words, letters, namespace)
            for sides in tex.equations(formula)
        ]
        faults = [fault for _, fault, _ in found if fault]
        messages += [
            f"{place}: {fault}, for the same numbers. Correct the formula, "
            "the letters in the Notation table, or the function named below."
            for fault in faults
        ]
        compared = sum(sides for sides, *_ in found)
        read += compared
        marked = NOT_COMPUTED in words
        if marked and compared:
            messages.append(f"{place} is computed: remove {NOT_COMPUTED}.")
        if r"\tag" in formula and not (marked or compared):
            messages.append(
                f"{place} is not computed: {found[0][-1]}. Write it with "
                "letters of the Notation table and name its function below, "
                f"or put {NOT_COMPUTED} behind the words below it."
            )
    return read, messages
