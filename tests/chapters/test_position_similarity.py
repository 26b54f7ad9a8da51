"""The chapter on similarity: its exercises' checkers.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers: exercise, the verdict, the answer.


def turns(d_model):
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


def product(offset, d_model):
    return np.cos(offset * turns(d_model)).sum()


def count(length, d_model, radians):
    return int((radians / turns(d_model) <= length).sum())


def interleaved(offset, d_model):
    matrix = np.zeros((d_model, d_model))
    for i, turn in enumerate(turns(d_model)):
        cos, sin = math.cos(offset * turn), math.sin(offset * turn)
        block = slice(2 * i, 2 * i + 2)
        matrix[block, block] = [[cos, sin], [-sin, cos]]
    return matrix


def in_halves(matrix, axes="both", back=False):
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    if back:
        order = np.argsort(order)
    if axes in ("both", "rows"):
        matrix = matrix[order]
    return matrix[:, order] if axes in ("both", "columns") else matrix


def reader(sign=1, hands=32, candidates=range(-50, 51)):
    """Return an answer that compares `there` with turns of `here`."""

    def read(here, there):
        def gap(k):
            moved = interleaved(sign * k, 64) @ here
            return np.abs(moved - there)[: 2 * hands].max()

        return min(candidates, key=gap)

    return read


def by_product(here, there):
    """Return the offset that the dot product alone suggests."""
    return min(range(51), key=lambda k: abs(product(k, 64) - here @ there))


def only_near_the_beginning(here, there):
    rows = np.array([interleaved(p, 64)[:, 1::2].sum(1) for p in range(80)])
    p, q = (np.abs(rows - row).max(1).argmin() for row in (here, there))
    return int(q - p)


def looped(turn, start, stop, divisor):
    return sum(math.cos(turn * k) for k in range(start, stop)) / divisor


def without_zero(turn, n):
    collapsed = math.sin(turn * (n - 0.5)) / math.sin(turn / 2)
    return (collapsed + 1) / (2 * n)


def distance(offset, d_model):
    return math.sqrt(d_model - 2 * product(offset, d_model))


def mean(turn, n):
    return looped(turn, 0, n, n)


def wrong_at(*case, answer, found=7.0):
    """Return an answer that is wrong in one case only."""
    return lambda *given: found if given == case else answer(*given)


# What is no answer to any exercise, and what its checker says.

WRONG = {
    "position_distance": [
        (
            "this is the square of the distance; take the root.",
            lambda k, d: d - 2 * product(k, d),
        ),
        ("this is the similarity; the distance falls when it rises.", product),
        (
            "the product occurs twice in |a - b|^2.",
            lambda k, d: math.sqrt(d - product(k, d)),
        ),
        (
            "this is for vectors of length 1.",
            lambda k, d: math.sqrt(2 - 4 * product(k, d) / d),
        ),
        (
            "this is the length of the sum; mind a sign.",
            lambda k, d: math.sqrt(d + 2 * product(k, d)),
        ),
    ],
    "hands_come_round": [
        (
            "these are columns; a hand has two.",
            lambda n, d: 2 * count(n, d, 6.2832),
        ),
        (
            "these are the hands that do not come round.",
            lambda n, d: d // 2 - count(n, d, 6.2832),
        ),
        ("a round is 2 pi radians.", lambda n, d: count(n, d, 1)),
        ("half a round is not a round.", lambda n, d: count(n, d, math.pi)),
        (
            "the fastest hand needs 6.28 steps, at any width.",
            lambda n, d: count(n, 512, 6.2832),
        ),
    ],
    "rotation_halves": [
        ("this is the matrix of the interleaved layout.", interleaved),
        (
            "only the rows are reordered; the columns are not.",
            lambda k, d: in_halves(interleaved(k, d), "rows"),
        ),
        (
            "it steps back; mind the sign of the sine.",
            lambda k, d: in_halves(interleaved(-k, d)),
        ),
        (
            "this reorders halves to pairs; do the reverse.",
            lambda k, d: in_halves(interleaved(k, d), back=True),
        ),
        (
            "it always steps by 1; the offset is not used.",
            lambda k, d: in_halves(interleaved(1, d)),
        ),
    ],
    "read_offset": [
        ("-2 steps lead from `there` to `here`.", reader(sign=-1)),
        ("the sign is lost, as S(-k) = S(k).", by_product),
        (
            "whole rounds are lost: only the fastest hand is read.",
            reader(hands=1, candidates=range(-3, 4)),
        ),
        (
            "it fails far from the beginning of the text.",
            only_near_the_beginning,
        ),
    ],
    "mean_cosine": [
        ("this is the sum; divide it by n.", lambda w, n: looped(w, 0, n, 1)),
        (
            "k runs from 0 to n - 1, not from 1 to n.",
            lambda w, n: looped(w, 1, n + 1, n),
        ),
        (
            "there are n terms; k = n is not one of them.",
            lambda w, n: looped(w, 0, n + 1, n + 1),
        ),
        ("turn 0 divides by zero; it needs a line of its own.", without_zero),
    ],
}


def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


@pytest.mark.parametrize("layout", ["torch", "tensorflow"])
def test_answers_in_either_framework_are_accepted(book, layout):
    suffix = "" if layout == "torch" else "_tf"

    def answer(offset, d_model):
        order = [*range(0, d_model, 2), *range(1, d_model, 2)]
        matrix = book[f"rotation{suffix}"](offset, d_model)
        if layout == "torch":
            return matrix[order][:, order]
        import tensorflow as tf

        return tf.gather(tf.gather(matrix, order, axis=0), order, axis=1)

    assert book["check_rotation_halves"](answer) == "Exercise 3: correct."


RIGHT = [
    (
        "position_distance",
        lambda k, d: np.sqrt(np.float32(d) - 2 * np.float32(product(k, d))),
    ),
    ("position_distance", wrong_at(0, 8, answer=distance, found=3e-8)),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_rounded_answers_are_accepted(book, name, answer):
    assert book[f"check_{name}"](answer) == "Exercise 1: correct."


@pytest.mark.parametrize(
    ("x", "right"),
    [
        (1, 0.3374039229),  # Abramowitz and Stegun, table 5.1
        (20 - 1e-12, 0.0444198208454),  # the rest computed by mpmath
        (20, 0.0444198208454),
        (22, 0.00164069191574),
        (60, -0.00481324337744),
    ],
)
def test_the_cosine_integral_on_both_sides_of_where_its_series_meet(
    book, x, right
):
    assert abs(book["cosine_integral"](x) - right) < 1e-9


@pytest.mark.parametrize("p", [50, 51, 10_000])
def test_every_offset_is_read(book, p):
    noon = np.tile([0.0, 1.0], 32)
    for k in range(-50, 51):
        here, there = (
            book["rotation"](t, 64).numpy() @ noon for t in (p, p + k)
        )
        assert book["read_offset_solution"](here, there) == k


@pytest.mark.parametrize("suffix", ["", "_tf"])
def test_an_odd_width_ends_with_a_sine(book, suffix):
    table = book[f"position_table{suffix}"](8, 5)
    for (p, c), found in np.ndenumerate(np.asarray(table)):
        angle = p / 10000 ** (2 * (c // 2) / 5)
        right = math.cos(angle) if c % 2 else math.sin(angle)
        assert math.isclose(found, right, abs_tol=1e-6)


def test_all_steps_of_a_sequence_are_looked_at(book):
    # cos falls from 0 to 3 and has risen at 4.
    assert book["in_order"](4, 2) and not book["in_order"](5, 2)


# The moving figure; test_interactive.py holds the page to these functions


@pytest.mark.parametrize(
    ("offset", "width", "words"),
    [
        (3, 2, "−0.9900 = −0.9900 of 1"),
        (300, 4, "−0.0221 − 0.9900 = −1.0121 of 2"),
        (0, 8, "1.0000 + 1.0000 + 1.0000 + 1.0000 = 4.0000 of 4"),
        (0, 16, f"{' + '.join(['1.0000'] * 8)} = 8.0000 of 8"),
        (
            *(0, 18),
            "clocks of pairs 0, 1, 2, 3, 4, 5, 6, 8; "
            "sum of all heights = 9.0000 of 9",
        ),
    ],
)
def test_the_terms_are_said(book, offset, width, words):
    said = book["clock_words"](offset, width)
    assert said == f"Width {width}, offset {offset}: {words}"


@pytest.mark.parametrize("width", [2, 4, 16, 18, 128])
def test_at_most_eight_clocks_are_drawn_fastest_and_slowest_included(
    book, width
):
    paths = book["clock_paths"](2, width)
    clocks = min(width // 2, 8)
    assert paths["dials"].count("M") == clocks
    hands = paths["hands"].split("M")[1:]
    for j, turn in (0, 1), (clocks - 1, 10000 ** (2 / width - 1)):
        x, y = 24 + 44 * j, 26
        tip = x + 19 * math.sin(2 * turn), y - 19 * math.cos(2 * turn)
        assert hands[j] == f"{x} {y}L{tip[0]:.2f} {tip[1]:.2f}"


# What is no answer at all gets a sentence, whichever exercise it is


# Every type and size

SIZES, SOME = st.integers(1, 4), st.integers(0, 3)
FLOATS = st.sampled_from(["float16", "bfloat16", "float32", "float64"])


def in_both(array, name):
    """Return an array as tensors of a type: PyTorch's and TensorFlow's."""
    import tensorflow as tf
    import torch

    tensor = torch.tensor(array).to(getattr(torch, name))
    return tensor, tf.cast(tf.constant(array), getattr(tf, name))


def as_float64(tensor):
    """Return a tensor of either framework as an array of float64."""
    import tensorflow as tf

    if hasattr(tensor, "detach"):
        return tensor.double().numpy()
    return tf.cast(tensor, tf.float64).numpy()


@given(
    offsets=st.lists(st.integers(-5000, 5000), max_size=4),
    half=st.integers(1, 40),
    base=st.sampled_from([100, 10000.0]),
)
def test_similarity_is_the_product_of_two_rows(book, offsets, half, base):
    """In both frameworks' tables, for lists and arrays of any shape."""
    start, d = 5000, 2 * half
    found = book["similarity"](offsets, d, base)
    assert found.shape == (len(offsets),)
    for kind, of in (("", book["torch"]), ("_tf", book["tf"])):
        table = book[f"position_table{kind}"]
        rows = table(10_001, d, base, of.float64).numpy()
        for k, number in zip(offsets, found, strict=True):
            product = rows[start] @ rows[start + k]
            assert math.isclose(number, product, abs_tol=1e-8)
    square = np.array([[1, 2], [3, 4]])
    assert book["similarity"](square, d).shape == (2, 2)


@given(
    k=st.integers(-50, 50),
    half=st.integers(1, 20),
    kind=st.sampled_from([int, float, np.int64, np.float32, np.float64]),
    base=st.sampled_from([100, 10000.0]),
)
def test_rotations_step_for_numbers_of_any_type(book, k, half, kind, base):
    d = 2 * half
    rows = book["position_table"](101, d, base, book["torch"].float64).numpy()
    for suffix in ("", "_tf"):
        matrix = book[f"rotation{suffix}"](kind(k), d, base).numpy()
        assert matrix.shape == (d, d) and matrix.dtype == np.float64
        np.testing.assert_allclose(matrix @ rows[50], rows[50 + k], atol=1e-12)


@pytest.mark.parametrize("width", [1, 3, 5, 63])
def test_odd_widths_are_refused(book, width):
    """By a sentence, in both frameworks, wherever pairs are needed."""
    torch, tf = book["torch"], book["tf"]
    for name, *given_ in [
        ("frequencies", width),
        ("similarity", 1, width),
        ("rotation", 1, width),
        ("rotation_tf", 1, width),
        ("closest_return", width, 9),
        ("in_order", 9, width),
        ("rounded_positions", [1, 2], width, torch.float32),
        ("rounded_positions_tf", [1, 2], width, tf.float32),
    ]:
        with pytest.raises(ValueError, match=f"even, and is {width}"):
            book[name](*given_)


@given(
    positions=st.lists(st.integers(0, 2**31), max_size=4),
    half=st.integers(1, 8),
    name=FLOATS,
)
def test_rounded_positions_are_twins(book, positions, half, name):
    """NaN where float16 has no number for an angle; none is a length."""
    found, found_tf = (
        book[f"rounded_positions{kind}"](
            np.array(positions, dtype=np.int64), 2 * half, getattr(of, name)
        ).numpy()
        for kind, of in (("", book["torch"]), ("_tf", book["tf"]))
    )
    assert found.shape == (len(positions), 2 * half)
    np.testing.assert_allclose(found, found_tf, atol=1e-12)
    if name == "float64":
        angles = np.outer(positions, turns(2 * half))
        right = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        right = right.reshape(-1, 2 * half)
        np.testing.assert_allclose(found, right, atol=1e-12)


@given(T=st.integers(2, 60), half=st.integers(1, 40))
def test_a_right_holds_all_checks_but_the_order(book, T, half):
    x = book["position_table"](T, 2 * half, dtype=book["torch"].float64)
    x = x.numpy()
    found = {
        name: book["holds"](check, x, x @ x.T)
        for name, check in book["CHECKS"].items()
    }
    assert found.pop("order") == bool((np.diff(x @ x[0]) < 0).all())
    assert all(found.values())


def test_the_mistakes_are_those_of_the_table(book):
    found, words = book["four_by_four"](), np.random.default_rng(0)
    x, products = found.pop("no mistake")
    np.testing.assert_allclose(products, x @ x.T)
    assert found["as an order"][0].shape == (5, 4)
    assert found["odd width"][0].shape == (4, 3)
    transposed = found.pop("transposed")[1]
    assert transposed[0, 1] == transposed[1, 0] == x[0, 1] * x[1, 0] != 0
    np.testing.assert_allclose(
        found["with words"][0] - x, words.standard_normal((4, 4))
    )
    np.testing.assert_array_equal(found["other layout"][0], x[:, [0, 2, 1, 3]])
    for table, products in found.values():
        np.testing.assert_array_equal(products, table @ table.T)


def test_what_a_check_refuses_does_not_pass(book):
    checks, odd = book["CHECKS"], np.ones((4, 3))
    assert book["holds"](checks["step"], odd, odd @ odd.T) is False
    table = np.ones((4, 4))
    for row, column, equal in [(0, 2, True), (0, 1, False)]:
        products = table @ table.T
        products[row, column] += 1e-3
        assert book["holds"](checks["diagonal"], table, products) == equal


@given(T=st.integers(0, 9), D=st.integers(2, 9), name=FLOATS)
def test_cosines_of_positions_in_every_type(book, T, D, name):
    rows = book["position_table"](T, D, dtype=book["torch"].float64).numpy()
    pair = in_both(rows, name)
    rows = as_float64(pair[0])
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    within = {"float16": 0.01, "bfloat16": 0.05, "float32": 1e-5}
    for tensor, kind in zip(pair, ("", "_tf"), strict=True):
        found = book[f"row_cosines{kind}"](tensor)
        assert found.dtype == tensor.dtype
        np.testing.assert_allclose(
            as_float64(found), rows @ rows.T, atol=within.get(name, 1e-12)
        )


@given(half=st.integers(1, 8), longest=st.integers(1, 300))
def test_the_closest_return_is_that_of_a_search(book, half, longest):
    offset, distance = book["closest_return"](2 * half, longest)
    gaps = 2 * half - 2 * book["similarity"](
        np.arange(1, longest + 1), 2 * half
    )
    assert math.isclose(distance**2, gaps.min(), abs_tol=1e-9)
    assert math.isclose(gaps[offset - 1], gaps.min(), abs_tol=1e-9)


@given(
    turn=st.one_of(st.just(0), st.just(0.0), st.floats(-3, 3)),
    n=st.integers(1, 500),
)
def test_the_mean_of_cosines_is_that_of_a_loop(book, turn, n):
    found = book["mean_cosine_solution"](turn, n)
    assert math.isclose(found, mean(turn, n), rel_tol=1e-6, abs_tol=1e-9)
