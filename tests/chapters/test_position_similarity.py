"""The chapter on similarity: its functions, and its checks of a table."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.exercises.positional_encoding import vectors

pytestmark = pytest.mark.xdist_group("frameworks")


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


@given(
    offsets=st.lists(st.integers(-5000, 5000), max_size=4),
    half=st.integers(1, 40),
    base=st.sampled_from([100, 10000.0]),
)
def test_similarity_is_the_product_of_two_rows(book, offsets, half, base):
    """For lists, and for arrays of any shape."""
    found = book["similarity"](offsets, 2 * half, base)
    assert found.shape == (len(offsets),)
    start, *rows = book["position_table"](
        10_001, 2 * half, base, torch.float64
    )[[5000, *(5000 + k for k in offsets)]]
    for row, number in zip(rows, found, strict=True):
        assert math.isclose(number, float(start @ row), abs_tol=1e-8)
    square = np.array([[1, 2], [3, 4]])
    assert book["similarity"](square, 2 * half).shape == (2, 2)


@given(
    k=st.integers(-50, 50),
    half=st.integers(1, 20),
    kind=st.sampled_from([int, float, np.int64, np.float32]),
)
def test_rotations_step_for_numbers_of_any_type(twins, k, half, kind):
    rows = vectors([50, 50 + k], 2 * half)
    for rotation in twins("rotation_matrix"):
        matrix = rotation(kind(k), 2 * half)
        assert matrix.shape == (2 * half,) * 2 and matrix.dtype == np.float64
        np.testing.assert_allclose(matrix @ rows[0], rows[1], atol=1e-12)


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
    kind=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
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
        np.testing.assert_allclose(
            found, vectors(positions, 2 * half), 0, 1e-12
        )


@given(half=st.integers(1, 8), longest=st.integers(1, 300))
def test_the_closest_return_is_that_of_a_search(book, half, longest):
    offset, distance = book["closest_return"](2 * half, longest)
    offsets = np.arange(1, longest + 1)
    gaps = 2 * half - 2 * book["similarity"](offsets, 2 * half)
    assert math.isclose(distance**2, gaps.min(), abs_tol=1e-9)
    assert math.isclose(gaps[offset - 1], gaps.min(), abs_tol=1e-9)


# What examines a table, and the checks of the mistakes


@given(
    T=st.integers(2, 40),
    half=st.integers(1, 20),
    kind=st.sampled_from(["float32", "float64"]),
)
def test_what_is_said_of_a_right_table(book, twins, T, half, kind):
    width = 2 * half
    table = vectors(np.arange(T), width).astype(kind)
    curve = book["similarity"](np.arange(T), width)
    for examine in twins("examine"):
        held = examine(table)
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
