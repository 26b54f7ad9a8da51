"""Fewer bits: its tensorflow part, for what comes after it.

Built and explained in the chapter *Fewer bits* of the book.
Written by `make package`: change it in the chapter.
"""

import tensorflow as tf


def quantise_tf(w, bits=8, group=32):
    """Return whole numbers (..., C) in int8, and scales (..., 1).

    w (..., D), finite: D columns in groups of C; bits: 2 to 8. A group
    of zeros gets a tiny scale.
    """
    top = 2 ** (bits - 1) - 1
    shape = (*w.shape[:-1], -1, group)
    parts = tf.reshape(tf.cast(w, tf.float32), shape)  # (..., C)
    largest = tf.reduce_max(tf.abs(parts), -1, keepdims=True)  # (..., 1)
    scale = tf.maximum(largest / top, 1e-30)
    return tf.cast(tf.round(parts / scale), tf.int8), scale


def restore_tf(whole, scale):
    """Return weights (..., D) from whole numbers (..., C) and scales."""
    weights = tf.cast(whole, tf.float32) * scale
    shape = (*weights.shape[:-2], -1)
    return tf.reshape(weights, shape)  # (..., D)


def int8_product_tf(x, w):
    """Return x @ w.T from whole numbers: (B, F) for x (B, D), w (F, D).

    Each row has a scale of its own; D is at most 133,144.
    """
    x_whole, x_scale = quantise_tf(x, group=x.shape[-1])  # (B, 1, D), (..., 1)
    w_whole, w_scale = quantise_tf(w, group=w.shape[-1])  # (F, 1, D), (..., 1)
    x_whole, w_whole = x_whole[:, 0], w_whole[:, 0]  # (B, D), (F, D)
    sums = tf.matmul(x_whole, w_whole, transpose_b=True, output_type=tf.int32)
    scales = x_scale[:, 0] * tf.transpose(w_scale[:, 0])  # (B, F)
    return tf.cast(sums, tf.float32) * scales
