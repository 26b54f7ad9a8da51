"""No checker calls a mutant of its solution correct that gives other numbers.

Wrong answers that somebody thought of are in the chapters' tests. Here a
program draws them: each mutant of each solution is handed in. One that is
called correct has to give the solution's results for what the checker has
asked, and for other values of the same kinds.
"""

import copy
import warnings
from contextlib import suppress
from functools import wraps

import numpy as np
import pytest

from tools.measure.mutants.make import mutants
from tools.net.cells import Hangs, limited
from tools.notebooks import Notebook, paths
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
CHAPTERS = [path.stem for path in paths()]
SECONDS = 5  # for one mutant; some never end


# Other values would be no question: these are rows of a table of positions.
GIVEN_ALONE = {"read_offset_solution"}


def recorded(function, calls):
    """Return the function; each question that it is asked goes into calls."""

    @wraps(function)
    def answer(*given, **named):
        calls.append(copy.deepcopy((given, named)))
        return function(*given, **named)

    return answer


def varied(value, rng):
    """Return another value of the same kind, and of the same shape."""
    if isinstance(value, (list, tuple)):
        return type(value)(varied(part, rng) for part in value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value + rng.standard_normal(value.shape).astype(value.dtype)
    if isinstance(value, np.ndarray):
        return rng.permuted(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value + int(rng.integers(1, 4))
    return copy.deepcopy(value)


def asked_of(name, check, solution):
    """Return what a checker asks, and as many questions with other values."""
    calls, rng = [], np.random.default_rng(0)
    check(recorded(solution, calls))
    if name in GIVEN_ALONE:
        return calls
    others = [
        (varied(given, rng), {n: varied(v, rng) for n, v in named.items()})
        for given, named in calls
    ]
    return [*calls, *others]


def answers(function, asked):
    """Return what a function gives for each question, or what it raises."""
    found = []
    for given, named in copy.deepcopy(asked):
        try:
            found.append(function(*given, **named))
        except Exception as error:
            found.append(error)
    return found


def is_same(one, other):
    """Tell whether two answers are the same numbers, to four digits."""
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, (dict, str)):
        return one == other
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and np.allclose(
        one, other, rtol=1e-4, atol=1e-4, equal_nan=True
    )


def difference(book, name, mutated):
    """Say where a mutant that is called correct gives other numbers."""
    check, right = book[f"check_{name}"], book[f"{name}_solution"]
    variables = dict(book)
    with suppress(AssertionError):  # the cell's own, of the verdict
        exec(mutated, variables)
    wrong = variables[f"{name}_solution"]
    if not check(wrong).endswith(": correct."):
        return None
    asked = asked_of(f"{name}_solution", check, right)
    pairs = zip(answers(right, asked), answers(wrong, asked), strict=True)
    for question, (expected, found) in zip(asked, pairs, strict=True):
        # What the solution refuses is nobody's question; what has no
        # arguments may have several right answers.
        if any(question) and not isinstance(expected, Exception):
            if not is_same(expected, found):
                return f"for {question}: {found}, not {expected}"
    return None


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_mutant_called_correct_gives_the_same_numbers(chapter, name):
    found, book = [], chapter(name)
    for mutant in mutants(Notebook.read(BOOK / f"{name}.ipynb")):
        exercise, solution, rest = mutant.scope.partition("_solution")
        if not solution or rest:
            continue
        # A mutant that never ends is not called correct.
        with suppress(Hangs), limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that overflow
            if what := difference(book, exercise, mutant.mutated):
                found.append(f"{mutant}\n  {what}")
    assert not found, "called correct, and is not:\n" + "\n".join(found)
