"""The checkers of rotary name wrong answers.

test_exercises.py tries them on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")

WRONG = [
    ("norms", "columns", lambda x: np.linalg.norm(x, axis=0)),
    ("norms", "not 5, 10 and 2", lambda x: x.sum(axis=-1)),
]


@pytest.mark.parametrize(("exercise", "says", "answer"), WRONG)
def test_wrong_answer_is_named(chapter, exercise, says, answer):
    check = chapter("rotary")[f"check_rotary_{exercise}"]
    assert says in check(answer)
