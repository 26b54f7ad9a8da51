"""What SmolLM2 says with one line of the listing changed."""

import pytest

from cellbycell.breaks import ask_smol, break_smol, break_smol_tf
from cellbycell.smol import smol_path

pytestmark = pytest.mark.xdist_group("frameworks")
FRAMEWORKS = {"pytorch": "torch", "tensorflow": "tensorflow"}
SHOW = {"pytorch": break_smol, "tensorflow": break_smol_tf}


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    """Return the name of a framework; skip without it, or without the file."""
    pytest.importorskip(FRAMEWORKS[request.param])
    pytest.importorskip("tokenizers")
    try:
        smol_path()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return request.param


def test_nothing_is_left_of_a_change(framework):
    assert ask_smol("x = x + found", "x = found", framework).loss > 10
    after = ask_smol(framework=framework)
    assert after.loss == pytest.approx(3.061, abs=1e-3)
    assert after.answer == "The capital of France is Paris."


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("x = x + fuond", "not there.*nearest line is 'x = x \\+ found'"),
        ("x, ", "times"),
        ("narrow = d_model", "runs only while the model is made"),
    ],
)
def test_a_line_that_cannot_be_changed_is_refused(framework, old, said):
    with pytest.raises(ValueError, match=said):
        SHOW[framework](old, "1")
