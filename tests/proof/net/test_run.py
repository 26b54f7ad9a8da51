"""What only a run shows: shapes that lie, and numbers where they stand."""

import re

import pytest

from tools.net import shapes
from tools.net.run import run
from tools.notebooks import NotebookError
from tools.settings import BOOK


def said(notebook):
    """Return what a run says, a line for each message."""
    try:
        return run(notebook).messages
    except NotebookError as error:
        return str(error).split("\n")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = [1, 2]  # (3,)", "gives the shape (2,)"),
        ("x = [[1, 2]]  # (T,)", "gives the shape (1, 2)"),
        ("x = [[1, 2], [3, 4], [5, 6]]  # (T, T)", "where T=3"),
        ("x = [1]  # (T,)\ny = [1, 2]  # (T,)", "where T=1"),
        ("[[1, 2, 3]]  # (T, T + 1)", "gives the shape (1, 3)"),
        ("def f():\n    return [1], [2, 3]  # (T,), (T,)\nf()", "where T=1"),
        ("def f():\n    return [1], 2  # (T,), (T,)\nf()", "the shape ()"),
        ("a, b = [1], [2, 3]  # (T,), (T,)", "gives the shape (2,)"),
        ("x = [1]\nx += [2]  # (1,)", "gives the shape (2,)"),
        ("x = 1  # (..., T)", "gives the shape ()"),
        ("x = (\n    [1, 2]\n)  # (3,)", "gives the shape (2,)"),
        # The Notation section says T=3, S=4.
        ("[[1, 2, 3]] * 4  # (T, S)", "the sizes of S and T"),
        ("def f(seq_len):\n    return [1]  # (T,)\nf(2)", "where T=2"),
        (
            "def f(x, y):\n    'x and y (S,)'\n    return [1]  # (S,)\n"
            "f([1, 2], [3, 4])",
            "where S=2",
        ),
    ],
)
def test_shape_comment_that_lies_is_rejected(notebook, source, expected):
    notebook.code[1].source = source
    message = said(notebook)[0]
    assert "small.ipynb [2], line " in message and expected in message
    assert "Correct the comment or the code." in message


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "def f(x):\n    'Return it, (T,), of x (S,).'\n"
            "    return [x]\nf([1])",
            "the docstring says (T,), the code gives the shape (1, 1)",
        ),
        (
            "def f():\n    'Return the sums (S,) and the parts (T, S).'\n"
            "    return [[1]], [2]\nf()",
            "the docstring says (S,), (T, S), the code gives the shape (1, 1)",
        ),
        (
            "def f(seq_len):\n    'Do it; result (..., T).'\n"
            "    return [1]\nf(2)",
            "gives the shape (1,) where T=2. Correct the docstring",
        ),
        (
            "def f():\n    'Tell which are right, (B,).'\n"
            "    return [[1]]\nf()",
            "the docstring says (B,), the code gives the shape (1, 1)",
        ),
        (
            "def f(x):\n    'Put x (T, K) apart: return it. The output is "
            "(T, 2 K).'\n    return x\nf([[1, 2]])",
            "the docstring says (T, 2 K), the code gives the shape (1, 2) "
            "where K=2, T=1",
        ),
        (
            "def f():\n    'Make it. Returns (T, 3 S).'\n"
            "    return [[1]]  # (T, S)\nf()",
            "the comment says (T, S), the docstring (T, 3 S). Correct",
        ),
        (
            "def f():\n    'Return it, (B, T).'\n"
            "    return [[1]]  # (B, S)\nf()",
            "line 3: the comment says (B, S), the docstring (B, T). Correct",
        ),
    ],
)
def test_docstring_that_lies_of_the_result_is_rejected(
    notebook, source, expected
):
    notebook.code[0].source += "\nx = [1, 2, 3]"
    notebook.code[1].source = source
    notebook.code[-1].source = "y = [4]  # ()"
    first, *_, last = said(notebook)
    assert "small.ipynb [2], line " in first and expected in first
    assert "small.ipynb [7], line 1: the comment says ()" in last


@pytest.mark.parametrize(("shape", "lies"), [("T,", False), ("K,", True)])
def test_stub_that_lies_of_its_solution_is_rejected(shape, lies):
    words = f'"""Return the sums, ({shape}), of the rows of x (T, K)."""'
    stub, faults = f"def sums(x):\n    {words}\n    return None", []
    variables = {"sums_solution": lambda x: [sum(row) for row in x]}
    answer = shapes.attempted(stub, "sums_solution", variables, faults)
    assert answer([[1, 2], [3, 4], [5, 6]]) == [3, 7, 11]
    assert bool(faults) == lies
    if lies:
        assert "the stub sums, line 3: the docstring says (K,)" in faults[0]
        assert "Correct the docstring" in faults[0]


def test_cell_s_own_names_give_sizes(notebook):
    notebook.code[0].source = "seq_len = 2"
    notebook.code[1].source = "x = [1, 2, seq_len]  # (T,)"
    assert "where T=2" in said(notebook)[0]


def test_call_that_is_wrong_on_purpose_gives_no_sizes():
    body = "    return x  # (T,)\n"
    wrong = f"def f(x):\n    'x (T, S)'\n{body}f([1])\n"
    either = f"def g(x):\n    'x (T, S) or (T,)'\n{body}g([1, 2])"
    source = wrong + either
    code = compile(shapes.rewrite(source), "cell", "exec")
    exec(code, shapes.hooks({}, []))


def test_names_of_the_sizes_are_those_of_the_notation_page():
    page = (BOOK / "notation.md").read_text("utf-8")
    for name, letter in shapes.NAMES.items():
        assert re.search(rf"(?m)^\| {letter} \|.*`{name}`", page), name


def test_shape_that_computes_with_an_unknown_letter_is_rejected():
    code = compile(shapes.rewrite("x = [1]  # (T + 1,)"), "cell", "exec")
    with pytest.raises(shapes.ShapeError, match="T has no size yet"):
        exec(code, shapes.hooks({}, []))


@pytest.mark.parametrize(
    "source",
    [
        "for x in ([1], [1], [1, 2]):\n    y = x  # (T,)",
        "def f(x, y):\n    x = x  # (T,)\n    return y  # (T,)\n"
        "f([1], [1])\nf([1], [1, 2])",
    ],
)
def test_shape_that_is_wrong_after_it_was_right_is_rejected(source):
    code = compile(shapes.rewrite(source), "cell", "exec")
    with pytest.raises(shapes.ShapeError, match="where T=1"):
        exec(code, shapes.hooks({}, []))


@pytest.mark.parametrize(
    "source",
    [
        "x = [[1, 2, 3]]  # (B, T): a remark",
        "x = [[1, 2, 3]]  # (..., T)",
        "x = [[[1, 2, 3, 4, 5, 6]]]  # (B, T, 2 * 3)",
        "def f(x):\n    return x  # (T,)\nf([1])\nf([1, 2])",
        "a, b = [1], [2, 3]  # (T,), (S,)",
        "x = 1.5  # ()",
        "def f(x):\n    'Return x (S,) anew, (T,).'\n    return x\nf([1])",
        "def f(x):\n    'x (K,), of the output. The output is (2 K,), or so "
        "(T,)'\n    return x + x\nf([1])",
        "def f():\n    'Return it, (B, D).'\n    return [[1]]  # (B, H * K)",
        "def f():\n    'Return if it has the shape (T,).'\n    return 1\nf()",
        "def f(x):\n    if x:\n        y = [x]  # (T,)\n    return y\nf(1)",
    ],
)
def test_true_shape_comment_passes(source):
    code = compile(shapes.rewrite(source), "cell", "exec")
    exec(code, shapes.hooks({}, []))


def test_wrong_number_in_an_alt_text_is_found(notebook):
    alt = {"alt": "A line through 4<!--= len(x) --> points."}
    notebook.code[5].metadata["mystnb"] = {"image": alt}
    (message,) = run(notebook).messages
    assert "small.ipynb [6]: the prose says 4" in message


def test_wrong_number_is_found_where_it_stands(notebook):
    notebook.markdown[6].source = "It has 4<!--= len(x) --> numbers."
    (message,) = run(notebook).messages
    assert (
        "small.ipynb, cell 11" in message and "correct the number" in message
    )


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
    found = run(notebook).messages
    assert len(found) == len(expected)
    for message, part in zip(found, expected, strict=True):
        assert "small.ipynb, cell 1 ('# Small')" in message
        assert part in message


def test_number_keeps_the_variable_that_stands_above_it(notebook):
    notebook.markdown[6].source = "It has 3<!--= len(x) -->, not 2<!--= y -->."
    notebook.code[4].source = "x, y = [0, 0], 2"
    assert run(notebook).messages == []
