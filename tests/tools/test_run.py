"""What only a run shows: shapes that lie, and numbers where they stand."""

import re

import pytest

from tools.run import shapes
from tools.run.chapter import Run
from tools.settings import BOOK


def checked(source):
    """Run a cell's code with its shape comments as assertions."""
    faults = []
    exec(compile(shapes.rewrite(source), "cell", "exec"), shapes.hooks(faults))
    if faults:
        raise shapes.ShapeError(faults[0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = [1, 2]  # (3,)", "gives the shape (2,)"),
        ("x = [[1, 2]]  # (T,)", "gives the shape (1, 2)"),
        ("x = [[1, 2], [3, 4], [5, 6]]  # (T, T)", "where T=3"),
        ("x = [1]  # (T,)\ny = [1, 2]  # (T,)", "where T=1"),
        ("[[1, 2, 3]]  # (T, T + 1)", "gives the shape (1, 3)"),
        ("x = [1]  # (T + 1,)", "T has no size yet"),
        ("def f():\n    return [1], [2, 3]  # (T,), (T,)\nf()", "where T=1"),
        ("a, b = [1], [2, 3]  # (T,), (T,)", "gives the shape (2,)"),
        ("x = [1]\nx += [2]  # (1,)", "gives the shape (2,)"),
        ("x = 1  # (..., T)", "gives the shape ()"),
        ("x = (\n    [1, 2]\n)  # (3,)", "gives the shape (2,)"),
        ("x = 1  # (T, three)(", "cannot be read as a shape"),
        ("x = [1]  # (Q,)", "uses ['Q']: the letters of book/notation.md"),
        ("for e in [1]:  # (T,)\n    e", "stands on no assignment"),
        ("def f(seq_len):\n    return [1]  # (T,)\nf(2)", "where T=2"),
        (
            "def f(x, y):\n    'x and y (S,)'\n    return [1]  # (S,)\n"
            "f([1, 2], [3, 4])",
            "where S=2",
        ),
        ("for x in ([1], [1, 2]):\n    y = x  # (T,)", "where T=1"),
    ],
)
def test_shape_comment_that_lies_is_rejected(source, expected):
    with pytest.raises(shapes.ShapeError, match=re.escape(expected)):
        checked(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = [[1, 2, 3]]  # (B, T): a remark",
        "x = [[1, 2, 3]]  # (..., T)",
        "x = [[[1, 2, 3, 4, 5, 6]]]  # (B, T, 2 * 3)",
        "def f(x):\n    return x  # (T,)\nf([1])\nf([1, 2])",
        "a, b = [1], [2, 3]  # (T,), (S,)",
        "x = 1.5  # ()",
        "def f(x):\n    if x:\n        y = [x]  # (T,)\n    return y\nf(1)",
        # Wrong on purpose: such a call says nothing of the sizes.
        "def f(x):\n    'x (T, S)'\n    return x  # (T,)\nf([1])",
    ],
)
def test_true_shape_comment_passes(source):
    checked(source)


def test_names_of_the_sizes_are_those_of_the_notation_page():
    page = (BOOK / "notation.md").read_text("utf-8")
    for name, letter in shapes.NAMES.items():
        assert re.search(rf"(?m)^\| {letter} \|.*`{name}`", page), name


def test_a_run_names_each_wrong_shape_and_number_where_it_stands(notebook):
    notebook.code[0].source += "\nseq_len = 2"
    notebook.code[1].source = "x = [1, seq_len, 3]  # (T,)"
    notebook.code[-1].source = "y = [4]  # ()"
    alt = {"alt": "A line through 4<!--= len(x) --> points."}
    notebook.code[5].metadata["mystnb"] = {"image": alt}
    notebook.markdown[6].source = "It has 5<!--= len(x) --> numbers."
    found = Run(notebook).finish().messages
    places = ["[2], line 1", ", cell 11 (", "[6]", "[7], line 1"]
    for message, place in zip(found, places, strict=True):
        assert message.partition("small.ipynb")[2].strip().startswith(place)
    assert "where T=2" in found[0]  # the size that the cell names itself


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It will have 3<!--= len(x) --> numbers.", []),
        ("It will have 4<!--= len(x) --> numbers.", ["but len(x) is 3"]),
        ("It will have 3<!--= len(y) --> numbers.", ["is not defined"]),
        ("It is 3.14<!--= math.pi --> or 1<!--= x[0] -->.", []),
    ],
)
def test_number_that_announces_a_variable_waits_for_it(
    notebook, text, expected
):
    notebook.code[-1].source = "x = [0, 0]"
    notebook.markdown[0].source += f"\n\n{text}"
    found = Run(notebook).finish().messages
    assert len(found) == len(expected)
    for message, part in zip(found, expected, strict=True):
        assert "small.ipynb, cell 1 ('# Small')" in message
        assert part in message


def test_number_keeps_the_variable_that_stands_above_it(notebook):
    notebook.markdown[6].source = "It has 3<!--= len(x) -->, not 2<!--= y -->."
    notebook.code[4].source = "x, y = [0, 0], 2"
    assert Run(notebook).finish().messages == []
