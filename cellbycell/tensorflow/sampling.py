"""Which token next?: its tensorflow part, for what comes after it.

Built and explained in the chapter *Which token next?* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import tensorflow as tf

from cellbycell.tensorflow.decoder import append_ids_tf


def keep_top_k_tf(logits, k):
    """Return logits (..., N) with -inf at all but the k largest.

    Of equal logits, the first are kept.
    """
    order = tf.argsort(logits, direction="DESCENDING", stable=True)
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
    probs = tf.nn.softmax(logits)  # (..., N)
    limit = min_p * tf.reduce_max(probs, -1, keepdims=True)  # (..., 1)
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(probs < limit, dropped, logits)


def filter_logits_tf(logits, temperature=1.0, k=None, p=1.0, min_p=0.0):
    """Return logits (..., N) over the temperature, with -inf at the tail.

    Temperature 0 keeps only the largest. The order is Transformers'.
    """
    if temperature == 0:
        return keep_top_k_tf(logits, 1)
    logits = logits / temperature
    if k is not None:
        logits = keep_top_k_tf(logits, k)
    if p < 1:
        logits = keep_top_p_tf(logits, p)
    return keep_min_p_tf(logits, min_p) if min_p > 0 else logits


def sample_decode_tf(model, token_ids, noise, end_id, **settings):
    """Return token_ids (B, T) and what a model writes behind them.

    After end_id a row has zeros. model: ids (B, T) to logits (B, T, N);
    noise (C, B, N): C steps at most; settings: those of filter_logits.
    """
    has_ended = tf.zeros(len(token_ids), tf.bool)
    for row in noise:
        logits = model(token_ids)[:, -1]  # (B, N)
        logits = filter_logits_tf(logits, **settings)
        next_ids = tf.argmax(logits + row, -1, token_ids.dtype)  # (B,)
        next_ids = tf.where(has_ended, tf.zeros_like(next_ids), next_ids)
        token_ids = append_ids_tf(token_ids, next_ids)
        has_ended = has_ended | (next_ids == end_id)
        if tf.reduce_all(has_ended):
            break
    return token_ids
