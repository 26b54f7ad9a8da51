"""No checker calls a mutant of its solution correct that gives other numbers.

Wrong answers that somebody thought of are in the chapters' tests. Here a
program draws them: each mutant of each solution is handed in. One that is
called correct has to give the solution's results for what the checker has
asked, and for other values of the same kinds.
"""

import copy
import signal
import warnings
from contextlib import suppress
from functools import wraps

import numpy as np
import pytest

from tools.measure.mutants.make import mutants
from tools.notebooks import Notebook, paths

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
    if isinstance(one, tuple):
        return (
            isinstance(other, tuple)
            and len(one) == len(other)
            and all(map(is_same, one, other))
        )
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    if isinstance(one, (dict, str)):
        return one == other
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and np.allclose(
        one, other, rtol=1e-4, atol=1e-4, equal_nan=True
    )


def stop(*_):
    raise TimeoutError


def accepted_wrongly(book, notebook):
    """Yield the mutants that are called correct and give other numbers."""
    signal.signal(signal.SIGALRM, stop)
    for mutant in mutants(notebook):
        if not mutant.scope.endswith("_solution"):
            continue
        check = book[f"check_{mutant.scope.removesuffix('_solution')}"]
        right = book[mutant.scope]
        variables = dict(book)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            with suppress(AssertionError):  # the cell's own, of the verdict
                exec(mutant.mutated, variables)
            wrong = variables[mutant.scope]
            if check(wrong).endswith(": correct."):
                asked = asked_of(mutant.scope, check, right)
                pairs = zip(
                    asked,
                    answers(right, asked),
                    answers(wrong, asked),
                    strict=True,
                )
                for question, expected, found in pairs:
                    # What the solution refuses is nobody's question; what has
                    # no arguments may have several right answers.
                    refused = isinstance(expected, Exception)
                    if any(question) and not refused:
                        if not is_same(expected, found):
                            yield mutant, question, expected, found
                            break
        except TimeoutError:
            pass  # and so it is not called correct
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_mutant_called_correct_gives_the_same_numbers(chapter, name):
    path = next(path for path in paths() if path.stem == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow
        found = [
            f"{mutant}\n  for {question}: {wrong}, not {right}"
            for mutant, question, right, wrong in accepted_wrongly(
                chapter(name), Notebook.read(path)
            )
        ]
    assert not found, "called correct, and is not:\n" + "\n".join(found)
