"""Experts in earnest: its tensorflow part, for what comes after it.

Built and explained in the chapter *Experts in earnest* of the book.
Written by `make package`: change it in the chapter.
"""

import math
from functools import partial

import tensorflow as tf

from cellbycell.tensorflow.families import (
    feed_forward_tf,
    project_tf,
    scale_rows_tf,
)
from cellbycell.tensorflow.multi_head_attention import (
    merge_heads_tf,
    split_heads_tf,
)
from cellbycell.tensorflow.rotary import rotary_halves_tf, rotary_tf


def choose_tf(scores, count, to_one=True):
    """Return the experts of each token and their shares, both (..., count).

    scores (..., C): of C experts. The best come first, ties by their
    number; to_one: the shares of a token sum to one.
    """
    probs = tf.nn.softmax(scores)  # (..., C)
    shares, chosen = tf.math.top_k(probs, count)
    if to_one:
        shares = shares / tf.reduce_sum(shares, -1, keepdims=True)
    return chosen, shares


def sort_pairs_tf(chosen, num_experts):
    """Return the pairs of chosen (T, count), by expert, and how many each has.

    Pair i is choice i % count of token i // count.
    """
    flat = tf.reshape(chosen, [-1])  # (...,)
    counts = tf.math.bincount(flat, minlength=num_experts)  # (C,)
    return tf.argsort(flat, stable=True), counts


def by_sorting_tf(x, chosen, shares, experts):
    """Return what by_loop returns, (T, D), with one block for each expert."""
    order, counts = sort_pairs_tf(chosen, len(experts))
    parts = tf.split(tf.gather(x, order // chosen.shape[1]), counts)
    blocks = [
        expert(part) for expert, part in zip(experts, parts, strict=True)
    ]
    back = tf.gather(tf.concat(blocks, 0), tf.argsort(order))  # (..., D)
    pairs = tf.reshape(back, (*chosen.shape, x.shape[1]))  # (..., D)
    return tf.reduce_sum(pairs * shares[..., None], 1)  # (T, D)


def balance_loss_tf(scores, count):
    """Return C times the sum of load times mean probability: count if even.

    scores (T, C): the router's, for all tokens. Source: Switch Transformers.
    """
    probs = tf.nn.softmax(scores)  # (T, C)
    chosen, _ = choose_tf(scores, count)
    asked = tf.one_hot(chosen, scores.shape[-1], dtype=probs.dtype)  # (..., C)
    asked = tf.reduce_sum(asked, -2)  # (T, C)
    load = tf.reduce_mean(asked, 0)  # (C,)
    return scores.shape[-1] * tf.reduce_sum(load * tf.reduce_mean(probs, 0))


def choose_with_bias_tf(scores, bias, count, to_one=True):
    """Return what choose returns, by sigmoids, with a bias for the choice.

    scores (T, C), bias (C,) or (T, C). Source: Wang et al. 2024.
    """
    probs = tf.sigmoid(scores)  # (T, C)
    chosen = tf.math.top_k(probs + bias, count).indices
    shares = tf.gather(probs, chosen, batch_dims=1)
    if to_one:
        shares = shares / tf.reduce_sum(shares, -1, keepdims=True)
    return chosen, shares


def update_router_bias_tf(bias, chosen, speed):
    """Return the bias (C,) after a step: less for experts above the mean."""
    flat = tf.reshape(chosen, [-1])  # (...,)
    asked = tf.one_hot(flat, bias.shape[0], dtype=bias.dtype)  # (..., C)
    counts = tf.reduce_sum(asked, 0)  # (C,)
    return bias + speed * tf.sign(tf.reduce_mean(counts) - counts)


def attend_latents_tf(
    query, turned, latent, shared, up_key, up_value, absorbed, kept=None
):
    """Return causal attention to latents, (B, H, T, V).

    query (B, H, T, K) and its rotated part turned; latent (B, S, C) and the
    rotated part of the keys shared (B, S, ...); up_key (H, K, C), up_value
    (H, V, C). absorbed: make no keys or values. kept
    (B, T, S): True = may attend. Source: DeepSeek-V2, 2.1.
    """
    times = partial(tf.matmul, transpose_b=True)
    latent, shared = latent[:, None], shared[:, None]
    if absorbed:
        scores = times(query @ up_key, latent)  # (B, H, T, S)
    else:
        scores = times(query, times(latent, up_key))  # (B, H, T, S)
    scores = scores + times(turned, shared)  # (B, H, T, S)
    scores = scores / math.sqrt(query.shape[-1] + turned.shape[-1])
    seen, new = latent.shape[2], query.shape[2]
    mask = tf.range(seen) <= tf.range(seen - new, seen)[:, None]  # (T, S)
    mask = mask if kept is None else mask & kept[:, None]  # (..., T, S)
    scores = tf.where(mask, scores, -math.inf)
    weights = tf.nn.softmax(scores)  # (B, H, T, S)
    if absorbed:
        return times(weights @ latent, up_value)  # (B, H, T, V)
    return weights @ times(latent, up_value)  # (B, H, T, V)


def index_scores_tf(query, key, weight):
    """Return how much each query wants each key, (B, T, S).

    query (B, H, T, K); key (B, S, K), one for all heads; weight (B, T, H).
    Source: DeepSeek-V3.2, section 2.1.
    """
    each = tf.matmul(query, key[:, None], transpose_b=True)  # (B, H, T, S)
    weight = tf.transpose(weight, [0, 2, 1])[..., None]  # (B, H, T, 1)
    total = tf.reduce_sum(weight * tf.nn.relu(each), 1)  # (B, T, S)
    return total / math.sqrt(query.shape[1] * query.shape[3])


def keep_best_tf(scores, count):
    """Return a mask (B, T, S): the count best keys that a query may see."""
    new, seen = scores.shape[-2:]
    mask = tf.range(seen) <= tf.range(seen - new, seen)[:, None]  # (T, S)
    scores = tf.where(mask, scores, -math.inf)  # first, no future
    best = tf.math.top_k(scores, min(count, seen)).indices  # (B, T, C)
    best = tf.one_hot(best, seen, True, False, dtype=tf.bool)  # (..., S)
    return mask & tf.reduce_any(best, -2)  # (B, T, S)


def turn_some_tf(x, positions, config):
    """Rotate the first columns of x (..., T, K), in halves."""
    width = config.qk_rope_head_dim
    turned = rotary_halves_tf(x[..., :width], positions, config.base)
    return tf.concat([turned, x[..., width:]], -1)  # (..., T, K)


def index_keys_tf(x, positions, weights, name, config):
    """Return the indexer's keys (B, T, K) of x (B, T, D)."""
    key = project_tf(x, weights, f"{name}.wk", config)
    key = scale_rows_tf(key, weights, f"{name}.k_norm", config.centred_norm)
    key = key + weights[f"{name}.k_norm.bias"]
    return turn_some_tf(key, positions, config)


def chosen_keys_tf(x, asked, key, positions, weights, name, config):
    """Return which keys (B, S, K) are chosen for x, (B, T, S) True or False.

    asked (B, T, ...): the queries' latents.
    """
    query = project_tf(asked, weights, f"{name}.wq_b", config)
    query = split_heads_tf(query, config.index_n_heads)  # (B, H, T, K)
    query = turn_some_tf(query, positions, config)
    weight = project_tf(x, weights, f"{name}.weights_proj", config)
    return keep_best_tf(index_scores_tf(query, key, weight), config.index_topk)


def latent_attention_tf(x, weights, name, config, cache=None, absorbed=True):
    """Return attention (B, T, D) to x, and what all tokens leave.

    cache: what the tokens before left: latents (B, S, C), rotated keys, and
    with an indexer its keys.
    """
    heads, inner = config.num_attention_heads, config.inner
    widths = [config.qk_nope_head_dim, config.qk_rope_head_dim]
    start = 0 if cache is None else cache[0].shape[1]
    positions = tf.range(start, start + x.shape[1])
    query = project_tf(x, weights, f"{name}.q_a_proj", config)
    asked = scale_rows_tf(query, weights, f"{name}.q_a_layernorm", inner)
    query = project_tf(asked, weights, f"{name}.q_b_proj", config)
    query, turned = tf.split(split_heads_tf(query, heads), widths, -1)
    turned = rotary_tf(turned, positions, config.base)
    latent = project_tf(x, weights, f"{name}.kv_a_proj_with_mqa", config)
    latent, shared = tf.split(latent, [config.kv_lora_rank, widths[1]], -1)
    latent = scale_rows_tf(latent, weights, f"{name}.kv_a_layernorm", inner)
    shared = rotary_tf(shared, positions, config.base)
    left, kept, name_of = [latent, shared], None, f"{name}.indexer"
    if sparse := f"{name_of}.wk.weight" in weights:
        left.append(index_keys_tf(x, positions, weights, name_of, config))
    if cache is not None:
        pairs = zip(cache, left, strict=True)
        left = [tf.concat(pair, 1) for pair in pairs]  # (...,): all so far
    if sparse:
        given = x, asked, left[2], positions, weights, name_of, config
        kept = chosen_keys_tf(*given)  # (B, T, S)
    up = weights[f"{name}.kv_b_proj.weight"]
    up = tf.reshape(up, (heads, -1, latent.shape[-1]))  # (..., C)
    up = tf.split(up, [widths[0], config.v_head_dim], 1)
    found = attend_latents_tf(query, turned, *left[:2], *up, absorbed, kept)
    found = merge_heads_tf(found)
    return project_tf(found, weights, f"{name}.o_proj", config), tuple(left)


def bias_by_groups_tf(scores, bias, config):
    """Return the bias of each token (T, C): -inf outside its best groups.

    scores (T, C), bias (C,). Source: DeepSeek-V3, section 2.1.2.
    """
    wish = tf.sigmoid(scores) + bias  # (T, C)
    shape = len(wish), config.n_group, -1
    groups = tf.reshape(wish, shape)  # (...,): token, group, expert
    best = tf.reduce_sum(tf.math.top_k(groups, 2).values, -1)
    best = tf.math.top_k(best, config.topk_group).indices
    kept = tf.one_hot(best, config.n_group)  # (...,): token, kept, group
    kept = tf.reduce_sum(kept, -2)  # (...,): by group
    kept = tf.repeat(kept, groups.shape[-1], -1)  # (T, C)
    return tf.where(kept > 0, bias, -math.inf)  # (T, C)


def routed_experts_tf(x, weights, name, config):
    """Return the experts of this name and the shared one of x (B, T, D)."""
    rows = tf.reshape(x, (-1, x.shape[-1]))  # (..., D)
    scores = project_tf(rows, weights, f"{name}.gate", config)
    bias = weights[f"{name}.gate.e_score_correction_bias"]
    bias = bias_by_groups_tf(scores, bias, config)
    count = config.num_experts_per_tok
    chosen, shares = choose_with_bias_tf(scores, bias, count)
    network = partial(feed_forward_tf, weights=weights, config=config)
    experts = [
        partial(network, name=f"{name}.experts.{e}")
        for e in range(scores.shape[-1])
    ]
    shares = config.routed_scaling_factor * shares
    found = by_sorting_tf(rows, chosen, shares, experts)
    found = found + network(rows, name=f"{name}.shared_experts")
    return tf.reshape(found, x.shape)  # (B, T, D)


def run_deepseek_tf(weights, token_ids, config, cache=None, absorbed=True):
    """Return the logits (B, T, N) of a DeepSeek V3 for token_ids (B, T).

    cache: [] at the start; with it, the logits of the new ids and the cache.
    """
    x = tf.gather(weights["model.embed_tokens.weight"], token_ids)  # (B, T, D)
    kept = []
    for i in range(config.num_hidden_layers):
        name, past = f"model.layers.{i}", cache[i] if cache else None
        y = scale_rows_tf(x, weights, f"{name}.input_layernorm", config)
        y, past = latent_attention_tf(
            y, weights, f"{name}.self_attn", config, past, absorbed
        )
        x, kept = x + y, [*kept, past]
        y = scale_rows_tf(
            x, weights, f"{name}.post_attention_layernorm", config
        )
        is_dense = i < config.first_k_dense_replace
        network = feed_forward_tf if is_dense else routed_experts_tf
        x = x + network(y, weights, f"{name}.mlp", config)
    x = scale_rows_tf(x, weights, "model.norm", config)
    logits = project_tf(x, weights, "lm_head", config)  # (B, T, N)
    return logits if cache is None else (logits, kept)
