"""Which token next?: its tensorflow part, for what comes after it.

Built and explained in book/sampling.ipynb.
Written by `make package`: change it in the chapter.
"""

import math

import tensorflow as tf

from cellbycell.tensorflow.decoder import append_ids_tf


def keep_top_k_tf(logits: tf.Tensor, k):
    """Return logits (..., N) with -inf at all but the k largest.

    Of equal logits, the first are kept.
    """
    order = tf.argsort(logits, direction="DESCENDING", stable=True)
    ranks = tf.argsort(order)  # (..., N)
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(ranks < k, logits, dropped)


def keep_top_p_tf(logits: tf.Tensor, p):
    """Return logits (..., N) with -inf beyond the fewest that reach p.

    They are the largest, at least one; sums are those of float64.
    Source: Holtzman et al. 2020, section 3.1.
    """
    probs = tf.nn.softmax(tf.cast(logits, tf.float64))  # (..., N)
    order = tf.argsort(probs, direction="DESCENDING", stable=True)
    probs = tf.gather(probs, order, batch_dims=-1)  # (..., N)
    before = tf.cumsum(probs, axis=-1) - probs  # (..., N)
    kept = (before < p) | (before == 0)
    kept = tf.gather(kept, tf.argsort(order), batch_dims=-1)  # (..., N)
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(kept, logits, dropped)


def keep_min_p_tf(logits: tf.Tensor, min_p):
    """Return logits (..., N) with -inf below min_p times the likeliest."""
    probs = tf.nn.softmax(logits)  # (..., N)
    limit = min_p * tf.reduce_max(probs, -1, keepdims=True)  # (..., 1)
    dropped = tf.constant(-math.inf, logits.dtype)
    return tf.where(probs < limit, dropped, logits)


def filter_logits_tf(
    logits: tf.Tensor,
    temperature: float = 1.0,
    k=None,
    p: float = 1.0,
    min_p: float = 0.0,
):
    """Return logits (..., N) over the temperature, with -inf at the tail.

    Temperature 0 leaves the largest alone. The order is that of Transformers.
    """
    if temperature == 0:
        return keep_top_k_tf(logits, 1)
    logits = logits / temperature
    if k is not None:
        logits = keep_top_k_tf(logits, k)
    if p < 1:
        logits = keep_top_p_tf(logits, p)
    return keep_min_p_tf(logits, min_p) if min_p > 0 else logits


def sample_decode_tf(
    model, token_ids: tf.Tensor, noise, end_id: int, **settings
):
    """Return token_ids (B, T) and what a model writes behind them.

    model: ids (B, T) to logits (B, T, N); noise (C, B, N): C steps at most;
    zeros after end_id. settings: those of filter_logits.
    """
    has_ended = tf.zeros(len(token_ids), tf.bool)
    for row in noise:
        logits = filter_logits_tf(model(token_ids)[:, -1], **settings)
        next_ids = tf.argmax(logits + row, -1, token_ids.dtype)  # (B,)
        next_ids = tf.where(has_ended, tf.zeros_like(next_ids), next_ids)
        token_ids = append_ids_tf(token_ids, next_ids)
        has_ended = has_ended | (next_ids == end_id)
        if tf.reduce_all(has_ended):
            break
    return token_ids
