"""The chapter on attention: its exercises' checkers and its functions.

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


# Right and wrong answers


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


def by_a_length(place):
    """Return an answer that divides by the root of T (0) or of S (1)."""

    def answer(query, key, value, d_model):
        length = (query, key)[place].shape[1]
        return attention(math.sqrt(length))(query, key, value, d_model)

    return answer


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
    enlarge=1.0,
    scale=2,
    drop="weights",
    exchange=False,
):
    """Return an answer to exercise 3 with one thing changed."""

    def answer(x, query_proj, key_proj, value_proj, rate, training, rng):
        given = query_proj, key_proj, value_proj
        q, k, v = (x @ given[i] for i in order)
        weights = softmax(q @ k.T / scale)
        chance = rng.random(weights.shape)
        kept = chance < rate if exchange else chance >= rate
        factor = kept * enlarge / (1 - rate)
        drops = (training or always) and not never
        if drops and drop == "weights":
            weights = weights * factor
        if drops and drop == "values":
            v = v * factor[:, : v.shape[1]]
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


def by_a_twelfth(query, key, value, d_model):
    return attention(d_model)(query, key, value, d_model)


def mixture(logs, third=0.0):
    """Return an answer to exercise 1.

    logs: the logarithm of the first weight over the second; third: the
    weight of each key after them.
    """
    low = third * (math.exp(logs) + 1) / (1 - 2 * third)
    scores = np.array([logs, 0, math.log(max(low, 1e-20))])
    return lambda: scores * math.sqrt(3) / 10


ROOT, LOG = math.sqrt(3), math.log(3)
# Wrong answers by exercise: the verdict after its number, and the answer.
WRONG = {
    "mixture_query": [
        ("three numbers, please; not (4,).", lambda: [1, 2, 3, 4]),
        ("the third key still gets 0.0122.", lambda: [0.75, 0.25, 0]),
        ("the third key still gets 0.0015.", mixture(LOG, 0.0015)),
        (
            "three quarters for the second: exchange the two.",
            mixture(-LOG),
        ),
        (
            "three quarters for the second: exchange the two.",
            mixture(-LOG + 0.0008),
        ),
        ("the first key gets 0.2503.", mixture(-LOG + 0.0015)),
        (
            "the scores are divided by the root of 3.",
            lambda: [LOG / 10, 0, -3],
        ),
        ("the keys are ten long.", lambda: [LOG * ROOT, 0, -9]),
        (
            "keys are ten long, scores divided by a root.",
            lambda: [LOG, 0, -9],
        ),
        ("the first key gets 0.5000.", lambda: [0, 0, -9]),
        ("the first key gets 0.7511.", mixture(LOG + 0.006)),
    ],
    "own_attention": [
        (
            "rows of your weights sum to 0.57 to 1.98: "
            "the softmax runs over the queries.",
            attention(axis=1),
        ),
        ("queries and keys are exchanged.", exchanged),
        ("the keys are not transposed.", not_transposed),
        ("the scores are not divided.", attention(1)),
        ("divided by d_k instead of its root.", attention(4)),
        ("multiplied by the root, not divided.", attention(0.5)),
        (
            "divided by the root of d_model; a head is narrower.",
            by_d_model,
        ),
        ("two calls differ; no dropout when it is used.", with_luck),
        ("other numbers than equation (2).", attention(3)),
        ("other numbers than equation (2).", by_a_twelfth),
        (
            "NaN for large scores; take off the maximum.",
            attention(function=naive),
        ),
        ("(2, 3, 4), and not (2, 3, 1).", of_one_width),
        ("a length is the divisor.", by_a_length(0)),
        ("a length is the divisor.", by_a_length(1)),
    ],
    "dropout_layer": [
        ("drops although it is not training.", layer(always=True)),
        ("query_proj is never used.", layer(order=(1, 1, 2))),
        ("key_proj is never used.", layer(order=(0, 0, 2))),
        ("value_proj is never used.", layer(order=(0, 1, 1))),
        ("without dropout it is not self_attend.", layer(scale=1)),
        ("drops nothing in training.", layer(never=True)),
        ("0.8 times the output, on average.", layer(enlarge=0.8)),
        ("1.2 times the output, on average.", layer(enlarge=1.16)),
        ("0.2 times the output, on average.", layer(exchange=True)),
        (
            "drops values, not weights; all queries share them.",
            layer(drop="values"),
        ),
        (
            "drops numbers of the output, not weights.",
            layer(drop="outputs"),
        ),
    ],
    "softmax_backward": [
        ("only diag(p) g; rows do not sum to zero.", lambda p, g: p * g),
        (
            "only the diagonal of the Jacobian.",
            lambda p, g: p * (1 - p) * g,
        ),
        (
            "the factor p in front is missing.",
            lambda p, g: g - inner(p, g),
        ),
        ("the sign is turned.", lambda p, g: p * (inner(p, g) - g)),
        (
            "the sum runs over all rows at once.",
            lambda p, g: p * (g - (p * g).sum()),
        ),
        (
            "the sum runs over the queries.",
            lambda p, g: p * (g - (p * g).sum(axis=0)),
        ),
        (
            "the sum lacks the weights.",
            lambda p, g: p * (g - g.sum(axis=-1, keepdims=True)),
        ),
        (
            "a plain, unweighted mean.",
            lambda p, g: p * (g - g.mean(axis=-1, keepdims=True)),
        ),
        ("not J times g.", lambda p, g: g),
        ("not J times g.", lambda p, g: np.zeros(3)),
    ],
    "attend_in_blocks": [
        (
            "the blocks' outputs are averaged.",
            per_block(lambda outputs: np.mean(outputs, axis=0)),
        ),
        (
            "only the last block is left.",
            per_block(lambda outputs: outputs[-1]),
        ),
        ("only the first block is used.", stream(first_only=True)),
        ("each block has its own maximum.", own_maxima),
        ("what was gathered is not rescaled.", stream(shrink=False)),
        (
            "the scores are not divided by the root.",
            lambda q, k, v, block: stream()(2 * q, k, v, block),
        ),
        (
            "other numbers than attention.",
            lambda q, k, v, block: 0 * v[:5],
        ),
        (
            "the last block is lost when it is not full.",
            stream(ragged=False),
        ),
        (
            "overflow; carry the largest score along.",
            stream(largest=False),
        ),
        (
            "holds all weights at once.",
            lambda q, k, v, block: softmax(q @ k.T / 2) @ v,
        ),
    ],
}


@frameworks
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


@frameworks
@pytest.mark.parametrize(
    ("number", "name", "answer"),
    [
        (1, "mixture_query", mixture(LOG, 0.0008)),
        (1, "mixture_query", lambda: mixture(LOG)() + 1),
        (1, "mixture_query", mixture(LOG - 0.004)),
        (1, "mixture_query", mixture(LOG + 0.004)),
        (2, "own_attention", attention()),
        (3, "dropout_layer", layer()),
        (5, "attend_in_blocks", stream()),
    ],
)
def test_other_right_answer_is_accepted(book, number, name, answer):
    verdict = book[f"check_{name}"](answer)
    assert verdict == f"Exercise {number}: correct."


# What the chapter defines, beyond the sizes that it shows


@frameworks
@pytest.mark.parametrize("kind", ["", "_tf"])
def test_blocked_scores_count_for_nothing_however_low_the_others(
    book, attend_to_low_scores, kind
):
    assert attend_to_low_scores(book, kind) == [[[2]], [[1, 0]]]


@frameworks
def test_blocks_of_one_with_scores_far_below_zero(book):
    given = np.array([[-1e10]]), np.ones((2, 1)), np.array([[1.0], [3.0]])
    assert book["attend_in_blocks_solution"](*given, 1) == 2


@frameworks
def test_own_attention_of_other_lengths_than_widths(book):
    rng = np.random.default_rng(0)
    query, key = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 5, 4))
    given = query, key, rng.standard_normal((2, 5, 6)), 12
    found = book["own_attention_solution"](*given)
    assert np.allclose(found, attention()(*given))


@frameworks
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_naive_softmax_is_along_the_last_axis(book, shape):
    import tensorflow as tf
    import torch

    scores = np.random.default_rng(0).standard_normal(shape)
    for kind, array in (("", torch.tensor), ("_tf", tf.constant)):
        found = book[f"naive_softmax{kind}"](array(scores))
        assert np.allclose(found, softmax(scores))


@frameworks
@pytest.mark.parametrize("d_model", [6, 7])
def test_position_table_of_many_places_in_either_type(book, d_model):
    import tensorflow as tf
    import torch

    angles = np.arange(5000)[:, None] / 10000 ** (np.arange(0, 8, 2) / d_model)
    right = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    right = right.reshape(5000, 8)[:, :d_model]
    for kind, of in (("", torch), ("_tf", tf)):
        table = book[f"position_table{kind}"]
        assert table(5000, d_model).dtype == of.float32
        exact = table(5000, d_model, dtype=of.float64)
        assert exact.dtype == of.float64
        assert np.allclose(exact, right, rtol=0, atol=1e-9)


@frameworks
def test_the_small_model_divides_its_matrices_by_the_root_of_the_width(book):
    words, places, *matrices = book["small_model"](500, 400, 64)
    for drawn, spread in [
        (words, 1),
        (places, 1),
        *((m, 8) for m in matrices),
    ]:
        assert math.isclose(drawn.detach().std() * spread, 1, abs_tol=0.05)


@frameworks
@pytest.mark.parametrize("axis", [-1, -2])
def test_the_small_model_attends(book, axis):
    import torch

    parameters = book["small_model"](8, 6, 4)
    token_ids = torch.tensor([[3, 1, 4, 1, 5, 0], [2, 7, 1, 6, 2, 4]])
    found = book["word_scores"](token_ids, parameters, axis).detach()
    words, places, *matrices = (p.detach().numpy() for p in parameters)
    x = words[token_ids] + places
    query, key, value = (x @ matrix for matrix in matrices[:3])
    weights = softmax(query @ key.swapaxes(1, 2) / 2, axis)
    assert np.allclose(found, weights @ value @ matrices[3], atol=1e-5)


@frameworks
def test_the_small_model_has_to_learn(book):
    assert book["train_backwards"](-1, steps=0) < 0.5
    assert all(0.99 < share <= 1 for share in book["accuracies"].values())


@frameworks
def test_one_query_with_large_scores(book):
    given = np.array([1000.0]), np.array([[1.0], [2.0]]), np.eye(2)
    output, weights = book["attend_one_query"](*given)
    assert output.tolist() == weights.tolist() == [0, 1]
