"""The exercises of *Attention*."""

import math

import numpy as np

from . import Exercise, Seen, peak_bytes, to_numbers


def softmax(scores, axis=-1):
    """Return the softmax along an axis."""
    parts = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return parts / parts.sum(axis=axis, keepdims=True)


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


def attention(divisor=None, mix=softmax, scores=None):
    """Return an answer with another divisor, softmax or scores."""

    def own_attention(query, key, value, d_model):
        width = query.shape[-1]
        by = divisor(query, key, value, d_model) if divisor else width**0.5
        product = scores(query, key) if scores else query @ key.mT
        return mix(product / by) @ value

    return own_attention


def without_keepdims(of_max, of_sum):
    """Return a softmax that forgets keepdims=True for one of them."""

    def mix(scores):
        parts = np.exp(scores - scores.max(axis=-1, keepdims=not of_max))
        return parts / parts.sum(axis=-1, keepdims=not of_sum)

    return mix


def unstable(scores):
    """Return a softmax that does not take off the maximum."""
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True)


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


check_own_attention = Exercise(
    number=2,
    right=attention(),
    cases=attention_cases,
    mistakes={
        "the scores are not divided": attention(lambda *_: 1),
        "divided by d_k instead of its root": attention(
            lambda q, k, v, d: q.shape[-1]
        ),
        "multiplied by the root, not divided": attention(
            lambda q, k, v, d: q.shape[-1] ** -0.5
        ),
        "divided by the root of d_model; a head is narrower": attention(
            lambda q, k, v, d: d**0.5
        ),
        "divided by d_model; a head is narrower": attention(
            lambda q, k, v, d: d
        ),
        "the root is that of a value's width": attention(
            lambda q, k, v, d: v.shape[-1] ** 0.5
        ),
        "a length is the divisor": attention(
            lambda q, k, v, d: q.shape[1] ** 0.5
        ),
        "a length is the divisor, that of the keys": attention(
            lambda q, k, v, d: k.shape[1] ** 0.5
        ),
        "divided by 2, whatever the width of a key": attention(lambda *_: 2),
        "len(query) is the batch size, not a width": attention(
            lambda q, k, v, d: len(q) ** 0.5
        ),
        "NaN for large scores; take off the maximum": attention(mix=unstable),
        "the rows of your weights do not sum to one: the softmax runs over "
        "the queries": attention(mix=lambda scores: softmax(scores, 1)),
        "the softmax runs over the batch": attention(
            mix=lambda scores: softmax(scores, 0)
        ),
        "there is no softmax": attention(mix=lambda scores: scores),
        "these are the scores": lambda q, k, v, d: (
            q @ k.mT / math.sqrt(q.shape[-1])
        ),
        "these are the weights; the values have no part": lambda q, k, v, d: (
            softmax(q @ k.mT / math.sqrt(q.shape[-1]))
        ),
        "queries and keys are exchanged": attention(
            scores=lambda query, key: key @ query.mT
        ),
        "the keys are not transposed": attention(
            scores=lambda query, key: query @ key
        ),
        "key.T moves the batch, too; exchange the last two axes": attention(
            scores=lambda query, key: query @ key.T
        ),
        "without keepdims=True the sum of a row meets other rows": attention(
            mix=without_keepdims(False, True)
        ),
        "without keepdims=True the maximum of a row meets other rows": (
            attention(mix=without_keepdims(True, False))
        ),
        "without keepdims=True the sum and the maximum of a row meet other "
        "rows": attention(mix=without_keepdims(True, True)),
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


def layer(
    order=(0, 1, 2), always=False, factor=1, exchange=False, of="weights"
):
    """Return an answer with one thing changed.

    order: which projections make queries, keys and values; always: dropout
    when it is not training, too; factor: of what stays; exchange: what should
    stay is dropped; of: what is dropped, "weights", "scores", "output", "x".
    """

    def dropout_layer(
        x, query_proj, key_proj, value_proj, rate, training, rng
    ):
        def drop(array):
            if not (training or always):
                return array
            kept = (rng.random(array.shape) >= rate) != exchange
            return array * kept * factor / (1 - rate)

        x = drop(x) if of == "x" else x
        given = query_proj, key_proj, value_proj
        q, k, v = (x @ given[i] for i in order)
        scores = q @ k.T / math.sqrt(k.shape[-1])
        weights = softmax(drop(scores) if of == "scores" else scores)
        output = (drop(weights) if of == "weights" else weights) @ v
        return drop(output) if of == "output" else output

    return dropout_layer


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


def backward(mean):
    """Return an answer with another mean of the gradient."""
    return lambda p, g: p * (g - mean(p, g))


def row_mean(p, g):
    return (p * g).sum(axis=-1, keepdims=True)


def backward_cases():
    rng = np.random.default_rng(5)
    for shape in [(4, 4), (4, 6), (1, 1)]:
        yield softmax(rng.standard_normal(shape)), rng.standard_normal(shape)


def through_the_jacobian(p, g):
    rows = zip(p, g, strict=True)
    return np.stack([(np.diag(a) - np.outer(a, a)) @ b for a, b in rows])


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


def in_blocks(
    start=-np.inf,
    divisor=lambda width: math.sqrt(width),
    shrink=lambda old, new: (np.exp(old - new),) * 2,
    all_blocks=True,
    by_sum=True,
):
    """Return an answer with one thing changed.

    start: the largest score at first; divisor: of the scores, by their width;
    shrink: the factors of the sum and of the mixture, by the old maximum and
    the new; all_blocks: the last block counts, too, if it is not full; by_sum:
    the mixture is divided by the sum.
    """

    def attend_in_blocks(query, key, value, block):
        most = np.full((len(query), 1), start)  # (T, 1)
        total = mixture = 0.0
        end = len(key) if all_blocks else len(key) // block * block
        for at in range(0, end, block):
            rows = slice(at, at + block)
            scores = query @ key[rows].T / divisor(query.shape[-1])
            new = np.maximum(most, scores.max(axis=-1, keepdims=True))
            parts = np.exp(scores - new)
            of_sum, of_mixture = shrink(most, new)
            total = of_sum * total + parts.sum(axis=-1, keepdims=True)
            mixture = of_mixture * mixture + parts @ value[rows]
            most = new
        return mixture / total if by_sum else mixture

    return attend_in_blocks


def of_blocks(join):
    """Return an answer that joins the outputs of attention to each block."""

    def attend_in_blocks(query, key, value, block):
        starts = range(0, len(key), block)
        return join(
            [
                attention()(query, key[i : i + block], value[i : i + block], 0)
                for i in starts
            ]
        )

    return attend_in_blocks


def own_maxima(query, key, value, block):
    """Sum up blocks that each have their own maximum."""
    total = mixture = 0.0
    for at in range(0, len(key), block):
        rows = slice(at, at + block)
        scores = query @ key[rows].T / math.sqrt(query.shape[-1])
        parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
        total = total + parts.sum(axis=-1, keepdims=True)
        mixture = mixture + parts @ value[rows]
    return mixture / total


def without_maximum(query, key, value, block):
    parts = np.exp(query @ key.T / math.sqrt(query.shape[-1]))
    return parts / parts.sum(axis=-1, keepdims=True) @ value


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
        "the last block is lost when it is not full": in_blocks(
            all_blocks=False
        ),
        "the blocks' outputs are averaged": of_blocks(
            lambda outputs: np.mean(outputs, axis=0)
        ),
        "only the last block is left": of_blocks(lambda outputs: outputs[-1]),
        "only the first block is used": of_blocks(lambda outputs: outputs[0]),
        "the scores are not divided by the root": in_blocks(
            divisor=lambda width: 1
        ),
        "divided by 2, whatever the width of a key": in_blocks(
            divisor=lambda width: 2
        ),
        "each block has its own maximum": own_maxima,
        "what was gathered is not rescaled": in_blocks(
            shrink=lambda old, new: (1, 1)
        ),
        "the sum is rescaled, the mixture is not": in_blocks(
            shrink=lambda old, new: (np.exp(old - new), 1)
        ),
        "the mixture is rescaled, the sum is not": in_blocks(
            shrink=lambda old, new: (1, np.exp(old - new))
        ),
        "rescaled the wrong way round": in_blocks(
            start=0, shrink=lambda old, new: (np.exp(new - old),) * 2
        ),
        "the mixture is not divided by the sum": in_blocks(by_sum=False),
        "overflow; carry the largest score along": without_maximum,
        "scores far below zero are lost; begin with m = -infinity": in_blocks(
            start=0
        ),
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
