"""A Llama, cell by cell: its tensorflow part, for what comes after it.

Built and explained in the chapter *A Llama, cell by cell* of the book.
Written by `make package`: change it in the chapter.
"""

import keras
import tensorflow as tf

from cellbycell.checkpoint import (
    checked_weights,
    llama_config,
    llama_shapes,
    read_checkpoint,
)
from cellbycell.common.llama import llama_parts
from cellbycell.tensorflow.cache import attend_grouped_tf
from cellbycell.tensorflow.encoder import RMSNormTF, SwiGLUTF
from cellbycell.tensorflow.multi_head_attention import (
    merge_heads_tf,
    split_heads_tf,
)
from cellbycell.tensorflow.rotary import rotary_halves_tf


class LlamaAttentionTF(keras.layers.Layer):
    """Causal attention: rotary positions, and key heads that are shared.

    x (B, T, D) at positions (T,); attention_mask broadcasts to (B, C, H // C,
    T, S); cache: keys and values (B, C, S, K) of the tokens before. Returns
    the output (B, T, D), and the keys and values so far.
    """

    def __init__(self, config):
        super().__init__()
        self.num_heads, self.key_heads = config.num_heads, config.key_heads
        self.base, d_model = config.base, config.d_model
        wide = config.num_heads * config.d_head
        narrow = config.key_heads * config.d_head
        self.query_proj = keras.layers.Dense(wide, use_bias=False)
        self.key_proj = keras.layers.Dense(narrow, use_bias=False)
        self.value_proj = keras.layers.Dense(narrow, use_bias=False)
        self.output_proj = keras.layers.Dense(d_model, use_bias=False)
        for proj in (self.query_proj, self.key_proj, self.value_proj):
            proj.build((None, d_model))
        self.output_proj.build((None, wide))
        self.built = True  # nothing is left for the first call

    def call(self, x, positions, attention_mask, cache=None):
        query = split_heads_tf(self.query_proj(x), self.num_heads)
        key = split_heads_tf(self.key_proj(x), self.key_heads)
        value = split_heads_tf(self.value_proj(x), self.key_heads)
        query = rotary_halves_tf(query, positions, self.base)
        key = rotary_halves_tf(key, positions, self.base)
        if cache is not None:
            key = tf.concat([cache[0], key], axis=2)  # (B, C, S, K)
            value = tf.concat([cache[1], value], axis=2)  # (B, C, S, K)
        # Four heads with two key heads read the keys [K1, K1, K2, K2].
        output = attend_grouped_tf(query, key, value, attention_mask)
        return self.output_proj(merge_heads_tf(output)), (key, value)


class LlamaLayerTF(keras.layers.Layer):
    """Attention and SwiGLU, each after a norm, with residual connections.

    Takes and returns what LlamaAttention does.
    """

    def __init__(self, config):
        super().__init__()
        self.attention_norm = RMSNormTF(config.d_model, config.epsilon)
        self.attention = LlamaAttentionTF(config)
        self.feed_forward_norm = RMSNormTF(config.d_model, config.epsilon)
        self.feed_forward = SwiGLUTF(config.d_model, config.d_ff)
        self.built = True  # nothing is left for the first call

    def call(self, x, positions, attention_mask, cache=None):
        found, cache = self.attention(
            self.attention_norm(x), positions, attention_mask, cache
        )
        x = x + found
        return x + self.feed_forward(self.feed_forward_norm(x)), cache


class LlamaTF(keras.layers.Layer):
    """A Llama: return the logits of each next token, (B, T, N).

    token_ids (B, T); key_mask (B, S): True = a token so far, not a pad.
    cache: [] at the start, then what was returned beside the new logits.
    """

    def __init__(self, config):
        super().__init__()
        vocab_size, d_model = config.vocab_size, config.d_model
        self.tied = config.tied
        self.embedding = keras.layers.Embedding(vocab_size, d_model)
        self.embedding.build()
        self.layers = [LlamaLayerTF(config) for _ in range(config.num_layers)]
        self.norm = RMSNormTF(d_model, config.epsilon)
        if not config.tied:
            self.linear = keras.layers.Dense(vocab_size, use_bias=False)
            self.linear.build((None, d_model))
        self.built = True  # nothing is left for the first call

    def call(self, token_ids, cache=None, key_mask=None):
        start = cache[0][0].shape[2] if cache else 0
        slots = tf.range(start + token_ids.shape[1])  # (S,)
        positions = slots[start:]  # (T,)
        mask = slots <= positions[:, None]  # (T, S)
        if key_mask is not None:  # a pad sees itself: no row is empty
            itself = slots == positions[:, None]  # (T, S)
            keys = key_mask[:, None, None, None]  # (B, 1, 1, 1, S)
            mask = itself | (mask & keys)  # (B, 1, 1, T, S)
        x = self.embedding(token_ids)  # (B, T, D)
        kept = []
        for i, layer in enumerate(self.layers):
            x, past = layer(x, positions, mask, cache[i] if cache else None)
            kept.append(past)
        x = self.norm(x)  # (B, T, D)
        if self.tied:
            logits = tf.matmul(x, self.embedding.embeddings, transpose_b=True)
        else:
            logits = self.linear(x)  # (B, T, N)
        return logits if cache is None else (logits, kept)


def llama_weights_tf(model):
    """Return the weights of a Llama by their names in a checkpoint."""
    parts = llama_parts(model).items()
    return {name: part.trainable_variables[0] for name, part in parts}


def filled_llama_tf(model, weights):
    """Return a Llama whose parameters are these weights, by their names."""
    for name, part in llama_parts(model).items():
        is_table = part is model.embedding
        values = weights[name] if is_table else weights[name].T
        part.trainable_variables[0].assign(values)
    return model


def load_llama_tf(folder, dtype="float32"):
    """Return the Llama of a checkpoint folder, in a floating-point type.

    Raises FileNotFoundError or ValueError, which say what to do.
    """
    number = tf.as_dtype(dtype).as_numpy_dtype
    config, weights = read_checkpoint(
        folder, lambda values: values.astype(number)
    )
    config = llama_config(config)
    weights = checked_weights(weights, llama_shapes(config))
    usual = keras.config.dtype_policy()
    keras.config.set_dtype_policy(tf.as_dtype(dtype).name)
    try:
        model = LlamaTF(config)
    finally:
        keras.config.set_dtype_policy(usual)
    return filled_llama_tf(model, weights)
