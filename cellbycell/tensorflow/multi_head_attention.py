"""Multi-head attention: its tensorflow part, for what comes after it.

Built and explained in the chapter *Multi-head attention* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import numpy as np
import tensorflow as tf

from cellbycell.common.multi_head_attention import (
    head_width,
    layer_projections,
    mask_per_head,
)
from cellbycell.tensorflow.attention import attend_tf


def split_heads_tf(x, num_heads):
    """Divide the width among the heads.

    x (B, T, D); result (B, H, T, K) with K = D / H.
    Raises ValueError if H does not divide D.
    """
    batch_size, seq_len, _ = tf.unstack(tf.shape(x))
    d_head = head_width(x.shape[-1], num_heads)
    shape = (batch_size, seq_len, num_heads, d_head)
    heads = tf.reshape(x, shape)  # (B, T, H, K)
    return tf.transpose(heads, (0, 2, 1, 3))  # (B, H, T, K)


def merge_heads_tf(heads):
    """Put the heads side by side, the inverse of split_heads.

    heads (B, H, T, K); result (B, T, D) with D = H K.
    """
    _, num_heads, _, d_head = heads.shape
    heads = tf.transpose(heads, (0, 2, 1, 3))  # (B, T, H, K)
    batch_size, seq_len, _, _ = tf.unstack(tf.shape(heads))
    shape = (batch_size, seq_len, num_heads * d_head)
    return tf.reshape(heads, shape)  # (B, T, H * K)


class MultiHeadAttentionTF(keras.layers.Layer):
    """Multi-head attention: return the output, and weights on request.

    query (B, T, D), key and value (B, S, D); attention_mask (T, S),
    (B, T, S) or (B, H, T, S), True = may attend. The output is (B, T, D),
    the weights, if need_weights, are (B, H, T, S), from before the dropout.
    Raises ValueError if num_heads does not divide d_model.
    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.d_head = head_width(d_model, num_heads)
        self.query_proj = keras.layers.Dense(d_model)
        self.key_proj = keras.layers.Dense(d_model)
        self.value_proj = keras.layers.Dense(d_model)
        self.output_proj = keras.layers.Dense(d_model)
        self.dropout = keras.layers.Dropout(dropout)
        for proj in layer_projections(self):
            proj.build((None, d_model))
        self.built = True  # nothing is left for the first call

    def call(self, query, key, value, attention_mask=None, need_weights=False):
        query = split_heads_tf(self.query_proj(query), self.num_heads)
        key = split_heads_tf(self.key_proj(key), self.num_heads)
        value = split_heads_tf(self.value_proj(value), self.num_heads)
        mask = mask_per_head(attention_mask)
        output, weights = attend_tf(query, key, value, mask, self.dropout)
        output = self.output_proj(merge_heads_tf(output))  # (B, T, D)
        return (output, weights) if need_weights else output


def to_keras_layer(layer):
    """Return keras.layers.MultiHeadAttention with our layer's weights."""
    heads = (layer.num_heads, layer.d_head)
    d_model = math.prod(heads)
    theirs = keras.layers.MultiHeadAttention(*heads)
    theirs.build((None, None, d_model), (None, None, d_model))
    arrays = []
    for proj in layer_projections(layer)[:3]:
        kernel, bias = proj.get_weights()
        arrays += [kernel.reshape(d_model, *heads), bias.reshape(heads)]
    kernel, bias = layer.output_proj.get_weights()
    theirs.set_weights([*arrays, kernel.reshape(*heads, d_model), bias])
    return theirs


class SelfAttentionTF(keras.layers.Layer):
    """Add to each vector what it reads from its sequence.

    x (B, T, D); result (B, T, D). causal: a query reads the keys up to its
    own position, and no later ones.
    """

    def __init__(self, attention, causal=True):
        super().__init__()
        self.attention, self.causal = attention, causal

    def call(self, x):
        mask = np.ones((x.shape[1], x.shape[1]), dtype=bool)  # (T, T)
        mask = np.tril(mask) if self.causal else mask
        return x + self.attention(x, x, x, mask)
