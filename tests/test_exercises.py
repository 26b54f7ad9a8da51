"""Each exercise of the package: right passes, and each mistake is named."""

import importlib
import pkgutil

import numpy as np
import pytest

from cellbycell import exercises

EXERCISES = {
    f"{module.name}.{name.removeprefix('check_')}": exercise
    for module in pkgutil.iter_modules(exercises.__path__)
    for name, exercise in vars(
        importlib.import_module(f"cellbycell.exercises.{module.name}")
    ).items()
    if isinstance(exercise, exercises.Exercise)
}
MISTAKES = [
    pytest.param(EXERCISES[name], sentence, wrong, id=f"{name}: {sentence}")
    for name in EXERCISES
    for sentence, wrong in EXERCISES[name].wrong_answers()
]
each_exercise = pytest.mark.parametrize(
    "exercise", EXERCISES.values(), ids=EXERCISES
)


def says(exercise, answer):
    """Return what a check says, without the number and the full stop."""
    start, verdict = f"Exercise {exercise.number}: ", exercise(answer)
    assert verdict.startswith(start) and verdict.endswith(".")
    assert "\n" not in verdict
    return verdict.removeprefix(start).removesuffix(".")


@each_exercise
def test_the_right_answer_passes_twice(exercise):
    assert says(exercise, exercise.right) == "correct"
    assert says(exercise, exercise.right) == "correct"


@pytest.mark.parametrize(("exercise", "sentence", "wrong"), MISTAKES)
def test_each_mistake_gets_its_own_sentence(exercise, sentence, wrong):
    assert says(exercise, wrong) == sentence


def raises(*given):
    raise KeyError("a word\nthat is not there")


@each_exercise
@pytest.mark.parametrize("result", [raises, "3", {}, len, float("nan")])
def test_no_answer_at_all_gets_one_sentence(exercise, result):
    answer = result if result is raises else lambda *given: result
    verdict = says(exercise, answer)
    assert "correct" not in verdict and "attempted" not in verdict


@each_exercise
def test_what_stops_half_way_is_not_correct(exercise):
    """None from the first, the second or the last call on."""
    calls = []

    def counted(*given):
        calls.append(given)
        return exercise.right(*given)

    says(exercise, counted)
    for stop in {0, 1, len(calls) - 1} - {len(calls)}:
        left = iter(range(stop))

        def answer(*given, left=left):
            if next(left, None) is None:
                return None
            return exercise.right(*given)

        verdict = says(exercise, answer)
        assert (verdict == "not attempted yet") == (stop == 0)
        assert verdict != "correct"


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (lambda x: x - x.mean(-1), "keepdims=True keeps the axis of a sum"),
        (lambda x: x @ x.T, "key.T turns all axes; exchange the last two"),
    ],
)
def test_numpy_s_message_comes_with_advice(answer, advice):
    cases = [(np.ones((2, 3, 4)),)]
    exercise = exercises.Exercise(1, np.ones_like, lambda: cases, {})
    assert "raises ValueError: " in says(exercise, answer)
    assert advice in says(exercise, answer)
