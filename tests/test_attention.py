"""The chapter on attention: its exercises' checkers.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math

import numpy as np
import pytest

frameworks = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("attention")


# Wrong answers: exercise, what the verdict has to say, the answer.


def softmax(scores, axis=-1):
    parts = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return parts / parts.sum(axis=axis, keepdims=True)


def naive(scores):
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True)


def attention(divide=2.0, axis=-1, function=softmax):
    """Return an answer to exercise 2 with another divisor or softmax."""

    def answer(query, key, value, d_model):
        scores = query @ key.swapaxes(1, 2) / divide
        if function is softmax:
            return softmax(scores, axis) @ value
        return function(scores) @ value

    return answer


def exchanged(query, key, value, d_model):
    return attention()(key, query, value, d_model)


def not_transposed(query, key, value, d_model):
    return softmax(query @ key / 2) @ value


def by_d_model(query, key, value, d_model):
    return attention(math.sqrt(d_model))(query, key, value, d_model)


def with_luck(query, key, value, d_model):
    weights = softmax(query @ key.swapaxes(1, 2) / 2)
    kept = np.random.default_rng().random(weights.shape) < 0.5
    return (weights * kept) @ value


def of_one_width(query, key, value, d_model):
    output = attention()(query, key, value, d_model)
    return np.resize(output, (*query.shape[:2], 4))


def layer(
    *,
    order=(0, 1, 2),
    always=False,
    never=False,
    enlarge=True,
    scale=2,
    drop="weights",
):
    """Return an answer to exercise 3 with one thing changed."""

    def answer(x, query_proj, key_proj, value_proj, rate, training, rng):
        given = query_proj, key_proj, value_proj
        q, k, v = (x @ given[i] for i in order)
        weights = softmax(q @ k.T / scale)
        kept = rng.random(weights.shape) >= rate
        factor = kept / (1 - rate) if enlarge else kept
        drops = (training or always) and not never
        if drops and drop == "weights":
            weights = weights * factor
        output = weights @ v
        if drops and drop == "outputs":
            output = output * factor[:, : output.shape[1]]
        return output

    return answer


def stream(shrink=True, first_only=False, ragged=True, largest=True):
    """Return an answer to exercise 5 with one thing left out."""

    def answer(query, key, value, block):
        m, total, mixture = np.full((len(query), 1), -np.inf), 0.0, 0.0
        end = len(key) if ragged else len(key) // block * block
        for start in range(0, end, block):
            rows = slice(start, start + block)
            scores = query @ key[rows].T / math.sqrt(query.shape[-1])
            new = np.maximum(m, scores.max(axis=-1, keepdims=True))
            if not largest:
                new = np.zeros_like(new)
            parts = np.exp(scores - new)
            old = np.exp(m - new) if shrink and largest else 1.0
            total = old * total + parts.sum(axis=-1, keepdims=True)
            mixture = old * mixture + parts @ value[rows]
            m = new
            if first_only:
                break
        return mixture / total

    return answer


def per_block(combine):
    """Return an answer to exercise 5 that attends to each block alone."""

    def answer(query, key, value, block):
        return combine(
            [
                softmax(query @ key[i : i + block].T / 2)
                @ value[i : i + block]
                for i in range(0, len(key), block)
            ]
        )

    return answer


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


ROOT, LOG = math.sqrt(3), math.log(3)
WRONG = [
    ("mixture_query", "three numbers", lambda: [1, 2, 3, 4]),
    ("mixture_query", "third key still gets 0.", lambda: [0.75, 0.25, 0]),
    ("mixture_query", "exchange the two", lambda: [0, LOG * ROOT / 10, -3]),
    ("mixture_query", "divided by the root of 3", lambda: [LOG / 10, 0, -3]),
    ("mixture_query", "the keys are ten long", lambda: [LOG * ROOT, 0, -9]),
    ("mixture_query", "scores divided by a root", lambda: [LOG, 0, -9]),
    ("mixture_query", "first key gets 0.5000", lambda: [0, 0, -9]),
    ("own_attention", "runs over the queries", attention(axis=1)),
    ("own_attention", "queries and keys are exchanged", exchanged),
    ("own_attention", "not transposed", not_transposed),
    ("own_attention", "scores are not divided", attention(1)),
    ("own_attention", "by d_k instead of its root", attention(4)),
    ("own_attention", "multiplied by the root", attention(0.5)),
    ("own_attention", "root of d_model", by_d_model),
    ("own_attention", "two calls differ", with_luck),
    ("own_attention", "other numbers", attention(3)),
    ("own_attention", "take off the maximum", attention(function=naive)),
    ("own_attention", "and not (2, 3, 2)", of_one_width),
    ("dropout_layer", "although it is not training", layer(always=True)),
    ("dropout_layer", "query_proj is never used", layer(order=(1, 1, 2))),
    ("dropout_layer", "key_proj is never used", layer(order=(0, 0, 2))),
    ("dropout_layer", "value_proj is never used", layer(order=(0, 1, 1))),
    ("dropout_layer", "it is not self_attend", layer(scale=1)),
    ("dropout_layer", "drops nothing", layer(never=True)),
    ("dropout_layer", "0.5 times the output", layer(enlarge=False)),
    ("dropout_layer", "of the output, not weights", layer(drop="outputs")),
    ("softmax_backward", "only diag(p) g", lambda p, g: p * g),
    ("softmax_backward", "only the diagonal", lambda p, g: p * (1 - p) * g),
    ("softmax_backward", "p in front", lambda p, g: g - inner(p, g)),
    ("softmax_backward", "sign", lambda p, g: p * (inner(p, g) - g)),
    (
        "softmax_backward",
        "all rows at once",
        lambda p, g: p * (g - (p * g).sum()),
    ),
    (
        "softmax_backward",
        "over the queries",
        lambda p, g: p * (g - (p * g).sum(axis=0)),
    ),
    (
        "softmax_backward",
        "lacks the weights",
        lambda p, g: p * (g - g.sum(axis=-1, keepdims=True)),
    ),
    (
        "softmax_backward",
        "unweighted mean",
        lambda p, g: p * (g - g.mean(axis=-1, keepdims=True)),
    ),
    ("softmax_backward", "not J times g", lambda p, g: g),
    (
        "attend_in_blocks",
        "outputs are averaged",
        per_block(lambda outputs: np.mean(outputs, axis=0)),
    ),
    ("attend_in_blocks", "last block is left", per_block(lambda o: o[-1])),
    ("attend_in_blocks", "only the first block", stream(first_only=True)),
    ("attend_in_blocks", "block has its own maximum", own_maxima),
    ("attend_in_blocks", "gathered is not rescaled", stream(shrink=False)),
    (
        "attend_in_blocks",
        "not divided by the root",
        lambda q, k, v, block: stream()(2 * q, k, v, block),
    ),
    ("attend_in_blocks", "other numbers", lambda q, k, v, block: 0 * v[:5]),
    ("attend_in_blocks", "it is not full", stream(ragged=False)),
    ("attend_in_blocks", "carry the largest", stream(largest=False)),
]


@frameworks
@pytest.mark.parametrize(("name", "says", "answer"), WRONG)
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert says in book[f"check_{name}"](answer)
