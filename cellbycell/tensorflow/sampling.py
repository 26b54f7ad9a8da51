"""Which token next?: its tensorflow part, for what comes after it.

Built and explained in the chapter *Which token next?* of the book.
Written by `make package`: change it in the chapter.
"""

import math
from itertools import count

import numpy as np
import tensorflow as tf


def keep_top_k_tf(logits, k):
    """Return logits (..., N) with -inf at all but the k largest.

    Of equal logits, the first are kept; NaN counts as infinite.
    """
    infinite = tf.constant(math.inf, logits.dtype)
    numbers = tf.where(tf.math.is_nan(logits), infinite, logits)  # (..., N)
    order = tf.argsort(numbers, direction="DESCENDING", stable=True)
    ranks = tf.argsort(order)  # (..., N)
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(ranks < k, logits, dropped)


def keep_top_p_tf(logits, p):
    """Return logits (..., N) with -inf beyond the fewest that reach p.

    The largest stays. Long sums of small numbers need float64.
    Source: Holtzman et al. 2020, section 3.1.
    """
    probs = tf.nn.softmax(tf.cast(logits, tf.float64))  # (..., N)
    order = tf.argsort(probs, direction="DESCENDING", stable=True)
    probs = tf.gather(probs, order, batch_dims=-1)  # (..., N)
    before = tf.cumsum(probs, axis=-1) - probs  # (..., N)
    kept = (before < p) | (before == 0)
    ranks = tf.argsort(order)  # (..., N)
    kept = tf.gather(kept, ranks, batch_dims=-1)  # (..., N): sorted back
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(kept, logits, dropped)


def keep_min_p_tf(logits, min_p):
    """Return logits (..., N) with -inf below min_p times the likeliest."""
    wide = tf.cast(logits, tf.float64)  # half precision would round the limit
    shares = tf.exp(wide - tf.reduce_max(wide, -1, keepdims=True))  # (..., N)
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(shares < min_p, dropped, logits)


def filter_logits_tf(logits, temperature=1.0, k=None, p=1.0, min_p=0.0):
    """Return logits (..., N) over the temperature, with -inf at the tail.

    Temperature 0 keeps only the largest. The order is that of generate in
    transformers. Half precision becomes float32.
    """
    wide = logits.dtype if logits.dtype == tf.float64 else tf.float32
    logits = tf.cast(logits, wide)
    if temperature == 0:
        return keep_top_k_tf(logits, 1)
    logits = logits / temperature
    if k is not None:
        logits = keep_top_k_tf(logits, k)
    if p < 1:
        logits = keep_top_p_tf(logits, p)
    return keep_min_p_tf(logits, min_p) if min_p > 0 else logits


def sampler_tf(noise, **settings):
    """Return a function that draws the next ids (B,) from logits (B, N).

    noise (C, B, N), a row for each of C steps; or a seed, for any number of
    steps. settings: those of filter_logits.
    """
    rng = np.random.default_rng(noise) if np.ndim(noise) == 0 else None
    steps = count()

    def choose(logits):
        row = rng.gumbel(size=logits.shape) if rng else noise[next(steps)]
        kept = filter_logits_tf(logits, **settings)  # (B, N)
        kept = tf.cast(kept, tf.float64)  # (B, N)
        return tf.argmax(kept + tf.cast(row, tf.float64), -1)

    return choose
