"""The chapter on attention: what its checkers say, and its functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Right and wrong answers


def softmax(scores, axis=-1):
    parts = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return parts / parts.sum(axis=axis, keepdims=True)


def naive(scores):
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True)


def without_keepdims(scores):
    parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return parts / parts.sum(axis=-1)


def attention(power=0.5, function=softmax):
    """Return an answer to exercise 2 with another divisor or softmax.

    The divisor is a power of the width of a key.
    """

    def answer(query, key, value, d_model):
        scores = query @ key.swapaxes(1, 2) / query.shape[-1] ** power
        return function(scores) @ value

    return answer


def by_d_model(query, key, value, d_model):
    scores = query @ key.swapaxes(1, 2) / math.sqrt(d_model)
    return softmax(scores) @ value


def in_place(query, key, value, d_model):
    query /= math.sqrt(query.shape[-1])
    return softmax(query @ key.swapaxes(1, 2)) @ value


def exchanged(query, key, value, d_model):
    return attention()(key, query, value, d_model)


def layer(
    order=(0, 1, 2), always=False, enlarge=1.0, exchange=False, outputs=False
):
    """Return an answer to exercise 3 with one thing changed.

    order: which projections make queries, keys and values; always: dropout
    when the layer is used, too; exchange: what should stay is dropped;
    outputs: the outputs are dropped instead of the weights.
    """

    def answer(x, query_proj, key_proj, value_proj, rate, training, rng):
        given = query_proj, key_proj, value_proj
        q, k, v = (x @ given[i] for i in order)
        weights = softmax(q @ k.T / math.sqrt(k.shape[-1]))
        factor = np.ones((1, 1))
        if training or always:
            kept = (rng.random(weights.shape) >= rate) != exchange
            factor = kept * enlarge / (1 - rate)
        if outputs:
            return (weights @ v) * factor[:, : v.shape[1]]
        return (weights * factor) @ v

    return answer


def stream(shrink_mixture=True, ragged=True, by_sum=True):
    """Return an answer to exercise 5 with one thing left out."""

    def answer(query, key, value, block):
        m, total, mixture = np.full((len(query), 1), -np.inf), 0.0, 0.0
        end = len(key) if ragged else len(key) // block * block
        for start in range(0, end, block):
            rows = slice(start, start + block)
            scores = query @ key[rows].T / math.sqrt(query.shape[-1])
            new = np.maximum(m, scores.max(axis=-1, keepdims=True))
            parts, old = np.exp(scores - new), np.exp(m - new)
            total = total * old + parts.sum(axis=-1, keepdims=True)
            mixture = mixture * (old if shrink_mixture else 1)
            mixture = mixture + parts @ value[rows]
            m = new
        return mixture / (total if by_sum else 1)

    return answer


def averaged(query, key, value, block):
    outputs = [
        softmax(query @ key[i : i + block].T / 2) @ value[i : i + block]
        for i in range(0, len(key), block)
    ]
    return np.mean(outputs, axis=0)


def own_maxima(query, key, value, block):
    total, mixture = 0.0, 0.0
    for i in range(0, len(key), block):
        scores = query @ key[i : i + block].T / 2
        parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
        total += parts.sum(axis=-1, keepdims=True)
        mixture += parts @ value[i : i + block]
    return mixture / total


def inner(p, g):
    return (p * g).sum(axis=-1, keepdims=True)


def mixture(logs):
    """Return an answer to exercise 1.

    logs: the logarithm of the first weight over the second.
    """
    return lambda: np.array([logs, 0, -46]) * math.sqrt(3) / 10


ROOT, LOG = math.sqrt(3), math.log(3)
# Wrong answers by exercise: the verdict after its number, and the answer.
WRONG = {
    "mixture_query": [
        ("the third key still gets 0.0122.", lambda: [0.75, 0.25, 0]),
        ("three quarters for the second: exchange the two.", mixture(-LOG)),
        (
            "forgotten: scores are divided by the root of 3.",
            lambda: [LOG / 10, 0, -1],
        ),
        (
            "forgotten: the keys are ten long, not one.",
            lambda: [LOG * ROOT, 0, -9],
        ),
        ("forgotten: keys are ten long; the root of 3.", lambda: [LOG, 0, -9]),
    ],
    "own_attention": [
        (
            "rows of your weights sum to 0.55 to 1.80: "
            "the softmax runs over the queries.",
            attention(function=lambda scores: softmax(scores, axis=1)),
        ),
        ("queries and keys are exchanged.", exchanged),
        ("the scores are not divided.", attention(0)),
        ("divided by the root of d_model; a head is narrower.", by_d_model),
        (
            "NaN for large scores; take off the maximum.",
            attention(function=naive),
        ),
        (
            "key.T moves the batch, too; exchange the last two axes.",
            lambda q, k, v, d: softmax(q @ k.T / math.sqrt(q.shape[-1])) @ v,
        ),
        (
            "without keepdims=True the sum of a row meets other rows.",
            attention(function=without_keepdims),
        ),
        (
            "without keepdims=True the maximum of a row meets other rows.",
            attention(function=lambda s: softmax(s - s.max(axis=-1))),
        ),
    ],
    "dropout_layer": [
        ("drops although it is not training.", layer(always=True)),
        ("key_proj is never used.", layer(order=(0, 0, 2))),
        (
            "what stays is 1.00 times as large, for a rate of 0.2.",
            layer(enlarge=0.8),
        ),
        ("drops 0.80 of the weights for a rate of 0.2.", layer(exchange=True)),
        ("drops numbers of the output, not weights.", layer(outputs=True)),
    ],
    "softmax_backward": [
        ("only diag(p) g; rows do not sum to zero.", lambda p, g: p * g),
        ("only the diagonal of the Jacobian.", lambda p, g: p * (1 - p) * g),
        ("the factor p in front is missing.", lambda p, g: g - inner(p, g)),
        ("the sign is turned.", lambda p, g: p * (inner(p, g) - g)),
        (
            "the sum runs over the queries.",
            lambda p, g: p * (g - (p * g).sum(axis=0)),
        ),
        (
            "without keepdims=True the sum of a row meets other rows.",
            lambda p, g: p * (g - (p * g).sum(axis=-1)),
        ),
    ],
    "attend_in_blocks": [
        (
            "the blocks' outputs are averaged.",
            averaged,
        ),
        ("each block has its own maximum.", own_maxima),
        (
            "the sum is rescaled, the mixture is not.",
            stream(shrink_mixture=False),
        ),
        ("the mixture is not divided by the sum.", stream(by_sum=False)),
        ("the last block is lost when it is not full.", stream(ragged=False)),
    ],
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("mixture_query", lambda: mixture(LOG)() + 1),
        ("own_attention", in_place),
        ("dropout_layer", layer()),
        ("attend_in_blocks", stream()),
    ],
)
def test_other_right_answer_is_accepted(book, name, answer):
    assert book[f"check_{name}"](answer).endswith(": correct.")


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


def test_one_query_with_large_scores(book):
    given_ = np.array([1000.0]), np.array([[1.0], [2.0]]), np.eye(2)
    output, weights = book["attend_one_query"](*given_)
    assert output.tolist() == weights.tolist() == [0, 1]


def test_blocks_of_one_with_scores_far_below_zero(book):
    given_ = np.array([[-1e10]]), np.ones((2, 1)), np.array([[1.0], [3.0]])
    assert book["attend_in_blocks_solution"](*given_, 1) == 2


@given(
    shape=st.lists(SIZES, min_size=1, max_size=3),
    kind=st.sampled_from(["float16", "float32", "float64", "int64"]),
    seed=st.integers(0, 99),
)
def test_softmax_of_arrays(book, shape, kind, seed):
    """Along every axis, for scores that would overflow."""
    scores = 500 * np.random.default_rng(seed).standard_normal(shape)
    scores = scores.astype(kind)
    for axis in range(len(shape)):
        found = book["softmax"](scores, axis=axis)
        right = softmax(scores.astype(float), axis=axis)
        np.testing.assert_allclose(found, right, atol=1e-2)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_naive_softmax_is_along_the_last_axis(twins, shape):
    scores = np.random.default_rng(0).standard_normal(shape)
    for naive_softmax in twins("naive_softmax"):
        assert np.allclose(naive_softmax(scores), softmax(scores))


@given(T=st.integers(0, 6), half=st.integers(1, 6), k=st.integers(-3, 3))
def test_heads_that_look_back(book, twins, T, half, k):
    rows = book["position_table"](T, 2 * half, dtype=book["torch"].float64)
    offsets = np.subtract.outer(np.arange(T), np.arange(T)) - k
    right = softmax(2 * book["similarity"](offsets, 2 * half)) if T else 0
    for look_back in twins("look_back"):
        found = look_back(rows.numpy(), k, 2.0)
        np.testing.assert_allclose(found, right, atol=1e-10)


@pytest.mark.parametrize("width", [1, 3, 5, 63])
def test_a_head_of_an_odd_width_cannot_look_back(twins, width):
    for look_back in twins("look_back"):
        with pytest.raises(ValueError, match=f"even, and is {width}"):
            look_back(np.ones((2, width)), 1, 1.0)


# The small model that is trained


def test_the_small_model_divides_its_matrices_by_the_root_of_the_width(book):
    parameters = book["small_model"](500, 400, 64)
    for drawn, factor in zip(parameters, [1, 1, 8, 8, 8, 8], strict=True):
        assert math.isclose(drawn.detach().std() * factor, 1, abs_tol=0.05)


@pytest.mark.parametrize("axis", [-1, -2])
def test_the_small_model_attends(book, axis):
    parameters = book["small_model"](8, 6, 4)
    ids = book["torch"].tensor([[3, 1, 4, 1, 5, 0], [2, 7, 1, 6, 2, 4]])
    found = book["token_logits"](ids, parameters, axis).detach()
    tokens, positions, *matrices = (p.detach().numpy() for p in parameters)
    x = tokens[ids] + positions
    query, key, value = (x @ matrix for matrix in matrices[:3])
    weights = softmax(query @ key.swapaxes(1, 2) / 2, axis)
    assert np.allclose(found, weights @ value @ matrices[3], atol=1e-5)


def test_the_small_model_has_to_learn(book):
    assert book["train_backwards"](-1, steps=0) < 0.5
    assert all(0.99 < share <= 1 for share in book["accuracies"].values())


def test_the_sentences_have_the_ids_of_the_chapter_on_words(book):
    assert book["token_ids"] == [
        [8, 6, 10, 11, 0, 0, 0],
        [2, 7, 9, 4, 3, 5, 0],
    ]
