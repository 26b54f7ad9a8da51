"""The chapter on attention: what its checkers say, and its functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.figures.attention_drawn import draw_way

pytestmark = pytest.mark.xdist_group("frameworks")


def softmax(scores):
    parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return parts / parts.sum(axis=-1, keepdims=True)


# What the chapter defines, beyond the sizes that it shows

SIZES, SOME = st.integers(1, 4), st.integers(0, 3)


@given(
    front=st.lists(SOME, max_size=2),
    T=SOME,
    S=SIZES,
    K=SIZES,
    V=SIZES,
    kind=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    step=st.integers(1, 2),
    mask_axes=st.integers(0, 4),
    seed=st.integers(0, 99),
)
def test_attend_for_every_type_size_and_stride(
    twins, front, T, S, K, V, kind, step, mask_axes, seed
):
    """An empty batch and a mask with fewer axes than scores included."""
    rng = np.random.default_rng(seed)
    query, key, value = given_ = [
        rng.standard_normal((*front, n, width * step)).astype(kind)[
            ..., ::step
        ]
        for n, width in ((T, K), (S, K), (S, V))
    ]
    mask = rng.random((*front, T, S)) < 0.6
    mask = mask[(0,) * max(mask.ndim - mask_axes, 0)] if mask.size else None
    if mask is not None:
        mask = np.atleast_1d(mask)
        mask[..., 0] = True
    query, key, value = (array.astype(float) for array in given_)
    scores = query @ key.swapaxes(-2, -1) / math.sqrt(K)
    weights = softmax(np.where(True if mask is None else mask, scores, -1e9))
    within = {"float16": 0.01, "bfloat16": 0.1, "float32": 1e-5}
    for attend in twins("attend"):
        found = attend(*given_, mask)
        for array, right in zip(
            found, (weights @ value, weights), strict=True
        ):
            assert array.dtype.name == kind and array.shape == right.shape
            np.testing.assert_allclose(
                array.astype(float), right, atol=within.get(kind, 1e-12)
            )


def test_blocked_scores_count_for_nothing_however_low_the_others(twins):
    given_ = [[-1e12]], [[1.0], [1.0]], [[2.0], [3.0]], [[True, False]]
    for attend in twins("attend"):
        output, weights = attend(*map(np.array, given_))
        assert output.tolist() == [[2]] and weights.tolist() == [[1, 0]]


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64", "float32"])
def test_masks_of_numbers_are_refused_by_both(book, twins, kind):
    """1 and 0 may mean the opposite elsewhere, and are added in a third."""
    x, mask = np.ones((3, 2)), np.tri(3).astype(kind)
    refusals = RuntimeError, TypeError, book["tf"].errors.OpError
    for attend in twins("attend"):
        with pytest.raises(refusals, match="(?i)bool"):
            attend(x, x, x, mask)


def test_the_root_before_the_product_gives_the_same(twins):
    rng = np.random.default_rng(0)
    given_ = [rng.standard_normal((2, size, 8)) for size in (3, 5, 5)]
    right, _ = twins("attend")[0](*given_)
    for early in twins("attend_dividing_queries"):
        np.testing.assert_allclose(early(*given_), right, rtol=1e-12)


# The wrong axis


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_both_axes_learn_to_write_backwards(book, kind):
    learned = {"loss": 0.0, "correct": 1.0}
    assert book[f"outcome{kind}"] == {-1: learned, -2: learned}
    assert (
        book["backwards_share"](np.zeros((5000, 6, 8)), book["new_digits"])
        < 0.2
    )


# The head that is trained


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_the_trained_head_reads_no_later_letter(book, kind):
    """At no position, in no held-out row; and it does read the earlier."""
    model = book[f"model{kind}"]

    def logits_of(rows):
        if kind:
            return model(rows).numpy()
        return model(book["torch"].tensor(rows)).detach().numpy()

    rows = book["held_rows"][:99, :-1]
    logits = logits_of(rows)
    for at in (1, 5, 20):
        changed = rows.copy()
        changed[:, at] = (rows[:, at] + 7) % 30
        gaps = np.abs(logits_of(changed) - logits).max(axis=(0, 2))
        assert gaps[:at].max() < 1e-5 and gaps[at:].min() > 1e-3


# One token's way


def test_the_drawn_way_ends_where_attend_does(book, twins):
    picture = draw_way(
        book["words"], 2, book["asks"][1], book["keys"], book["values"]
    )
    for attend in twins("attend"):
        output, weights = attend(book["asks"], book["keys"], book["values"])
        assert "({:.2f}, {:.2f})".format(*output[1]) in picture.alt
        assert f"Life {weights[1, 0]:.2f}, is" in picture.alt


def test_three_matrices_make_the_query_and_the_value_that_were_made_up(book):
    kinds, wanted, says = (book[name] for name in ("kinds", "wanted", "says"))
    assert np.array_equal((kinds @ wanted)[[0, 2, 5]], book["asks"])
    assert np.array_equal(kinds @ says, book["values"])
