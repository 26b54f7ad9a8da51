"""Positional encoding: its tensorflow part, for what comes after it.

Built and explained in the chapter *Positional encoding* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import tensorflow as tf


def position_table_tf(seq_len, d_model, base=10000.0, dtype=tf.float32):
    """Return the sinusoidal position table, (T, D).

    Sines are in the even columns, cosines in the odd ones; an odd d_model
    ends with a sine. Computed in float64, then cast to dtype.
    Source: Vaswani et al. 2017, section 3.5.
    """
    position = tf.range(seq_len, dtype=tf.float64)[:, None]  # (T, 1)
    even = tf.range(0, d_model, 2, dtype=tf.float64)  # (C,)
    angles = position / base ** (even / d_model)  # (T, C)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)  # (T, C, 2)
    table = tf.reshape(pairs, (seq_len, -1))[:, :d_model]  # (T, D)
    return tf.cast(table, dtype)


class AddPositionsTF(keras.layers.Layer):
    """Multiply vectors by the square root of their width; add positions.

    x (B, T, D); result (B, T, D).
    """

    def call(self, x):
        seq_len, d_model = x.shape[1:]
        return x * math.sqrt(d_model) + position_table_tf(seq_len, d_model)
