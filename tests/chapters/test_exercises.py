"""Every exercise of the book has a checker, a solution and a stub.

An exercise `x` has `x`, the stub; `x_solution`; and `check_x`. What a checker
says of wrong answers is in the tests of its chapter.
"""

import pytest

from tools.notebooks import Notebook, definitions, paths

pytestmark = pytest.mark.xdist_group("frameworks")

EXERCISES = []
for path in paths():
    names = [name for name, _, _ in definitions(Notebook.read(path))]
    checkers = [name for name in names if name.startswith("check_")]
    for number, name in enumerate(checkers, 1):
        EXERCISES.append((path.stem, number, name.removeprefix("check_")))


each_exercise = pytest.mark.parametrize(
    ("notebook", "number", "name"), EXERCISES
)


def raises(*given):
    raise KeyError("a word\nthat is not there")


@each_exercise
@pytest.mark.parametrize("result", [raises, (1, 2), "3", {}, len])
def test_no_answer_at_all_gets_one_sentence(
    chapter, result, notebook, number, name
):
    answer = result if result is raises else lambda *given: result
    verdict = chapter(notebook)[f"check_{name}"](answer)
    assert verdict.startswith(f"Exercise {number}: ")
    assert verdict.endswith(".") and "\n" not in verdict
    assert "correct" not in verdict and "attempted" not in verdict


@each_exercise
def test_the_solution_is_accepted_and_what_stops_half_way_is_not(
    chapter, notebook, number, name
):
    """None from the first, the second or the last call on."""
    book, calls = chapter(notebook), []
    check, solution = book[f"check_{name}"], book[f"{name}_solution"]

    def counted(*given):
        calls.append(given)
        return solution(*given)

    assert check(counted) == f"Exercise {number}: correct."
    for stop in {0, 1, len(calls) - 1} - {len(calls)}:
        left = iter(range(stop))

        def answer(*given, left=left):
            return None if next(left, None) is None else solution(*given)

        assert "correct" not in check(answer)


@each_exercise
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_nan_is_not_accepted(chapter, notebook, number, name):
    book = chapter(notebook)
    solution, nan = book[f"{name}_solution"], float("nan")
    verdict = book[f"check_{name}"](lambda *given: nan * solution(*given))
    assert "correct" not in verdict


@each_exercise
def test_untouched_stub_is_reported(chapter, notebook, number, name):
    book = chapter(notebook)
    verdict = book[f"check_{name}"](book[name])
    assert verdict == f"Exercise {number}: not attempted yet."


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (lambda x: x - x.mean(-1), "keepdims=True keeps the axis of a sum"),
        (lambda x: x @ x.T, "key.T turns all axes; exchange the last two"),
    ],
)
def test_numpy_s_message_comes_with_advice(answer, advice):
    import numpy as np

    from cellbycell.exercises import judged

    check = judged(1)(lambda answer: answer((2, 3, 3), np.ones((2, 3, 4))))
    says = check(answer)
    assert "your function raises ValueError: " in says and advice in says
