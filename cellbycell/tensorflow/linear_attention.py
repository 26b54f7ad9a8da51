"""Attention without softmax: its tensorflow part, for what comes after it.

Built and explained in the chapter *Attention without softmax* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import tensorflow as tf

from cellbycell.tensorflow.cache import attend_grouped_tf
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


def short_conv_tf(x, kernel, past, bias=0.0):
    """Return SiLU of columns x (B, T, D) mixed over time, and the new past.

    kernel (D, C): of the last C tokens; past (B, C - 1, D); bias (D,).
    """
    rows = tf.concat([past, x], axis=1)  # (B, C - 1 + T, D)
    width, seq_len = kernel.shape[1], x.shape[1]
    mixed = sum(rows[:, i : i + seq_len] * kernel[:, i] for i in range(width))
    return tf.nn.silu(mixed + bias), rows[:, seq_len:]


def delta_net_tf(x, weights, name, config, cache=None):
    """Return the gated delta net of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: rows of the convolution, and a state.
    """

    def times(part):
        return tf.matmul(x, weights[f"{name}.{part}.weight"], transpose_b=True)

    heads, d_head = config.linear_num_key_heads, config.linear_key_head_dim
    groups = config.linear_num_value_heads // heads
    kernel = weights[f"{name}.conv1d.weight"][:, 0]  # (C, 4)
    wide = times("in_proj_qkv")  # (B, T, C)
    if cache is None:
        past = tf.zeros((x.shape[0], kernel.shape[1] - 1, wide.shape[-1]))
        state = (heads * groups, d_head, config.linear_value_head_dim)
        cache = past, tf.zeros((x.shape[0], *state))
    wide, past = short_conv_tf(wide, kernel, cache[0])
    parts = [
        heads * d_head,
        heads * d_head,
        wide.shape[-1] - 2 * heads * d_head,
    ]
    query, key, value = tf.split(wide, parts, axis=-1)
    query, key = (
        tf.repeat(unit_tf(split_heads_tf(y, heads)), groups, axis=1)
        for y in (query, key)
    )  # each (B, H, T, K)
    value = split_heads_tf(value, heads * groups)  # (B, H, T, V)
    pace = tf.nn.softplus(times("in_proj_a") + weights[f"{name}.dt_bias"])
    decay = -tf.exp(weights[f"{name}.A_log"]) * pace  # (B, T, H)
    decay = tf.linalg.matrix_transpose(decay)  # (B, H, T)
    beta = tf.sigmoid(times("in_proj_b"))  # (B, T, H)
    beta = tf.linalg.matrix_transpose(beta)  # (B, H, T)
    query = query / math.sqrt(d_head)
    inputs = query, key, value, decay, beta
    output, state = in_chunks_tf(delta_chunk_tf, 64, *inputs, state=cache[1])
    output = rms_rows_tf(output, config.rms_norm_eps)
    output = output * weights[f"{name}.norm.weight"]
    gate = split_heads_tf(times("in_proj_z"), heads * groups)  # (B, H, T, V)
    output = merge_heads_tf(output * tf.nn.silu(gate))
    out = weights[f"{name}.out_proj.weight"]
    return tf.matmul(output, out, transpose_b=True), (past, state)


def gated_attention_tf(x, weights, name, config, cache=None):
    """Return the gated attention of Qwen 3.5, (B, T, D), and its cache.

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
    output = attend_grouped_tf(query, key, value, mask)
    output = merge_heads_tf(output * tf.sigmoid(gate))
    out = weights[f"{name}.o_proj.weight"]
    return tf.matmul(output, out, transpose_b=True), (key, value)


def qwen35_tf(token_ids, weights, config, cache=()):
    """Return the logits (B, T, N) of a Qwen 3.5, and its cache.

    token_ids (B, T); weights: by their names in state_dict(); config: with
    the names of config.json; cache: empty at the start, then as returned.
    """

    def norm(x, name):
        scale = 1 + weights[f"{name}.weight"]  # (D,)
        return rms_rows_tf(x, config.rms_norm_eps) * scale

    def times(x, name):
        return tf.matmul(x, weights[f"{name}.weight"], transpose_b=True)

    def network(x, name):
        gate = tf.nn.silu(times(x, f"{name}.gate_proj"))  # (B, T, F)
        wide = gate * times(x, f"{name}.up_proj")  # (B, T, F)
        return times(wide, f"{name}.down_proj")

    x, kept = tf.gather(weights["model.embed_tokens.weight"], token_ids), []
    for i, kind in enumerate(config.layer_types):
        layer, linear = f"model.layers.{i}", kind == "linear_attention"
        mix = delta_net_tf if linear else gated_attention_tf
        name = f"{layer}.linear_attn" if linear else f"{layer}.self_attn"
        past = cache[i] if cache else None
        y = norm(x, f"{layer}.input_layernorm")
        found, past = mix(y, weights, name, config, past)
        x, kept = x + found, [*kept, past]
        y = norm(x, f"{layer}.post_attention_layernorm")
        x = x + network(y, f"{layer}.mlp")
    return times(norm(x, "model.norm"), "lm_head"), kept
