"""Attention: its tensorflow part, for what comes after it.

Built and explained in the chapter *Attention* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import tensorflow as tf


def attend_tf(query, key, value, attention_mask=None, dropout=None):
    """Scaled dot-product attention: return the output and the weights.

    query (..., T, K), key (..., S, K), value (..., S, V);
    attention_mask broadcasts to (..., T, S), True = may attend.
    dropout: a function that is applied to the weights before they mix the
    values; the weights that are returned come from before it.
    Source: Vaswani et al. 2017, section 3.2.1.
    """
    scores = query @ tf.linalg.matrix_transpose(key)  # (..., T, S)
    scores = scores / math.sqrt(query.shape[-1])
    if attention_mask is not None:
        attention_mask = tf.convert_to_tensor(attention_mask)
        blocked = tf.constant(-math.inf, scores.dtype)
        scores = tf.where(attention_mask, scores, blocked)
    weights = tf.nn.softmax(scores, axis=-1)  # (..., T, S)
    dropped = weights if dropout is None else dropout(weights)  # (..., T, S)
    return dropped @ value, weights  # (..., T, V), (..., T, S)


def _output_and_gradients_tf(function, *inputs):
    """Return the output, then the gradients of the sum of its squares."""
    inputs = [tf.Variable(x) for x in inputs]
    with tf.GradientTape() as tape:
        output = function(*inputs)
        loss = tf.reduce_sum(tf.square(output))
    return [output, *tape.gradient(loss, inputs)]
