"""The decoder: its tensorflow part, for what comes after it.

Built and explained in the chapter *The decoder* of the book.
Written by `make package`: change it in the chapter.
"""

import math
from contextlib import contextmanager

import keras
import numpy as np
import tensorflow as tf

from cellbycell.tensorflow.encoder import (
    AddAndNormTF,
    EncoderLayerTF,
    EncoderTF,
    LayerNormTF,
    draw_weights_tf,
)
from cellbycell.tensorflow.masks import make_causal_mask_tf
from cellbycell.tensorflow.multi_head_attention import MultiHeadAttentionTF
from cellbycell.tensorflow.positional_encoding import position_table_tf


class DecoderLayerTF(EncoderLayerTF):
    """Self-attention, cross-attention and feed-forward, one by one.

    x (B, T, D), memory (B, S, D), or None: without cross-attention; masks
    (T, T) of x and (B, 1, S) of memory, True = may attend; result (B, T, D).
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(
        self, d_model, num_heads, d_ff, norm_first=False, dropout=0.0
    ):
        super().__init__(d_model, num_heads, d_ff, norm_first, dropout)
        self.cross_attention = MultiHeadAttentionTF(
            d_model, num_heads, dropout
        )
        self.around_cross_attention = AddAndNormTF(
            d_model, norm_first, dropout
        )

    def call(self, x, memory=None, attention_mask=None, memory_mask=None):
        def look_back(y):
            return self.attention(y, y, y, attention_mask)

        def read_source(y):
            return self.cross_attention(y, memory, memory, memory_mask)

        x = self.around_attention(x, sublayer=look_back)
        if memory is not None:
            x = self.around_cross_attention(x, sublayer=read_source)
        return self.around_feed_forward(x, sublayer=self.feed_forward)


class DecoderTF(keras.layers.Layer):
    """A stack of decoder layers, each with its own weights, and a norm.

    The arguments are those of DecoderLayer; result (B, T, D).
    Raises ValueError if num_heads does not divide d_model.
    """

    def __init__(self, num_layers, d_model, *sizes, **options):
        super().__init__()
        self.layers = [
            DecoderLayerTF(d_model, *sizes, **options)
            for _ in range(num_layers)
        ]
        self.norm = LayerNormTF(d_model)
        self.built = True  # nothing is left for the first call

    def call(self, x, memory=None, attention_mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, attention_mask, memory_mask=memory_mask)
        return self.norm(x)


class TransformerTF(keras.layers.Layer):
    """An encoder-decoder: return the logits of each next token.

    source_ids (B, S), input_ids (B, T), zeros are pads, on the right of
    input_ids; logits (B, T, N). tied: the last layer is the table.
    Raises ValueError if num_heads does not divide d_model.
    Source: Vaswani et al. 2017, section 3.
    """

    def __init__(
        self,
        vocab_size,
        num_layers,
        d_model,
        num_heads,
        d_ff,
        norm_first=False,
        dropout=0.0,
        tied=False,
    ):
        super().__init__()
        normal = keras.initializers.RandomNormal(0.0, 1 / math.sqrt(d_model))
        self.embedding = keras.layers.Embedding(vocab_size, d_model, normal)
        self.embedding.build()
        sizes = num_layers, d_model, num_heads, d_ff, norm_first, dropout
        self.encoder = EncoderTF(*sizes)
        self.decoder = DecoderTF(*sizes)
        self.dropout = keras.layers.Dropout(dropout)
        self.tied = tied
        if not tied:
            self.linear = keras.layers.Dense(vocab_size, use_bias=False)
            self.linear.build((None, d_model))
        self.built = True  # nothing is left for the first call

    def embed(self, token_ids):
        x = self.embedding(token_ids)  # (B, T, D)
        x = x * math.sqrt(x.shape[-1])
        seq_len = tf.shape(x)[1]  # in a graph, x.shape[1] may be None
        x = x + position_table_tf(seq_len, x.shape[2], dtype=x.dtype)
        return self.dropout(x)

    def encode(self, source_ids):
        memory_mask = (source_ids != 0)[:, None]  # (B, 1, S)
        return self.encoder(self.embed(source_ids), memory_mask), memory_mask

    def decode(self, input_ids, memory, memory_mask):
        causal_mask = make_causal_mask_tf(tf.shape(input_ids)[1])  # (T, T)
        x = self.embed(input_ids)  # (B, T, D)
        x = self.decoder(x, memory, causal_mask, memory_mask=memory_mask)
        if not self.tied:
            return self.linear(x)
        return tf.matmul(x, self.embedding.embeddings, transpose_b=True)

    def call(self, source_ids, input_ids):
        memory, memory_mask = self.encode(source_ids)
        return self.decode(input_ids, memory, memory_mask)


def draw_model_tf(model, seed):
    """Initialise a Transformer: the same in both frameworks."""
    draw_weights_tf(model, seed)
    vocab_size, d_model = model.embedding.embeddings.shape
    table = np.random.default_rng(seed).normal(size=(vocab_size, d_model))
    model.embedding.set_weights([table / math.sqrt(d_model)])


def append_ids_tf(written, next_ids):
    """Return written (B, T) with next_ids (B,) appended, one longer."""
    return tf.concat([written, next_ids[:, None]], axis=1)  # (B, T + 1)


@contextmanager
def evaluating_tf(model):
    """Within `with`, a model is in evaluation mode, without gradients.

    Afterwards each part is in its own mode again, also after an error.
    """
    # Returns the mode; a mode that it is given holds for later calls, too.
    mode_of = keras.layers.Lambda(lambda x, training=None: training)
    mode = mode_of(tf.zeros(()))
    try:
        mode_of(tf.zeros(()), training=False)
        yield
    finally:
        mode_of(tf.zeros(()), training=mode)


def greedy_decode_tf(model, source_ids, start_id, end_id, max_len):
    """Return the ids that a model writes for source_ids (B, S).

    Rows begin with start_id; max_len tokens at most, zeros after end_id. The
    model is in evaluation mode while it writes.
    """
    with evaluating_tf(model):
        memory, memory_mask = model.encode(source_ids)
        written = tf.zeros_like(source_ids[:, :1]) + start_id  # (B, 1)
        for _ in range(max_len):
            has_ended = tf.reduce_any(written[:, 1:] == end_id, axis=1)  # (B,)
            if tf.reduce_all(has_ended):
                break
            logits = model.decode(written, memory, memory_mask)
            next_ids = tf.argmax(logits[:, -1], -1, written.dtype)  # (B,)
            next_ids = tf.where(has_ended, tf.zeros_like(next_ids), next_ids)
            written = append_ids_tf(written, next_ids)
    return written


def write_names_tf(model, count, max_len=20, seed=0):
    """Return the rows of ids (B, T) of names that a model writes.

    model: from ids (B, T) to logits (B, T, N). A row begins with a dot, id 0;
    each letter is drawn by its probability; zeros follow the end.
    """
    points = np.random.default_rng(seed).random((count, max_len))
    written = np.zeros((count, 1), dtype=np.int64)  # (B, 1)
    with evaluating_tf(model):
        for point in points.T:  # it falls into the slice of a letter
            logits = model(tf.constant(written))[:, -1]  # (B, N)
            shares = tf.nn.softmax(logits).numpy()  # (B, N)
            next_ids = (shares.cumsum(axis=-1) < point[:, None]).sum(axis=-1)
            next_ids = next_ids.clip(max=shares.shape[1] - 1)  # (B,)
            next_ids[(written[:, 1:] == 0).any(axis=1)] = 0  # it has ended
            written = np.append(written, next_ids[:, None], axis=1)
    return written
