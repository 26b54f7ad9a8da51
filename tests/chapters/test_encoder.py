"""The checkers of encoder: what they accept and what they say.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")

WRONG = [
    ("lengths", "columns", lambda x: np.linalg.norm(x, axis=0)),
    ("lengths", "not 5, 10 and 2", lambda x: x.sum(axis=-1)),
]


@pytest.mark.parametrize(("exercise", "says", "answer"), WRONG)
def test_wrong_answer_is_named(chapter, exercise, says, answer):
    check = chapter("encoder")[f"check_encoder_{exercise}"]
    assert says in check(answer)
