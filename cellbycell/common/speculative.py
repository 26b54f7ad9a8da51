"""A draft and a judge: its common part, for what comes after it.

Built and explained in the chapter *A draft and a judge* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def residual(p, q):
    """Return what q lacks of p, (N,), as probabilities; p if it lacks nothing.

    Source: Leviathan et al. 2023, section 2.3.
    """
    lacking = np.maximum(p - q, 0)  # (N,)
    return lacking / lacking.sum() if lacking.any() else p


def draw(probs, rng):
    """Return a token, drawn with its probability of (N,)."""
    return int((probs / rng.exponential(size=len(probs))).argmax())


def judge(drafted, p, q, rng):
    """Return the tokens of a round: those accepted, and one that is drawn.

    drafted: tokens, each drawn from its row of q; p: the target's rows, one
    more. Source: Leviathan et al. 2023, algorithm 1.
    """
    uniform = rng.random(len(drafted))  # (C,)
    for i, token in enumerate(drafted):
        if uniform[i] >= p[i][token] / q[i][token]:
            return [*drafted[:i], draw(residual(p[i], q[i]), rng)]
    return [*drafted, draw(p[-1], rng)]


def read_on(model, token_ids, cache):
    """Return logits (B, T, N) of the ids that a cache lacks, and the cache."""
    start = cache[0][0].shape[2] if cache else 0
    return model(token_ids[:, start:], cache)


def cut_cache(cache, length):
    """Return a cache without what comes after this many tokens."""
    return [(key[:, :, :length], value[:, :, :length]) for key, value in cache]


def what_followed(text, size=2):
    """Return the id that came after the last ids before; None if none did."""
    for i in range(len(text) - 1, size - 1, -1):
        if text[i - size : i] == text[-size:]:
            return text[i]
