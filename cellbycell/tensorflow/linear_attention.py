"""Attention without softmax: its tensorflow part, for what comes after it.

Built and explained in the chapter *Attention without softmax* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import keras
import tensorflow as tf

from cellbycell.common.linear_attention import switches
from cellbycell.tensorflow.attention import attend_tf
from cellbycell.tensorflow.cache import attend_grouped_tf
from cellbycell.tensorflow.families import (
    feed_forward_tf,
    project_tf,
    scale_rows_tf,
)
from cellbycell.tensorflow.multi_head_attention import (
    merge_heads_tf,
    split_heads_tf,
)
from cellbycell.tensorflow.rotary import rotary_halves_tf


def decay_mask_tf(decay):
    """Return what is left at t of what is written at s, (..., T, S).

    decay (..., T): finite logarithms, 0 or less. If s is after t: 0.
    """
    total = tf.cumsum(decay, axis=-1)  # (..., T)
    fade = total[..., :, None] - total[..., None, :]  # (..., T, S)
    past = tf.linalg.band_part(tf.ones_like(fade), -1, 0) > 0
    return tf.exp(tf.where(past, fade, tf.constant(-math.inf, fade.dtype)))


def linear_chunk_tf(query, key, value, decay, state):
    """Return linear attention with fading, (..., T, V), and the new state.

    query and key (..., T, K), value (..., T, V), decay (..., T): logarithms;
    state (..., K, V).
    """
    total = tf.cumsum(decay, axis=-1)[..., None]  # (..., T, 1)
    scores = tf.matmul(query, key, transpose_b=True)  # (..., T, S)
    scores = scores * decay_mask_tf(decay)
    output = tf.exp(total) * (query @ state) + scores @ value  # (..., T, V)
    left = tf.exp(total[..., -1:, :] - total)  # (..., T, 1): at the end
    new = tf.matmul(left * key, value, transpose_a=True)  # (..., K, V)
    return output, tf.exp(total[..., -1:, :]) * state + new


def in_chunks_tf(step, size, *inputs, state):
    """Return the outputs (B, H, T, V) of a step over chunks, and the state.

    step: takes a chunk of each input (B, H, T, ...) and a state; size: tokens.
    """
    outputs = []
    for start in range(0, inputs[0].shape[2], size):
        parts = (x[:, :, start : start + size] for x in inputs)
        output, state = step(*parts, state)
        outputs.append(output)
    output = tf.concat(outputs, axis=2)  # (B, H, T, V)
    return output, state


def delta_chunk_tf(query, key, value, decay, beta, state):
    """Return the gated delta rule, (..., T, V), and the new state.

    As linear_chunk; beta (..., T); keys of norm one; float32 or float64.
    Source: Yang et al. 2024, section 3.
    """
    total, beta = tf.cumsum(decay, axis=-1)[..., None], beta[..., None]
    overlap = beta * tf.matmul(key, key, transpose_b=True)  # (..., T, S)
    overlap = overlap * decay_mask_tf(decay)
    wrong = beta * (value - tf.exp(total) * (key @ state))  # (..., T, V)
    system = tf.linalg.set_diag(overlap, tf.ones_like(decay))
    new = tf.linalg.triangular_solve(system, wrong, lower=True)  # (..., T, V)
    return linear_chunk_tf(query, key, new, decay, state)


def rms_rows_tf(x, epsilon):
    """Return rows x (..., D) divided by their root mean square."""
    return x * tf.math.rsqrt(tf.reduce_mean(x**2, -1, keepdims=True) + epsilon)


def unit_tf(x, epsilon=1e-6):
    """Return rows x (..., K) divided by their norm."""
    return x * tf.math.rsqrt(tf.reduce_sum(x**2, -1, keepdims=True) + epsilon)


class StateModelTF(keras.layers.Layer):
    """One head of attention with a rule: ids (B, T) to logits (B, T, N).

    rule: "softmax" (no positions), "rotary", "sum", "fading", or "delta".
    """

    def __init__(self, vocab_size, d_model, d_head, rule):
        super().__init__()
        self.rule = rule
        self.embedding = keras.layers.Embedding(vocab_size, d_model)
        self.query_proj = keras.layers.Dense(d_head, use_bias=False)
        self.key_proj = keras.layers.Dense(d_head, use_bias=False)
        self.value_proj = keras.layers.Dense(d_model, use_bias=False)
        self.gates = keras.layers.Dense(2)
        if rule in ("softmax", "rotary"):  # which have no use for them
            self.gates.trainable = False
        self.linear = keras.layers.Dense(vocab_size)

    def call(self, token_ids):
        x, slots = self.embedding(token_ids), tf.range(token_ids.shape[1])
        query, key = self.query_proj(x), self.key_proj(x)  # each (B, T, K)
        value = self.value_proj(x)  # (B, T, D)
        pace, gate = tf.unstack(self.gates(x), axis=-1)  # each (B, T)
        if self.rule in ("softmax", "rotary"):
            if self.rule == "rotary":
                query, key = (rotary_halves_tf(y, slots) for y in (query, key))
            output, _ = attend_tf(query, key, value, slots <= slots[:, None])
            return self.linear(x + output)
        decay = -tf.nn.softplus(pace - 4) * float(self.rule != "sum")  # (B, T)
        state = tf.zeros((x.shape[0], key.shape[-1], x.shape[-1]))  # (B, K, D)
        inputs = unit_tf(query), unit_tf(key), value, decay
        if self.rule == "delta":
            output, _ = delta_chunk_tf(*inputs, tf.sigmoid(gate), state)
        else:
            output, _ = linear_chunk_tf(*inputs, state)
        return self.linear(x + output)


def recall_loss_tf(model, rows):
    """Return the mean loss of the answers, the last quarter of rows (B, C)."""
    answers = rows.shape[1] // 4
    logits = model(rows[:, :-answers])[:, -answers:]  # (B, T, N)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        rows[:, -answers:], logits
    )
    return tf.reduce_mean(losses)


def short_conv_tf(x, kernel, past=None, bias=0.0):
    """Return SiLU of columns x (B, T, D) mixed over time, and the new past.

    kernel (D, C): of the last C tokens; past (B, C - 1, D), zeros at first;
    bias (D,).
    """
    width, seq_len = kernel.shape[1], x.shape[1]
    if past is None:
        past = tf.zeros((len(x), width - 1, x.shape[-1]), x.dtype)
    rows = tf.concat([past, x], axis=1)  # (B, C - 1 + T, D)
    mixed = sum(rows[:, i : i + seq_len] * kernel[:, i] for i in range(width))
    return tf.nn.silu(mixed + bias), rows[:, seq_len:]


def state_inputs_tf(x, weights, name, config, past):
    """Return query, key and value, each (B, H, T, ...), and the new past.

    x (B, T, D); past: rows of the convolution, or None.
    """
    heads, d_head = config.linear_num_key_heads, config.linear_key_head_dim
    groups = config.linear_num_value_heads // heads
    wide = tf.matmul(
        x, weights[f"{name}.in_proj_qkv.weight"], transpose_b=True
    )
    kernel = weights[f"{name}.conv1d.weight"][:, 0]  # (C, 4)
    wide, past = short_conv_tf(wide, kernel, past)
    parts = [heads * d_head, heads * d_head, -1]
    query, key, value = tf.split(wide, parts, axis=-1)
    query, key = (
        tf.repeat(unit_tf(split_heads_tf(y, heads)), groups, axis=1)
        for y in (query, key)
    )  # each (B, H, T, K)
    value = split_heads_tf(value, heads * groups)  # (B, H, T, V)
    return query / math.sqrt(d_head), key, value, past


def decay_and_beta_tf(x, weights, name):
    """Return what each token of x (B, T, D) chooses, each (B, H, T)."""
    pace = tf.matmul(x, weights[f"{name}.in_proj_a.weight"], transpose_b=True)
    pace = tf.nn.softplus(pace + weights[f"{name}.dt_bias"])
    decay = tf.linalg.matrix_transpose(
        -tf.exp(weights[f"{name}.A_log"]) * pace
    )
    beta = tf.matmul(x, weights[f"{name}.in_proj_b.weight"], transpose_b=True)
    beta = tf.linalg.matrix_transpose(tf.sigmoid(beta))  # (B, H, T)
    return decay, beta


def gated_output_tf(output, x, weights, name, config):
    """Return the heads' output (B, H, T, V), gated by x: (B, T, D)."""
    output = rms_rows_tf(output, config.rms_norm_eps)
    output = merge_heads_tf(output * weights[f"{name}.norm.weight"])
    gate = tf.matmul(x, weights[f"{name}.in_proj_z.weight"], transpose_b=True)
    out = weights[f"{name}.out_proj.weight"]
    return tf.matmul(output * tf.nn.silu(gate), out, transpose_b=True)


def delta_net_tf(x, weights, name, config, cache=(None, None)):
    """Return the gated delta net of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: rows of the convolution, and a state.
    """
    past, state = cache
    *inputs, past = state_inputs_tf(x, weights, name, config, past)
    if state is None:
        written = tf.matmul(inputs[1], inputs[2], transpose_a=True)
        state = tf.zeros_like(written)  # (B, H, K, V)
    inputs += decay_and_beta_tf(x, weights, name)
    output, state = in_chunks_tf(delta_chunk_tf, 64, *inputs, state=state)
    return gated_output_tf(output, x, weights, name, config), (past, state)


def attended_heads_tf(x, weights, name, config, cache=None):
    """Return what heads find, their gates, (B, H, T, K), and the cache.

    x (B, T, D); cache: keys and values (B, H, S, K) of the tokens before.
    """

    def heads_of(part, count):
        weight = weights[f"{name}.{part}_proj.weight"]
        return split_heads_tf(tf.matmul(x, weight, transpose_b=True), count)

    def turned(y, part):
        scale = 1 + weights[f"{name}.{part}_norm.weight"]  # (K,)
        y = rms_rows_tf(y, config.rms_norm_eps) * scale
        first, rest = y[..., :turns], y[..., turns:]
        first = rotary_halves_tf(first, slots[start:], rope["rope_theta"])
        return tf.concat([first, rest], axis=-1)  # (B, H, T, K)

    rope = config.rope_parameters
    turns = int(config.head_dim * rope["partial_rotary_factor"])
    start = 0 if cache is None else cache[0].shape[2]
    slots = tf.range(start + x.shape[1])  # (S,)
    query = heads_of("q", config.num_attention_heads)
    query, gate = tf.split(query, 2, axis=-1)  # each (B, H, T, K)
    key, value = (heads_of(part, config.num_key_value_heads) for part in "kv")
    query, key = turned(query, "q"), turned(key, "k")
    if cache is not None:
        key = tf.concat([cache[0], key], axis=2)  # (B, C, S, K)
        value = tf.concat([cache[1], value], axis=2)  # (B, C, S, K)
    mask = slots <= slots[start:, None]  # (T, S)
    return attend_grouped_tf(query, key, value, mask), gate, (key, value)


def gated_attention_tf(x, weights, name, config, cache=None):
    """Return the gated attention of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: keys and values (B, H, S, K) of the tokens before.
    """
    output, gate, cache = attended_heads_tf(x, weights, name, config, cache)
    output = merge_heads_tf(output * tf.sigmoid(gate))  # the one new line
    out = weights[f"{name}.o_proj.weight"]
    return tf.matmul(output, out, transpose_b=True), cache


def qwen35_tf(token_ids, weights, config, cache=()):
    """Return the logits (B, T, N) of a Qwen 3.5, and its cache.

    token_ids (B, T); weights: by their names in state_dict(); config: with
    the names of config.json; cache: empty at the start, then as returned.
    """
    parts = switches(config)
    x, kept = tf.gather(weights["model.embed_tokens.weight"], token_ids), []
    for i, kind in enumerate(config.layer_types):
        layer, linear = f"model.layers.{i}", kind == "linear_attention"
        mix = delta_net_tf if linear else gated_attention_tf
        name = f"{layer}.linear_attn" if linear else f"{layer}.self_attn"
        y = scale_rows_tf(x, weights, f"{layer}.input_layernorm", parts)
        found, past = mix(y, weights, name, config, *cache[i : i + 1])
        x, kept = x + found, [*kept, past]
        norm = f"{layer}.post_attention_layernorm"
        y = scale_rows_tf(x, weights, norm, parts)
        x = x + feed_forward_tf(y, weights, f"{layer}.mlp", parts)
    x = scale_rows_tf(x, weights, "model.norm", parts)
    return project_tf(x, weights, "lm_head", parts), kept
