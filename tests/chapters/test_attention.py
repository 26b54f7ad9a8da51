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
WRONG = {
    "mixture_query": {
        "third key still gets 0.0122": lambda: [0.75, 0.25, 0],
        "exchange the two": mixture(-LOG),
        "by the root of 3": lambda: [LOG / 10, 0, -1],
        "ten long, not one": lambda: [LOG * ROOT, 0, -9],
        "ten long; the root": lambda: [LOG, 0, -9],
    },
    "own_attention": {
        "0.55 to 1.80: the softmax": attention(
            function=lambda scores: softmax(scores, axis=1)
        ),
        "queries and keys are exchanged": exchanged,
        "not divided": attention(0),
        "root of d_model": by_d_model,
        "of a value's width": lambda q, k, v, d: (
            softmax(q @ k.swapaxes(1, 2) / math.sqrt(v.shape[-1])) @ v
        ),
        "NaN for large scores": attention(function=naive),
        "key.T moves the batch": lambda q, k, v, d: (
            softmax(q @ k.T / math.sqrt(q.shape[-1])) @ v
        ),
        "the sum of a row meets": attention(function=without_keepdims),
        "the maximum of a row meets": attention(
            function=lambda s: softmax(s - s.max(axis=-1))
        ),
    },
    "dropout_layer": {
        "it is not training": layer(always=True),
        "key_proj is never used": layer(order=(0, 0, 2)),
        "1.00 times as large": layer(enlarge=0.8),
        "drops 0.80 of the weights": layer(exchange=True),
        "numbers of the output": layer(outputs=True),
        "no weight becomes zero": lambda x, q, k, v, rate, training, rng: (
            layer()(
                x * (rng.random(x.shape) >= rate) / (1 - rate)
                if training
                else x,
                q,
                k,
                v,
                rate,
                False,
                rng,
            )
        ),
    },
    "softmax_backward": {
        "only diag(p) g": lambda p, g: p * g,
        "only the diagonal": lambda p, g: p * (1 - p) * g,
        "factor p in front": lambda p, g: g - inner(p, g),
        "sign is turned": lambda p, g: p * (inner(p, g) - g),
        "over the queries": lambda p, g: p * (g - (p * g).sum(axis=0)),
        "without keepdims=True": lambda p, g: p * (g - (p * g).sum(axis=-1)),
    },
    "attend_in_blocks": {
        "outputs are averaged": averaged,
        "its own maximum": own_maxima,
        "the mixture is not.": stream(shrink_mixture=False),
        "not divided by the sum": stream(by_sum=False),
        "last block is lost": stream(ragged=False),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


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
