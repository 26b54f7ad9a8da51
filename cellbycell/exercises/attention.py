"""The exercises of *Attention*."""

import math

import numpy as np

from . import Exercise, Seen, peak_bytes, softmax, to_numbers
from .attention_answers import (
    attention,
    backward,
    in_blocks,
    layer,
    of_blocks,
    own_maxima,
    row_mean,
    through_the_jacobian,
    unstable,
    without_keepdims,
    without_maximum,
)

# 1: ask for a mixture

ROOT, LOG_3 = math.sqrt(3), math.log(3)


def query_of(difference):
    """Return an answer whose first score lies this far above the second."""
    return lambda: [difference * ROOT / 10, 0, -9]


def gap_and_rest(mixture_query):
    """Return the difference of the first scores, and the others' weight."""
    query = to_numbers(mixture_query(), (3,))
    scores = 10 * query[[0, 1, 2, 2]] / ROOT
    rest = softmax(scores)[2:].max()
    return np.array([scores[0] - scores[1], 0 if rest < 0.001 else rest])


check_mixture_query = Exercise(
    number=1,
    right=query_of(LOG_3),
    cases=lambda: [gap_and_rest],
    mistakes={
        "three quarters for the second: exchange the two": query_of(-LOG_3),
        "forgotten: scores are divided by the root of 3": query_of(
            LOG_3 / ROOT
        ),
        "forgotten: the keys are ten long, not one": query_of(10 * LOG_3),
        "forgotten: keys are ten long; the root of 3": query_of(
            10 * LOG_3 / ROOT
        ),
        "the last two keys still get a share": Seen(
            lambda answer: gap_and_rest(answer)[1] > 0,
            lambda: [LOG_3 * ROOT / 10, 0, 0],
        ),
    },
    otherwise="the first two weights are not three to one",
    close=lambda found, wanted: (
        found.shape == wanted.shape and np.allclose(found, wanted, 0, 0.005)
    ),
)


# 2: attention from memory


def attention_cases():
    """Return a batch of equal sizes, then others, then large scores."""
    rng = np.random.default_rng(3)
    for factor in (1, 1000):
        for B, T, S, K, V in [(4, 4, 4, 4, 4), (3, 5, 2, 9, 7)]:
            shapes = (B, T, K), (B, S, K), (B, S, V)
            query, key, value = map(rng.standard_normal, shapes)
            yield factor * query, key, value, 3 * K


def changes_from_call_to_call(own_attention):
    given = next(attention_cases())
    return not np.array_equal(own_attention(*given), own_attention(*given))


DIVISORS = {
    "the scores are not divided": lambda *_: 1,
    "divided by d_k instead of its root": lambda q, k, v, d: q.shape[-1],
    "multiplied by the root, not divided": lambda q, *_: q.shape[-1] ** -0.5,
    "divided by the root of d_model; a head is narrower": (
        lambda q, k, v, d: d**0.5
    ),
    "divided by d_model; a head is narrower": lambda q, k, v, d: d,
    "the root is that of a value's width": lambda q, k, v, d: (
        v.shape[-1] ** 0.5
    ),
    "a length is the divisor": lambda q, *_: q.shape[1] ** 0.5,
    "a length is the divisor, that of the keys": lambda q, k, v, d: (
        k.shape[1] ** 0.5
    ),
    "divided by 2, whatever the width of a key": lambda *_: 2,
    "len(query) is the batch size, not a width": lambda q, *_: len(q) ** 0.5,
}
KEEP = "without keepdims=True the {} of a row meets other rows"
MIXES = {
    "NaN for large scores; take off the maximum": unstable,
    "the rows of your weights do not sum to one: the softmax runs over the "
    "queries": lambda scores: softmax(scores, 1),
    "the softmax runs over the batch": lambda scores: softmax(scores, 0),
    "there is no softmax": lambda scores: scores,
    KEEP.format("sum"): without_keepdims(False, True),
    KEEP.format("maximum"): without_keepdims(True, False),
    KEEP.format("sum and the maximum"): without_keepdims(True, True),
}
PRODUCTS = {
    "queries and keys are exchanged": lambda query, key: key @ query.mT,
    "the keys are not transposed": lambda query, key: query @ key,
    "key.T moves the batch, too; exchange the last two axes": (
        lambda query, key: query @ key.T
    ),
}
CHANGES = {
    says: {name: change}
    for name, table in dict(
        divisor=DIVISORS, mix=MIXES, scores=PRODUCTS
    ).items()
    for says, change in table.items()
}

check_own_attention = Exercise(
    number=2,
    right=attention(),
    cases=attention_cases,
    mistakes={says: attention(**changed) for says, changed in CHANGES.items()}
    | {
        "these are the scores": lambda q, k, v, d: (
            q @ k.mT / math.sqrt(q.shape[-1])
        ),
        "these are the weights; the values have no part": lambda q, k, v, d: (
            softmax(q @ k.mT / math.sqrt(q.shape[-1]))
        ),
        "two calls differ; no dropout when it is used": Seen(
            changes_from_call_to_call,
            lambda q, k, v, d: (
                attention()(q, k, v, d)
                * (np.random.default_rng().random() + 0.5)
            ),
        ),
    },
    otherwise="other numbers than equation (2): {}",
)


# 3: a layer with dropout


def unequal_drops(dropout_layer):
    """Return how a hundred calls treat the weights: which are zero, and the
    factor of the others, for two rates.

    With values of one-hot rows, the output of the layer is its weights, here
    twice, side by side; each pair is dropped together.
    """
    rng = np.random.default_rng(5)
    x, *proj = rng.standard_normal((3, 5, 5)) / 2
    proj.append(np.tile(np.linalg.inv(x), 2))  # (D, V)
    calm = layer()(x, *proj, 0.5, False, rng)  # (T, T)
    found = []
    for rate in (0.2, 0.5):
        drawn = np.stack(
            [
                to_numbers(dropout_layer(x, *proj, rate, True, rng), (5, 10))
                for _ in range(100)
            ]
        )
        is_kept = np.abs(drawn) > 1e-9
        factors = (drawn / calm)[is_kept]
        if not len(factors):
            factors = np.zeros(1)
        spread = np.ptp(factors) > 1e-6
        twins = (is_kept[..., :5] == is_kept[..., 5:]).all()
        found += [round(1 - is_kept.mean(), 1), factors[0], spread, twins]
    return np.array(found, float)


def layer_cases():
    """Return the layer when it is not training, and then in training."""
    rng = np.random.default_rng(4)
    for T, D, K, V in [(5, 4, 4, 4), (3, 5, 2, 4)]:
        shapes = (T, D), (D, K), (D, K), (D, V)
        yield *map(rng.standard_normal, shapes), 0.5, False, rng
    yield unequal_drops


check_dropout_layer = Exercise(
    number=3,
    right=layer(),
    cases=layer_cases,
    mistakes={
        "drops although it is not training": Seen(
            lambda answer: any(
                not np.array_equal(answer(*case), answer(*case))
                for case in list(layer_cases())[:2]
            ),
            layer(always=True),
        ),
        "query_proj is never used": layer(order=(1, 1, 2)),
        "key_proj is never used": layer(order=(0, 0, 2)),
        "value_proj is never used": layer(order=(0, 1, 1)),
        "queries and keys are exchanged": layer(order=(1, 0, 2)),
        "what stays is not divided by 1 - rate": lambda *given: layer(
            factor=1 - given[4]
        )(*given),
        "what stays is divided by rate": lambda *given: layer(
            factor=(1 - given[4]) / given[4]
        )(*given),
        "it drops what should stay, a share of 1 - rate": layer(exchange=True),
        "it drops scores; drop weights, after the softmax": layer(of="scores"),
        "it drops the output; drop the weights": layer(of="output"),
        "it drops numbers of x; drop the weights": layer(of="x"),
        "no weight becomes zero": lambda *given: layer()(
            *given[:5], False, given[6]
        ),
    },
    otherwise="it is not self-attention with dropout on the weights: {}",
)


# 4: backwards without the Jacobian


def backward_cases():
    rng = np.random.default_rng(5)
    for shape in [(4, 4), (4, 6), (1, 1)]:
        yield softmax(rng.standard_normal(shape)), rng.standard_normal(shape)


def writes_a_jacobian(softmax_backward):
    p = np.full((1, 1000), 0.001)  # (T, S)
    return peak_bytes(softmax_backward, p, p) > 1000**2


check_softmax_backward = Exercise(
    number=4,
    right=backward(row_mean),
    cases=backward_cases,
    mistakes={
        "only diag(p) g; rows do not sum to zero": lambda p, g: p * g,
        "only the diagonal of the Jacobian": lambda p, g: p * (1 - p) * g,
        "the factor p in front is missing": lambda p, g: g - row_mean(p, g),
        "the sign is turned": lambda p, g: p * (row_mean(p, g) - g),
        "the sum runs over all rows at once": backward(
            lambda p, g: (p * g).sum()
        ),
        "the sum runs over the queries": backward(
            lambda p, g: (p * g).sum(axis=0)
        ),
        "without keepdims=True the sum of a row meets other rows": backward(
            lambda p, g: (p * g).sum(axis=-1)
        ),
        "the sum lacks the weights": backward(
            lambda p, g: g.sum(-1, keepdims=True)
        ),
        "a plain, unweighted mean": backward(
            lambda p, g: g.mean(-1, keepdims=True)
        ),
        "the two terms are added, not subtracted": lambda p, g: (
            p * (g + row_mean(p, g))
        ),
        "the gradient is returned as it came": lambda p, g: g,
        "writes a whole Jacobian down; vectors are enough": Seen(
            writes_a_jacobian, through_the_jacobian
        ),
    },
    otherwise="not J times g: {}",
)


# 5: attention in one pass


def block_cases():
    rng = np.random.default_rng(6)
    for K in (4, 9):
        shapes = (5, K), (12, K), (12, 3)
        query, key, value = map(rng.standard_normal, shapes)
        for block in (4, 12, 5, 1, 20):
            yield query, key, value, block
    key, value = rng.random((12, 9)), rng.random((12, 3))  # (S, K), (S, V)
    for factor in (10000, -10000):
        yield factor * np.ones((1, 9)), key, value, 4


def holds_all_weights(attend_in_blocks):
    key, value = np.ones((2000, 4)), np.ones((2000, 3))
    held = peak_bytes(attend_in_blocks, key[:200], key, value, 200)
    return held >= 200 * 2000 * 8  # the bytes of all weights


check_attend_in_blocks = Exercise(
    number=5,
    right=in_blocks(),
    cases=block_cases,
    mistakes={
        says: in_blocks(**changed)
        for says, changed in {
            "the last block is lost when it is not full": {
                "all_blocks": False
            },
            "the scores are not divided by the root": {"divisor": lambda k: 1},
            "divided by 2, whatever the width of a key": {
                "divisor": lambda k: 2
            },
            "what was gathered is not rescaled": {
                "shrink": lambda x, y: (1, 1)
            },
            "the sum is rescaled, the mixture is not": {
                "shrink": lambda old, new: (np.exp(old - new), 1)
            },
            "the mixture is rescaled, the sum is not": {
                "shrink": lambda old, new: (1, np.exp(old - new))
            },
            "rescaled the wrong way round": {
                "start": 0,
                "shrink": lambda old, new: (np.exp(new - old),) * 2,
            },
            "the mixture is not divided by the sum": {"by_sum": False},
            "scores far below zero are lost; begin with m = -infinity": {
                "start": 0
            },
        }.items()
    }
    | {
        "the blocks' outputs are averaged": of_blocks(
            lambda outputs: np.mean(outputs, axis=0)
        ),
        "only the last block is left": of_blocks(lambda outputs: outputs[-1]),
        "only the first block is used": of_blocks(lambda outputs: outputs[0]),
        "each block has its own maximum": own_maxima,
        "overflow; carry the largest score along": without_maximum,
        "holds all weights at once": Seen(
            holds_all_weights,
            lambda query, key, value, block: attention()(query, key, value, 0),
            lambda query, key, value, block: np.vstack(
                [
                    attention()(query[i : i + block], key, value, 0)
                    for i in range(0, len(query), block)
                ]
            ),
        ),
    },
    otherwise="other numbers than attention: {}",
)
