"""Right and wrong answers to the exercises of *Attention*."""

import math

import numpy as np

from . import softmax


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


def backward(mean):
    """Return an answer with another mean of the gradient."""
    return lambda p, g: p * (g - mean(p, g))


def row_mean(p, g):
    return (p * g).sum(axis=-1, keepdims=True)


def through_the_jacobian(p, g):
    rows = zip(p, g, strict=True)
    return np.stack([(np.diag(a) - np.outer(a, a)) @ b for a, b in rows])


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
