"""The chapter on similarity: what its checkers say, and its functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers


def turns(d_model):
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


def product(offset, d_model):
    return np.cos(offset * turns(d_model)).sum()


def rounds(length, d_model, radians=6.2832):
    return length * turns(d_model) // radians


def interleaved(offset, d_model):
    matrix = np.zeros((d_model, d_model))
    for i, turn in enumerate(turns(d_model)):
        cos, sin = math.cos(offset * turn), math.sin(offset * turn)
        block = slice(2 * i, 2 * i + 2)
        matrix[block, block] = [[cos, sin], [-sin, cos]]
    return matrix


def in_halves(matrix, rows=True, columns=True):
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    matrix = matrix[order] if rows else matrix
    return matrix[:, order] if columns else matrix


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


def one_hand(here, there):
    """Return the offset that one slow hand shows, if it stays in one round."""
    angles = np.arctan2([here[42], there[42]], [here[43], there[43]])
    return np.diff(angles)[0] / turns(64)[21]


def looped(turn, start, stop, divisor):
    return sum(math.cos(turn * k) for k in range(start, stop)) / divisor


def without_zero(turn, n):
    collapsed = math.sin(turn * (n - 0.5)) / math.sin(turn / 2)
    return (collapsed + 1) / (2 * n)


WRONG = {
    "norm_of_mean": {
        "square of the norm": lambda k, d: (d + 2 * product(k, d)) / 4,
        "the similarity": product,
        "occurs twice": lambda k, d: math.sqrt(d + product(k, d)) / 2,
        "vectors of norm 1": lambda k, d: (
            math.sqrt(2 + 4 * product(k, d) / d) / 2
        ),
        "not of the mean": lambda k, d: math.sqrt(d + 2 * product(k, d)),
        "half the distance": lambda k, d: math.sqrt(d - 2 * product(k, d)) / 2,
        "mean of two norms": lambda k, d: math.sqrt(d / 2),
    },
    "whole_rounds": {
        "a hand has two": lambda n, d: 2 * rounds(n, d).sum(),
        "hands that come round": lambda n, d: (rounds(n, d) >= 1).sum(),
        "incomplete rounds are counted": lambda n, d: (
            n * turns(d) / 6.283185307
        ).sum(),
        "its own incomplete": lambda n, d: int((n * turns(d) / 6.2832).sum()),
        "2 pi radians": lambda n, d: rounds(n, d, 1).sum(),
        "half a round": lambda n, d: rounds(n, d, math.pi).sum(),
        "always 512": lambda n, d: rounds(n, 512).sum(),
    },
    "rotation_halves": {
        "interleaved layout": interleaved,
        "only the rows": lambda k, d: in_halves(
            interleaved(k, d), columns=False
        ),
        "only the columns": lambda k, d: in_halves(
            interleaved(k, d), rows=False
        ),
        "it steps back": lambda k, d: in_halves(interleaved(-k, d)),
        "always steps by 1": lambda k, d: in_halves(interleaved(1, d)),
    },
    "read_offset": {
        "-2 steps lead": reader(sign=-1),
        "the sign is lost": by_product,
        "only the fastest hand": reader(hands=1, candidates=range(-3, 4)),
        "a slow hand is lost": one_hand,
    },
    "mean_cosine": {
        "this is the sum": lambda w, n: looped(w, 0, n, 1),
        "not from 1 to n": lambda w, n: looped(w, 1, n + 1, n),
        "k = n is not one": lambda w, n: looped(w, 0, n + 1, n + 1),
        "turn 0 divides by zero": without_zero,
        "0 for turn 0; there every term is 1": lambda w, n: (
            without_zero(w, n) if w else 0
        ),
        "write one formula": lambda w, n: looped(w, 0, n, n),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


@pytest.mark.parametrize(
    ("number", "name", "dtype"),
    [
        (1, "norm_of_mean", "float16"),
        (1, "norm_of_mean", "bfloat16"),
        (5, "mean_cosine", "float32"),
    ],
)
def test_a_number_in_a_narrow_type_is_right(book, number, name, dtype):
    solution = book[f"{name}_solution"]

    def answer(*given):
        return torch.tensor(solution(*given), dtype=getattr(torch, dtype))

    said = book[f"check_{name}"](answer)
    assert said == f"Exercise {number}: correct."


# What the chapter defines, beyond the sizes that it shows


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


FLOATS = st.sampled_from(["float16", "bfloat16", "float32", "float64"])


@given(
    offsets=st.lists(st.integers(-5000, 5000), max_size=4),
    half=st.integers(1, 40),
    base=st.sampled_from([100, 10000.0]),
)
def test_similarity_is_the_product_of_two_rows(
    book, twins, offsets, half, base
):
    """In both frameworks' tables, for lists and arrays of any shape."""
    start, d = 5000, 2 * half
    found = book["similarity"](offsets, d, base)
    assert found.shape == (len(offsets),)
    for position_table in twins("position_table"):
        rows = position_table(10_001, d, base, np.dtype("float64"))
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
def test_rotations_step_for_numbers_of_any_type(
    book, twins, k, half, kind, base
):
    d = 2 * half
    rows = book["position_table"](101, d, base, torch.float64).numpy()
    for rotation in twins("rotation_matrix"):
        matrix = rotation(kind(k), d, base)
        assert matrix.shape == (d, d) and matrix.dtype == np.float64
        np.testing.assert_allclose(matrix @ rows[50], rows[50 + k], atol=1e-12)


@pytest.mark.parametrize("width", [1, 3, 63])
def test_odd_widths_are_refused(book, twins, width):
    """By a sentence, in both frameworks, wherever pairs are needed."""
    float32 = np.dtype("float32")
    for function, *given_ in [
        (book["similarity"], 1, width),
        (book["closest_return"], width, 9),
        (book["in_order"], 9, width),
        *((rotation, 1, width) for rotation in twins("rotation_matrix")),
        *(
            (rounded, [1, 2], width, float32)
            for rounded in twins("rounded_positions")
        ),
    ]:
        with pytest.raises(ValueError, match=f"even, and is {width}"):
            function(*given_)


@given(
    positions=st.lists(st.integers(0, 2**31), max_size=4),
    half=st.integers(1, 8),
    kind=FLOATS,
)
def test_rounded_positions_are_twins(twins, positions, half, kind):
    """NaN where float16 has no number for an angle."""
    found, found_tf = (
        rounded(positions, 2 * half, np.dtype(kind))
        for rounded in twins("rounded_positions")
    )
    assert found.shape == (len(positions), 2 * half)
    np.testing.assert_allclose(found, found_tf, atol=1e-12)
    if kind == "float64":
        angles = np.outer(positions, turns(2 * half))
        np.testing.assert_allclose(found[:, 0::2], np.sin(angles), atol=1e-12)
        np.testing.assert_allclose(found[:, 1::2], np.cos(angles), atol=1e-12)


@given(half=st.integers(1, 8), longest=st.integers(1, 300))
def test_the_closest_return_is_that_of_a_search(book, half, longest):
    offset, distance = book["closest_return"](2 * half, longest)
    offsets = np.arange(1, longest + 1)
    gaps = 2 * half - 2 * book["similarity"](offsets, 2 * half)
    assert math.isclose(distance**2, gaps.min(), abs_tol=1e-9)
    assert math.isclose(gaps[offset - 1], gaps.min(), abs_tol=1e-9)


# What examines a table, and the checks of the mistakes


@given(T=st.integers(2, 40), half=st.integers(1, 20), kind=FLOATS)
def test_what_is_said_of_a_right_table(book, twins, T, half, kind):
    """In float32 and float64; half precision is too coarse for it."""
    wide = kind in ("float32", "float64")
    width = 2 * half
    table = book["position_table"](T, width).numpy().astype(kind)
    found = [examine(table) for examine in twins("examine")] if wide else []
    curve = book["similarity"](np.arange(T), width)
    for held in found:
        assert held["constant diagonals"] and held["rotation"]
        assert held["falls until"] == book["first"](np.diff(curve) > 0)


@given(T=st.integers(2, 60), half=st.integers(1, 40))
def test_a_right_table_holds_all_checks_but_the_order(book, T, half):
    x = book["position_table"](T, 2 * half, dtype=torch.float64)
    x = x.numpy()
    found = {
        name: book["holds"](check, x, x @ x.T)
        for name, check in book["CHECKS"].items()
    }
    assert found.pop("order") == bool((np.diff(x @ x[0]) < 0).all())
    assert all(found.values())


def test_what_a_check_refuses_does_not_pass(book):
    odd = np.ones((4, 3))
    assert book["holds"](book["CHECKS"]["step"], odd, odd @ odd.T) is False


@pytest.mark.parametrize(("index", "holds"), [((0, 2), True), ((0, 1), False)])
def test_the_diagonal_is_the_one_beside_the_main(book, index, holds):
    products = np.full((4, 4), 4.0)
    products[index] += 1e-3
    check = book["CHECKS"]["diagonal"]
    assert book["holds"](check, np.ones((4, 4)), products) == holds


def test_all_steps_of_a_sequence_are_looked_at(book):
    # cos falls from 0 to 3 and has risen at 4.
    assert book["in_order"](4, 2) and not book["in_order"](5, 2)


# The moving figure; test_interactive.py holds the page to these functions


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
        assert hands[j] == f"{x} {y}L{tip[0]:.1f} {tip[1]:.1f}"
