"""Twenty models, one decoder: its tensorflow part, for what comes after it.

Built and explained in the chapter *Twenty models, one decoder* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np
import tensorflow as tf

from cellbycell.tensorflow.multi_head_attention import (
    merge_heads_tf,
    split_heads_tf,
)
from cellbycell.tensorflow.rotary import rotary_halves_tf, rotary_tf


def project_tf(x, weights, name, config):
    """Return x (..., D) times the matrix (C, D) of this name, (..., C)."""
    y = tf.matmul(x, weights[f"{name}.weight"], transpose_b=True)  # (..., C)
    has_bias = name.split(".")[-1].removesuffix("_proj") in config.biases
    return y + weights[f"{name}.bias"] if has_bias else y


def scale_rows_tf(x, weights, name, config):
    """Return RMSNorm of x (..., D), or LayerNorm without a shift."""
    if config.centred:
        x = x - tf.reduce_mean(x, -1, keepdims=True)
    square = tf.reduce_mean(x**2, -1, keepdims=True)  # (..., 1)
    x = x / tf.sqrt(square + config.epsilon)
    return x * (weights[f"{name}.weight"] + config.scale_offset)


def soft_cap_tf(x, cap):
    """Return numbers between -cap and cap, or x if cap is None."""
    return x if cap is None else cap * tf.tanh(x / cap)


def turn_heads_tf(x, number, config):
    """Return heads x (B, H, T, K) after the rotation of layer number."""
    base = config.bases[number]
    if base is None:
        return x
    turn = rotary_tf if config.pairs else rotary_halves_tf
    return turn(x, tf.range(x.shape[2]), base)


def asking_heads_tf(x, weights, number, part, config):
    """Return the queries ("q") or keys ("k") of a layer, (B, H, T, K)."""
    name = f"model.layers.{number}.self_attn.{part}"
    heads = config.num_heads if part == "q" else config.key_heads

    def norm_if(when, y):
        if config.heads_norm != when:
            return y
        return scale_rows_tf(y, weights, f"{name}_norm", config)

    y = norm_if("width", project_tf(x, weights, f"{name}_proj", config))
    y = norm_if("head", split_heads_tf(y, heads))  # (B, H, T, K)
    return norm_if("turned", turn_heads_tf(y, number, config))


def self_attention_tf(x, weights, number, config):
    """Return the attention of layer number to x (B, T, D), (B, T, D)."""
    name = f"model.layers.{number}.self_attn"
    query, key = (
        asking_heads_tf(x, weights, number, part, config) for part in "qk"
    )
    value = project_tf(x, weights, f"{name}.v_proj", config)
    value = split_heads_tf(value, config.key_heads)[:, :, None]
    shape = query.shape
    groups = (shape[0], config.key_heads, -1, *shape[2:])
    query = tf.reshape(query, groups)  # (..., T, K)
    scale = config.score_scale
    if scale is None:
        scale = config.d_head**-0.5
    scores = scale * tf.matmul(query, key[:, :, None], transpose_b=True)
    scores = soft_cap_tf(scores, config.score_cap)
    positions = tf.range(x.shape[1])  # (T,)
    back = positions[:, None] - positions  # (T, S)
    mask = (back >= 0) & (back < (config.windows[number] or len(back)))
    shares = tf.nn.softmax(tf.where(mask, scores, -np.inf), axis=-1)
    output = tf.reshape(shares @ value, shape)  # (B, H, T, K)
    output = merge_heads_tf(output)  # (B, T, D)
    return project_tf(output, weights, f"{name}.o_proj", config)


def feed_forward_tf(x, weights, name, config):
    """Return the gated network of this name of x (..., D), (..., D)."""
    gate = project_tf(x, weights, f"{name}.gate_proj", config)  # (..., F)
    if config.activation == "silu":
        gate = tf.nn.silu(gate)
    else:
        gate = tf.nn.gelu(gate, approximate=True)
    wide = gate * project_tf(x, weights, f"{name}.up_proj", config)
    return project_tf(wide, weights, f"{name}.down_proj", config)


def run_layer_tf(x, weights, number, config):
    """Return x (B, T, D) after layer number, (B, T, D)."""
    name = f"model.layers.{number}"

    def norm_at(place, y):
        if config.norms[place] is None:
            return y
        norm = f"{name}.{config.norms[place]}"
        return scale_rows_tf(y, weights, norm, config)

    sublayer = mixture_tf if config.num_experts else feed_forward_tf
    first = norm_at(0, x)
    found = norm_at(1, self_attention_tf(first, weights, number, config))
    if config.side_by_side:
        found = found + sublayer(first, weights, f"{name}.mlp", config)
        return x + config.residual_factor * found
    x = x + config.residual_factor * found
    found = sublayer(norm_at(2, x), weights, f"{name}.mlp", config)
    return x + config.residual_factor * norm_at(3, found)


def run_decoder_tf(weights, token_ids, config):
    """Return the logits (B, T, N) of token_ids (B, T)."""
    table = weights["model.embed_tokens.weight"]  # (N, D)
    x = config.embedding_factor * tf.gather(table, token_ids)  # (B, T, D)
    for number in range(len(config.bases)):
        x = run_layer_tf(x, weights, number, config)
    x = scale_rows_tf(x, weights, "model.norm", config)
    head = table if config.tied else weights["lm_head.weight"]  # (N, D)
    logits = config.logit_factor * tf.matmul(x, head, transpose_b=True)
    return soft_cap_tf(logits, config.logit_cap)


def router_shares_tf(scores, count, to_one):
    """Return the shares (..., C) of C experts from scores (..., C).

    All but the count best are zero, the first ones of equals; to_one: those
    of a token sum to one.
    """
    shares = tf.nn.softmax(scores)  # (..., C)
    best, chosen = tf.math.top_k(shares, count)
    if to_one:
        best = best / tf.reduce_sum(best, -1, keepdims=True)
    spread = tf.one_hot(chosen, scores.shape[-1])  # (..., C)
    spread = spread * best[..., None]  # (..., C)
    return tf.reduce_sum(spread, -2)  # (..., C)


def mixture_tf(x, weights, name, config):
    """Return the experts of this name of x (..., D), by shares, (..., D)."""
    scores = project_tf(x, weights, f"{name}.gate", config)  # (..., C)
    shares = router_shares_tf(scores, config.experts_asked, config.to_one)
    return sum(
        shares[..., e, None]
        * feed_forward_tf(x, weights, f"{name}.experts.{e}", config)
        for e in range(shares.shape[-1])
    )
