"""The exercises of *Masks*."""

import numpy as np

from . import Exercise

# 1: how many pairs


def triangle(size):
    return size * (size + 1) // 2


def causal_pairs(num_tokens, seq_len):
    """Return a triangle for the tokens, and a full row for each pad."""
    return triangle(num_tokens) + (seq_len - num_tokens) * num_tokens


check_count_pairs = Exercise(
    number=1,
    right=causal_pairs,
    cases=lambda: [(2, 5), (5, 5), (1, 4), (0, 3), (4, 9)],
    mistakes={
        "these are the causal pairs; pads block keys": lambda n, size: (
            triangle(size)
        ),
        "these are the pairs of the padding mask alone": lambda n, size: (
            n * size
        ),
        "the rows of pads are not masked": lambda n, size: triangle(n),
        "these are the pairs that are blocked": lambda n, size: (
            size * size - causal_pairs(n, size)
        ),
        "a position sees itself; the diagonal is missing": lambda n, size: (
            causal_pairs(n, size) - n
        ),
        "these are all pairs of tokens, the future included": lambda n, size: (
            n * n
        ),
    },
    otherwise="{} is not the number of pairs; draw two tokens in five",
)


# 2: a window on the past


def window(allowed):
    """Return an answer: may a query look k back, in a window of w?"""

    def window_mask(seq_len, width):
        positions = np.arange(seq_len)
        return allowed(positions[:, None] - positions, width)

    return window_mask


check_window_mask = Exercise(
    number=2,
    right=window(lambda k, w: (k >= 0) & (k < w)),
    cases=lambda: [(7, 3), (8, 5), (5, 2), (6, 1), (4, 6)],
    mistakes={
        "inverted; True means may attend": window(
            lambda k, w: (k < 0) | (k >= w)
        ),
        "a position does not see itself": window(
            lambda k, w: (k > 0) & (k <= w)
        ),
        "the diagonal is missing": window(lambda k, w: (k > 0) & (k < w)),
        "the key just before is missing": window(
            lambda k, w: (k >= 0) & (k < w) & (k != 1)
        ),
        "one position too many in the window": window(
            lambda k, w: (k >= 0) & (k <= w)
        ),
        "one position too few in the window": window(
            lambda k, w: (k >= 0) & (k < w - 1)
        ),
        "the window reaches into the future": window(lambda k, w: abs(k) < w),
        "the future is not blocked": window(lambda k, w: k < w),
        "transposed; rows are queries": window(
            lambda k, w: (k <= 0) & (k > -w)
        ),
        "the far past is not blocked": window(lambda k, w: k >= 0),
        "the window is always 3": window(lambda k, w: (k >= 0) & (k < 3)),
    },
    otherwise="not the mask of the window: {} (query, key)",
)


# 3: several texts in one row


def packed(allowed, itself=True):
    """Return an answer: is the pair of one text (s), not later (p), a token
    (t)? itself: a position may always see itself."""

    def packed_mask(text_ids):
        same = text_ids[:, :, None] == text_ids[:, None, :]  # (B, T, T)
        past = np.tri(text_ids.shape[1]) > 0  # (T, T)
        mask = allowed(same, past, (text_ids != 0)[:, None, :])  # (B, T, T)
        return mask | np.eye(len(past), dtype=bool) if itself else mask

    return packed_mask


keeps_apart = packed(lambda s, p, t: s & p & t)

check_packed_mask = Exercise(
    number=3,
    right=keeps_apart,
    cases=lambda: [
        (np.array(rows),)
        for rows in (
            [[1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 2, 3, 3]],
            [[0, 0, 4, 4, 2]],
            [[7], [0], [7]],
        )
    ],
    mistakes={
        "inverted; True means may attend": lambda ids: ~keeps_apart(ids),
        "a text sees the texts before it": packed(lambda s, p, t: p & t),
        "a position sees the future of its text": packed(
            lambda s, p, t: s & t
        ),
        "a pad sees the pads before it": packed(lambda s, p, t: s & p),
        "the pads' rows are blind": packed(lambda s, p, t: s & p & t, False),
        "transposed; rows are queries": packed(lambda s, p, t: s & p.T & t),
        "each position sees only itself": packed(lambda s, p, t: s & False),
    },
    otherwise="not the mask of packed texts: {} (row, query, key)",
)


# 4: the mean of a sequence


def mean(count, kept=lambda x, mask: np.where(mask, x, 0)):
    """Return an answer with another divisor, or other vectors in the sum.

    count: of the tokens (B, 1) and the positions; kept: of the vectors
    (B, T, D) and the mask (B, T, 1).
    """

    def mean_of_tokens(vectors, key_mask):
        total = kept(vectors, key_mask[..., None]).sum(axis=1)
        tokens = key_mask.sum(axis=1, keepdims=True)
        return total / count(tokens, key_mask.shape[1])

    return mean_of_tokens


def at_least_one(tokens, size):
    return np.maximum(tokens, 1)


def mean_cases():
    """Return pads on the right, anywhere, of NaN, without tokens, alone."""
    numbers = np.arange(1.0, 25).reshape(2, 4, 3)  # (B, T, D)
    waves = np.sin(np.repeat(numbers, 2, axis=1))
    for vectors, mask, pad in [
        (numbers, [[1, 1, 0, 0], [1, 1, 1, 0]], 0),
        (waves, [[0, 1, 1, 0, 1, 0, 0, 1], [1] * 8], 0),
        (numbers, [[0, 0, 1, 1], [1, 0, 0, 0]], np.nan),
        (numbers, [[0, 0, 0, 0], [1, 1, 1, 1]], 0),
        (numbers[:, :1], [[1], [0]], np.nan),
    ]:
        is_token = np.array(mask) > 0  # (B, T)
        yield vectors + np.where(is_token, 0, pad)[..., None], is_token


check_mean_of_tokens = Exercise(
    number=4,
    right=mean(at_least_one),
    cases=mean_cases,
    mistakes={
        "a sequence without tokens gets no zeros": mean(
            lambda tokens, size: tokens
        ),
        "nan at a pad gets through; 0 * nan is nan": mean(
            at_least_one, lambda x, mask: x * mask
        ),
        "the pads are in the mean": lambda x, mask: x.mean(axis=1),
        "divided by all positions, not by the tokens": mean(
            lambda tokens, size: size
        ),
        "divided by the tokens of all sequences": mean(
            lambda tokens, size: tokens.sum()
        ),
        "this is the sum; divide it": mean(lambda tokens, size: 1),
        "this is the mean of the pads": lambda x, mask: mean(
            lambda tokens, size: tokens
        )(x, ~mask),
    },
    otherwise="not the mean of the tokens: {} (sequence, number)",
)


# 5: a softmax that cannot fail


def softmax(z, mask, axis=-1):
    """Return the weights of equation (1), as it stands."""
    parts = np.where(mask, np.exp(z), 0)
    return parts / parts.sum(axis=axis, keepdims=True)


def multiplied(z, mask, shift=0):
    """Return these weights, with the mask as a factor."""
    parts = np.exp(z - shift) * mask
    return parts / parts.sum(axis=-1, keepdims=True)


def filled(fill):
    """Return an answer that puts a number in place of blocked scores."""

    def masked_softmax(z, mask):
        z = np.where(mask, z, fill)
        return softmax(z - z.max(axis=-1, keepdims=True), True)

    return masked_softmax


def opened(z, mask):
    """Let a blind row see everything."""
    return filled(-np.inf)(z, mask | ~mask.any(axis=-1, keepdims=True))


def cannot_fail(z, mask):
    sees = mask.any(axis=-1, keepdims=True)
    return np.where(sees, opened(z, mask), 0)


def softmax_cases():
    """Return a small case, then three axes, large, low and blind scores."""
    z = np.array([[1.0, 2, 0, 3], [0, 5, 3, 1], [2, 1, 0, 1]])  # (T, S)
    mask = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]]) > 0  # (T, S)
    yield z, mask
    yield np.stack([z, z[::-1]]), np.stack([mask, mask[::-1]])
    yield 3e3 * z, mask
    yield z - 2e9, mask
    yield 0 * z - 1e31, mask
    yield z, mask & np.array([[True], [False], [True]])


check_masked_softmax = Exercise(
    number=5,
    right=cannot_fail,
    cases=softmax_cases,
    mistakes={
        "the mask has no effect": lambda z, mask: softmax(z, True),
        "masked after the softmax; see the sums of your rows": (
            lambda z, mask: filled(0)(z, True) * mask
        ),
        "the sum runs over the queries": lambda z, mask: softmax(z, mask, -2),
        "the sum runs over all weights": lambda z, mask: softmax(
            z, mask, None
        ),
        "the rows are not divided by their sums": lambda z, mask: (
            np.exp(z) * mask
        ),
        "inverted; True means may attend": lambda z, mask: softmax(z, ~mask),
        "a blocked score of 0 still counts: its exponential is 1": (
            lambda z, mask: softmax(z * mask, True)
        ),
        "large scores fail: subtract the largest *allowed*": (
            softmax,
            multiplied,
            lambda z, mask: multiplied(z, mask, z.max(-1, keepdims=True)),
            lambda z, mask: np.nan_to_num(multiplied(z, mask)),
            lambda z, mask: np.nan_to_num(
                multiplied(z, mask, z.max(-1, keepdims=True))
            ),
            lambda z, mask: np.nan_to_num(multiplied(z, mask, z[mask].max())),
        ),
        "low scores fail: a finite fill is above them": (
            filled(-1e9),
            lambda z, mask: filled(-1e9)(z, mask) * mask,
            filled(-1e30),
        ),
        "a blind row gets nan, not zeros": filled(-np.inf),
        "a blind row gets weights, not zeros": (
            opened,
            filled(np.finfo(float).min),
        ),
    },
    otherwise="not equation (1): {}",
)
