"""Attention in tiles: its tensorflow part, for what comes after it.

Built and explained in the chapter *Attention in tiles* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import tensorflow as tf


def _zero_if_empty_tf(total):
    """Return log-sums, with 0 where a query has no key; any shape."""
    return tf.where(total == -math.inf, tf.zeros_like(total), total)


def attend_with_sum_tf(query, key, value, attention_mask=None):
    """Return the output of attention (..., T, V) and its log-sums (..., T).

    query (..., T, K), key (..., S, K), value (..., S, V);
    attention_mask broadcasts to (..., T, S), True = may attend. A query that
    may attend to no key gets an output of zeros, and the log-sum -inf. Both
    are float32 at least.
    """
    dtype = keras.backend.result_type(query.dtype, "float32")
    query, key, value = (tf.cast(x, dtype) for x in (query, key, value))
    query = query / math.sqrt(query.shape[-1])
    scores = query @ tf.linalg.matrix_transpose(key)  # (..., T, S)
    if attention_mask is not None:
        blocked = tf.constant(-math.inf, scores.dtype)
        scores = tf.where(attention_mask, scores, blocked)
    total = tf.reduce_logsumexp(scores, axis=-1)  # (..., T)
    weights = tf.exp(scores - _zero_if_empty_tf(total)[..., None])
    return weights @ value, total


def join_attention_tf(one, two):
    """Return output and log-sum of the keys of two sets that share none.

    one, two: the output (..., T, V) and log-sum (..., T) of a set of keys.
    """
    total = keras.ops.logaddexp(one[1], two[1])  # (..., T)
    share_one, share_two = (
        tf.exp(part - _zero_if_empty_tf(total))[..., None]
        for part in (one[1], two[1])
    )
    out_one, out_two = (tf.cast(part[0], total.dtype) for part in (one, two))
    return share_one * out_one + share_two * out_two, total


def attend_in_tiles_tf(query, key, value, attention_mask, size):
    """Return what attend_with_sum does, holding size x size weights.

    Shapes as there; attention_mask (..., T, S). size need not divide T or S.
    The output has value's type; whole numbers give float32. Automatic
    gradients would hold all weights: take gradients_in_tiles.
    """
    rows = []
    for t in range(0, query.shape[-2], size):
        kept = None
        for s in range(0, key.shape[-2], size):
            tile = attend_with_sum_tf(
                query[..., t : t + size, :],
                key[..., s : s + size, :],
                value[..., s : s + size, :],
                attention_mask[..., t : t + size, s : s + size],
            )
            kept = join_attention_tf(kept, tile) if s else tile
        rows.append(kept)
    outputs, totals = zip(*rows, strict=True)
    output = tf.concat(outputs, axis=-2)  # (..., T, V)
    total = tf.concat(totals, axis=-1)  # (..., T)
    dtype = keras.backend.result_type(value.dtype, float)
    return tf.cast(output, dtype), total


def tile_gradients_tf(query, key, value, attention_mask, kept, grad):
    """Return a tile's part in the gradients by query, key and value.

    Shapes as in attend_with_sum, with the keys and values of the tile; kept:
    the output and the log-sums of all keys; grad (..., T, V): the gradient
    by the output.
    """
    output, total = kept
    query, key, value, output, grad = (
        tf.cast(x, total.dtype) for x in (query, key, value, output, grad)
    )
    root = math.sqrt(query.shape[-1])
    # The weights, computed again.
    scores = tf.matmul(query, key, transpose_b=True) / root  # (..., T, S)
    weights = tf.exp(scores - _zero_if_empty_tf(total)[..., None])
    weights = tf.where(attention_mask, weights, tf.zeros_like(weights))
    # What they get, less its weighted mean over the row.
    weight_grad = tf.matmul(grad, value, transpose_b=True)  # (..., T, S)
    mean = tf.reduce_sum(grad * output, axis=-1, keepdims=True)  # (..., T, 1)
    score_grad = weights * (weight_grad - mean) / root  # (..., T, S)
    key_grad = tf.matmul(score_grad, query, transpose_a=True)  # (..., S, K)
    value_grad = tf.matmul(weights, grad, transpose_a=True)  # (..., S, V)
    return score_grad @ key, key_grad, value_grad


def gradients_in_tiles_tf(query, key, value, attention_mask, kept, grad, size):
    """Return the gradients by query, key and value, holding T x size weights.

    Arguments as in tile_gradients, with all keys; attention_mask (..., T, S).
    Each gradient has the type of its tensor.
    """
    query_grad, key_grads, value_grads = 0.0, [], []
    for s in range(0, key.shape[-2], size):
        tile = (
            key[..., s : s + size, :],
            value[..., s : s + size, :],
            attention_mask[..., s : s + size],
        )
        parts = tile_gradients_tf(query, *tile, kept, grad)
        query_grad = query_grad + parts[0]
        key_grads.append(parts[1])
        value_grads.append(parts[2])
    key_grad = tf.cast(tf.concat(key_grads, -2), key.dtype)  # (..., S, K)
    value_grad = tf.concat(value_grads, -2)  # (..., S, V)
    value_grad = tf.cast(value_grad, value.dtype)  # (..., S, V)
    return tf.cast(query_grad, query.dtype), key_grad, value_grad


def with_sink_tf(output, total, sink):
    """Return output (..., T, V) after a sink has taken its share.

    total (..., T): the log-sums; sink: a score that broadcasts to them.
    """
    share = tf.sigmoid(total - tf.cast(sink, total.dtype))  # (..., T)
    return tf.cast(share, output.dtype)[..., None] * output
