"""What SmolLM2 says with a line changed, and what the chapters print of it."""

import ast
import re

import pytest

from cellbycell.breaks import ask_smol, break_smol, break_smol_tf
from tools.notebooks import Notebook
from tools.settings import BOOK, chapters, without_model

pytestmark = pytest.mark.xdist_group("frameworks")
CALLS = {"break_smol": "pytorch", "break_smol_tf": "tensorflow"}


@pytest.fixture(autouse=True)
def model_file():
    """Skip where the file is not."""
    if reason := without_model():
        pytest.skip(reason)


def calls():
    """Yield each call in the chapters: the function, what it is given, prints.

    A cell has one call, or some that print one after the other.
    """
    for name in chapters():
        for cell in Notebook.read(BOOK.parent / f"{name}.ipynb").code:
            if "break_smol" not in cell.source:
                continue
            printed = "".join(out.get("text", "") for out in cell.outputs)
            rows = re.findall(r"(?m)^changed .*$", printed)
            found = [
                (node.func.id, [a.value for a in node.args])
                for node in ast.walk(ast.parse(cell.source))
                if isinstance(node, ast.Call)
                and getattr(node.func, "id", None) in CALLS
            ]
            yield from (
                (name, *call, row)
                for call, row in zip(found, rows, strict=True)
            )


def test_both_frameworks_print_the_same():
    printed = {function: [] for function in CALLS}
    for chapter, function, _, row in calls():
        printed[function].append((chapter, row))
    assert printed["break_smol"] == printed["break_smol_tf"]


def test_another_processor_prints_the_same():
    """The margins between two tokens are far above the rounding."""
    for chapter, function, given, row in calls():
        if CALLS[function] == "pytorch":
            said = ask_smol(*given)
            where = f"{chapter}: {given}"
            assert not said.gap < 0.005, where  # it may be NaN
            assert f"{said.loss:6.2f}   {said.answer!r}" in row, where


@pytest.mark.parametrize("framework", CALLS.values())
def test_nothing_is_left_of_a_change(framework):
    assert ask_smol("x = x + found", "x = found", framework).loss > 10
    after = ask_smol(framework=framework)
    assert after.loss == pytest.approx(3.061, abs=1e-3)
    assert after.answer == "The capital of France is Paris."


@pytest.mark.parametrize("show", [break_smol, break_smol_tf])
@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("x = x + fuond", "not there.*nearest line is 'x = x \\+ found'"),
        ("x, ", "times"),
        ("narrow = d_model", "runs only while the model is made"),
    ],
)
def test_a_line_that_cannot_be_changed_is_refused(show, old, said):
    with pytest.raises(ValueError, match=said):
        show(old, "1")
