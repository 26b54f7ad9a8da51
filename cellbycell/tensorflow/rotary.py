"""Rotary positions: its tensorflow part, for what comes after it.

Built and explained in the chapter *Rotary positions* of the book.
Written by `make package`: change it in the chapter.
"""

import keras
import numpy as np
import tensorflow as tf

from cellbycell.common.position_similarity import frequencies


def cosines_and_sines_tf(x, positions, base=10000.0):
    """Return the cosines and sines of the angles for x, each (..., T, C).

    x (..., T, K) says the width K = 2 C and the dtype, which is float32 at
    least; positions (..., T); base: a number, or the C frequencies
    themselves. Raises ValueError if K is not 2 C.
    """
    dtype = keras.backend.result_type(x.dtype, "float32")
    turns = frequencies(x.shape[-1], base) if np.ndim(base) == 0 else base
    if x.shape[-1] != 2 * len(turns):
        raise ValueError(f"x has {x.shape[-1]} columns, not {2 * len(turns)}")
    turns = tf.constant(turns, dtype)  # (C,)
    angles = tf.cast(positions, dtype)[..., None] * turns  # (..., T, C)
    return tf.cos(angles), tf.sin(angles)


def rotary_tf(x, positions, base=10000.0):
    """Rotate each pair of neighbouring columns by its position.

    x (..., T, K) with an even K; positions (..., T); base: a number, or the
    K / 2 frequencies. The result has the shape and the dtype of x; whole
    numbers give float32. Raises ValueError if K does not fit.
    Source: Su et al. 2021, section 3.4.
    """
    cos, sin = cosines_and_sines_tf(x, positions, base)  # (..., T, C)
    wide = tf.cast(x, cos.dtype)  # (..., T, K)
    first, second = wide[..., 0::2], wide[..., 1::2]  # (..., T, C)
    pairs = [first * cos - second * sin, first * sin + second * cos]
    pairs = tf.reshape(tf.stack(pairs, axis=-1), tf.shape(x))  # (..., T, K)
    return tf.cast(pairs, keras.backend.result_type(x.dtype, float))


def rotary_halves_tf(x, positions, base=10000.0):
    """Rotate the pairs of a column of the first half and one of the second.

    x (..., T, K) with an even K; positions (..., T); base: a number, or the
    K / 2 frequencies. The result has the shape and the dtype of x; whole
    numbers give float32. Raises ValueError if K does not fit.
    """
    cos, sin = cosines_and_sines_tf(x, positions, base)  # (..., T, C)
    wide = tf.cast(x, cos.dtype)  # (..., T, K)
    first, second = tf.split(wide, 2, axis=-1)  # (..., T, C)
    halves = [first * cos - second * sin, first * sin + second * cos]
    halves = tf.concat(halves, axis=-1)  # (..., T, K)
    return tf.cast(halves, keras.backend.result_type(x.dtype, float))


def pairs_to_halves_tf(weight, num_heads):
    """Sort the outputs of a projection, per head: even ones, then odd ones.

    weight (D, D) of query_proj or key_proj, laid out as the framework has it.
    """
    columns = tf.reshape(weight, (weight.shape[0], num_heads, -1))  # (D, H, K)
    parts = [columns[..., 0::2], columns[..., 1::2]]
    return tf.reshape(tf.concat(parts, axis=-1), weight.shape)  # (D, D)
