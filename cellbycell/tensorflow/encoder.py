"""The encoder: its tensorflow part, for what comes after it.

Built and explained in the chapter *The encoder* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import numpy as np
import tensorflow as tf

from cellbycell.tensorflow.masks import make_causal_mask_tf
from cellbycell.tensorflow.multi_head_attention import MultiHeadAttentionTF


def draw_weights_tf(layer, seed, spread=0.1):
    """Initialise a layer: the same in both frameworks.

    Matrices as in Glorot and Bengio 2010; the scales of norms near 1, the
    rest near 0. Spread 0: exactly 1, and 0.
    """
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        values = rng.standard_normal(weight.shape)
        values *= (
            math.sqrt(2 / sum(weight.shape)) if values.ndim > 1 else spread
        )
        values += weight.name in ("scale", "gamma")
        weight.assign(values)


def _widen_tf(x):
    """Return x as floating-point numbers, and the same in float32 at least."""
    if not x.dtype.is_floating:
        x = tf.cast(x, tf.float32)
    return x, tf.cast(x, tf.float64 if x.dtype == tf.float64 else tf.float32)


def normalise_tf(x, epsilon=1e-5):
    """Give each row of x (..., D) a mean of zero and a variance of one.

    The result has x's type; whole numbers become float32.
    Source: Ba et al. 2016, section 3.
    """
    x, wide = _widen_tf(x)
    wide = wide - wide[..., :1]  # so that equal numbers are zeros exactly
    centred = wide - tf.reduce_mean(wide, -1, keepdims=True)  # (..., D)
    variance = tf.reduce_mean(centred**2, -1, keepdims=True)  # (..., 1)
    return tf.cast(centred / tf.sqrt(variance + epsilon), x.dtype)  # (..., D)


class LayerNormTF(keras.layers.Layer):
    """Normalise each row of x (..., D), scale and shift each column.

    Source: Ba et al. 2016, section 3.
    """

    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.scale = self.add_weight((d_model,), "ones", name="scale")
        self.shift = self.add_weight((d_model,), "zeros", name="shift")
        self.built = True  # nothing is left for the first call

    def call(self, x):
        return normalise_tf(x, self.epsilon) * self.scale + self.shift


class RMSNormTF(keras.layers.Layer):
    """Divide each row by its root mean square, then scale each column.

    x (..., D); result (..., D), of x's type if the scale has that type;
    whole numbers become float32.
    Source: Zhang and Sennrich 2019, section 4.
    """

    def __init__(self, d_model, epsilon=1e-6):
        super().__init__()
        self.epsilon = epsilon
        self.scale = self.add_weight((d_model,), "ones", name="scale")
        self.built = True  # nothing is left for the first call

    def call(self, x):
        x, wide = _widen_tf(x)
        square = tf.reduce_mean(wide**2, -1, keepdims=True)  # (..., 1)
        fraction = wide * tf.math.rsqrt(square + self.epsilon)  # (..., D)
        return tf.cast(fraction, x.dtype) * self.scale


class FeedForwardTF(keras.layers.Layer):
    """Two linear layers with a ReLU between, for each row of x (..., D).

    Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.widen = keras.layers.Dense(d_ff)
        self.narrow = keras.layers.Dense(d_model)
        self.dropout = keras.layers.Dropout(dropout)
        self.widen.build((None, d_model))
        self.narrow.build((None, d_ff))
        self.built = True  # nothing is left for the first call

    def call(self, x, training=None):
        hidden = tf.nn.relu(self.widen(x))  # (..., F)
        return self.narrow(self.dropout(hidden, training=training))  # (..., D)


class SwiGLUTF(keras.layers.Layer):
    """A feed-forward network with a gate, at each position alone.

    x (..., D); result (..., D).
    Source: Shazeer 2020, section 2.
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = keras.layers.Dense(d_ff, use_bias=False)
        self.up = keras.layers.Dense(d_ff, use_bias=False)
        self.down = keras.layers.Dense(d_model, use_bias=False)
        self.gate.build((None, d_model))
        self.up.build((None, d_model))
        self.down.build((None, d_ff))
        self.built = True  # nothing is left for the first call

    def call(self, x):
        hidden = tf.nn.silu(self.gate(x)) * self.up(x)  # (..., F)
        return self.down(hidden)  # (..., D)


class AddAndNormTF(keras.layers.Layer):
    """A residual connection around a sub-layer, with norm and dropout.

    x (B, T, D); result (B, T, D); sublayer keeps this shape. norm_first:
    normalise what the sub-layer reads (pre-norm), not the sum (post-norm).
    Sources: Vaswani et al. 2017, section 3.1; Xiong et al. 2020, section 3.
    """

    def __init__(self, d_model, norm_first=False, dropout=0.0):
        super().__init__()
        self.norm_first = norm_first
        self.norm = LayerNormTF(d_model)
        self.dropout = keras.layers.Dropout(dropout)
        self.built = True  # nothing is left for the first call

    def call(self, x, sublayer):
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayerTF(keras.layers.Layer):
    """Self-attention, then feed-forward, each with residual and norm.

    x (B, T, D); result (B, T, D); attention_mask (T, S), (B, T, S) or
    (B, H, T, S), True = may attend. norm_first: pre-norm, not post-norm.
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, dropout=0):
        super().__init__()
        self.attention = MultiHeadAttentionTF(d_model, num_heads, dropout)
        self.feed_forward = FeedForwardTF(d_model, d_ff, dropout)
        self.around_attention = AddAndNormTF(d_model, norm_first, dropout)
        self.around_feed_forward = AddAndNormTF(d_model, norm_first, dropout)
        self.built = True  # nothing is left for the first call

    def call(self, x, attention_mask=None):
        x = self.around_attention(
            x, sublayer=lambda y: self.attention(y, y, y, attention_mask)
        )
        return self.around_feed_forward(x, sublayer=self.feed_forward)


class EncoderTF(keras.layers.Layer):
    """A stack of encoder layers, each with its own weights, and a norm.

    x (B, T, D); result (B, T, D); attention_mask as in EncoderLayer.
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(
        self, num_layers, d_model, num_heads, d_ff, norm_first=False, dropout=0
    ):
        super().__init__()
        self.layers = [
            EncoderLayerTF(d_model, num_heads, d_ff, norm_first, dropout)
            for _ in range(num_layers)
        ]
        self.norm = LayerNormTF(d_model)
        self.built = True  # nothing is left for the first call

    def call(self, x, attention_mask=None):
        for layer in self.layers:
            x = layer(x, attention_mask)
        return self.norm(x)


class CausalTF(keras.layers.Layer):
    """A layer or a stack whose queries read no later position.

    x (B, T, D); result (B, T, D). encoder: takes x and an attention_mask.
    """

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def call(self, x):
        return self.encoder(x, make_causal_mask_tf(x.shape[1]))
