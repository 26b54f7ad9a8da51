"""Experts in earnest: its pytorch part, for what comes after it.

Built and explained in the chapter *Experts in earnest* of the book.
Written by `make package`: change it in the chapter.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F

from cellbycell.pytorch.families import feed_forward, project, scale_rows
from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary, rotary_halves


def choose(scores, count, to_one=True):
    """Return the experts of each token and their shares, both (..., count).

    scores (..., C): of C experts. The best come first, ties by their
    number; to_one: the shares of a token sum to one.
    """
    probs = scores.softmax(-1)  # (..., C)
    shares, chosen = probs.sort(dim=-1, descending=True, stable=True)
    shares, chosen = shares[..., :count], chosen[..., :count]
    if to_one:
        shares = shares / shares.sum(-1, keepdim=True)
    return chosen, shares


def sort_pairs(chosen, num_experts):
    """Return the pairs of chosen (T, count), by expert, and how many each has.

    Pair i is choice i % count of token i // count.
    """
    flat = chosen.flatten()  # (...,)
    counts = flat.bincount(minlength=num_experts)  # (C,)
    return flat.argsort(stable=True), counts


def by_sorting(x, chosen, shares, experts):
    """Return what by_loop returns, (T, D), with one block for each expert."""
    order, counts = sort_pairs(chosen, len(experts))
    parts = x[order // chosen.shape[1]].split(counts.tolist())
    blocks = [
        expert(part) for expert, part in zip(experts, parts, strict=True)
    ]
    back = torch.cat(blocks)[order.argsort()]  # (..., D)
    pairs = back.unflatten(0, chosen.shape)  # (..., D)
    return (pairs * shares.unsqueeze(-1)).sum(1)  # (T, D)


def balance_loss(scores, count):
    """Return C times the sum of load times mean probability: count if even.

    scores (T, C): the router's, for all tokens. Source: Switch Transformers.
    """
    probs = scores.softmax(-1)  # (T, C)
    chosen, _ = choose(scores, count)
    asked = F.one_hot(chosen, scores.shape[-1]).sum(-2)  # (T, C)
    load = asked.to(probs.dtype).mean(0)  # (C,)
    return scores.shape[-1] * (load * probs.mean(0)).sum()


def choose_with_bias(scores, bias, count, to_one=True):
    """Return what choose returns, by sigmoids, with a bias for the choice.

    scores (T, C), bias (C,) or (T, C). Source: Wang et al. 2024.
    """
    probs = scores.sigmoid()  # (T, C)
    wish = (probs + bias).sort(dim=-1, descending=True, stable=True)
    chosen = wish.indices[:, :count]
    shares = probs.gather(-1, chosen)
    if to_one:
        shares = shares / shares.sum(-1, keepdim=True)
    return chosen, shares


def update_router_bias(bias, chosen, speed):
    """Return the bias (C,) after a step: less for experts above the mean."""
    counts = chosen.flatten().bincount(minlength=len(bias))  # (C,)
    return bias + speed * (counts.to(bias.dtype).mean() - counts).sign()


def attend_latents(
    query, turned, latent, shared, up_key, up_value, absorbed, kept=None
):
    """Return causal attention to latents, (B, H, T, V).

    query (B, H, T, K) and its rotated part turned; latent (B, S, C) and the
    rotated part of the keys shared (B, S, ...); up_key (H, K, C), up_value
    (H, V, C). absorbed: make no keys or values. kept
    (B, T, S): True = may attend. Source: DeepSeek-V2, 2.1.
    """
    latent, shared = latent[:, None], shared[:, None]
    if absorbed:
        scores = (query @ up_key) @ latent.mT  # (B, H, T, S)
    else:
        scores = query @ (latent @ up_key.mT).mT  # (B, H, T, S)
    scores = scores + turned @ shared.mT  # (B, H, T, S)
    scores = scores / math.sqrt(query.shape[-1] + turned.shape[-1])
    seen, new = latent.shape[2], query.shape[2]
    mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)  # (T, S)
    mask = mask.to(scores.device)  # (T, S)
    mask = mask if kept is None else mask & kept[:, None]  # (..., T, S)
    scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)  # (B, H, T, S)
    if absorbed:
        return (weights @ latent) @ up_value.mT  # (B, H, T, V)
    return weights @ (latent @ up_value.mT)  # (B, H, T, V)


def index_scores(query, key, weight):
    """Return how much each query wants each key, (B, T, S).

    query (B, H, T, K); key (B, S, K), one for all heads; weight (B, T, H).
    Source: DeepSeek-V3.2, section 2.1.
    """
    each = (query @ key[:, None].mT).relu()  # (B, H, T, S)
    total = (weight.mT[..., None] * each).sum(1)  # (B, T, S)
    return total / math.sqrt(query.shape[1] * query.shape[3])


def keep_best(scores, count):
    """Return a mask (B, T, S): the count best keys that a query may see."""
    new, seen = scores.shape[-2:]
    mask = torch.ones_like(scores, dtype=torch.bool).tril(seen - new)
    scores = scores.masked_fill(~mask, -torch.inf)  # first, no future
    best = scores.topk(min(count, seen)).indices  # (B, T, C)
    return mask & torch.zeros_like(mask).scatter(-1, best, True)


def turn_some(x, positions, config):
    """Rotate the first columns of x (..., T, K), in halves."""
    width = config.qk_rope_head_dim
    turned = rotary_halves(x[..., :width], positions, config.base)
    return torch.cat([turned, x[..., width:]], -1)  # (..., T, K)


def index_keys(x, positions, weights, name, config):
    """Return the indexer's keys (B, T, K) of x (B, T, D)."""
    key = project(x, weights, f"{name}.wk", config)
    key = scale_rows(key, weights, f"{name}.k_norm", config.centred_norm)
    key = key + weights[f"{name}.k_norm.bias"]
    return turn_some(key, positions, config)


def chosen_keys(x, asked, key, positions, weights, name, config):
    """Return which keys (B, S, K) are chosen for x, (B, T, S) True or False.

    asked (B, T, ...): the queries' latents.
    """
    query = project(asked, weights, f"{name}.wq_b", config)
    query = split_heads(query, config.index_n_heads)  # (B, H, T, K)
    query = turn_some(query, positions, config)
    weight = project(x, weights, f"{name}.weights_proj", config)
    return keep_best(index_scores(query, key, weight), config.index_topk)


def latent_attention(x, weights, name, config, cache=None, absorbed=True):
    """Return attention (B, T, D) to x, and what all tokens leave.

    cache: what the tokens before left: latents (B, S, C), rotated keys, and
    with an indexer its keys.
    """
    heads, inner = config.num_attention_heads, config.inner
    widths = [config.qk_nope_head_dim, config.qk_rope_head_dim]
    start = 0 if cache is None else cache[0].shape[1]
    positions = torch.arange(start, start + x.shape[1], device=x.device)
    query = project(x, weights, f"{name}.q_a_proj", config)
    asked = scale_rows(query, weights, f"{name}.q_a_layernorm", inner)
    query = project(asked, weights, f"{name}.q_b_proj", config)
    query, turned = split_heads(query, heads).split(widths, -1)
    turned = rotary(turned, positions, config.base)
    latent = project(x, weights, f"{name}.kv_a_proj_with_mqa", config)
    latent, shared = latent.split([config.kv_lora_rank, widths[1]], -1)
    latent = scale_rows(latent, weights, f"{name}.kv_a_layernorm", inner)
    shared = rotary(shared, positions, config.base)
    left, kept, name_of = [latent, shared], None, f"{name}.indexer"
    if sparse := f"{name_of}.wk.weight" in weights:
        left.append(index_keys(x, positions, weights, name_of, config))
    if cache is not None:
        pairs = zip(cache, left, strict=True)
        left = [torch.cat(pair, 1) for pair in pairs]  # (...,): all so far
    if sparse:
        given = x, asked, left[2], positions, weights, name_of, config
        kept = chosen_keys(*given)  # (B, T, S)
    up = weights[f"{name}.kv_b_proj.weight"].unflatten(0, (heads, -1))
    up = up.split([widths[0], config.v_head_dim], 1)
    found = attend_latents(query, turned, *left[:2], *up, absorbed, kept)
    found = merge_heads(found)
    return project(found, weights, f"{name}.o_proj", config), tuple(left)


def bias_by_groups(scores, bias, config):
    """Return the bias of each token (T, C): -inf outside its best groups.

    scores (T, C), bias (C,). Source: DeepSeek-V3, section 2.1.2.
    """
    wish = scores.sigmoid() + bias  # (T, C)
    groups = wish.unflatten(-1, (config.n_group, -1))
    best = groups.topk(2, -1).values.sum(-1).topk(config.topk_group, -1)
    kept = F.one_hot(best.indices, config.n_group).sum(-2)  # (...,): by group
    kept = kept.repeat_interleave(groups.shape[-1], -1)  # (T, C)
    return torch.where(kept > 0, bias, -torch.inf)  # (T, C)


def routed_experts(x, weights, name, config):
    """Return the experts of this name and the shared one of x (B, T, D)."""
    rows = x.flatten(0, 1)  # (..., D)
    scores = project(rows, weights, f"{name}.gate", config)
    bias = weights[f"{name}.gate.e_score_correction_bias"]
    bias = bias_by_groups(scores, bias, config)
    chosen, shares = choose_with_bias(scores, bias, config.num_experts_per_tok)
    network = partial(feed_forward, weights=weights, config=config)
    experts = [
        partial(network, name=f"{name}.experts.{e}")
        for e in range(scores.shape[-1])
    ]
    shares = config.routed_scaling_factor * shares
    found = by_sorting(rows, chosen, shares, experts)
    found = found + network(rows, name=f"{name}.shared_experts")
    return found.unflatten(0, x.shape[:2])  # (B, T, D)


def run_deepseek(weights, token_ids, config, cache=None, absorbed=True):
    """Return the logits (B, T, N) of a DeepSeek V3 for token_ids (B, T).

    cache: [] at the start; with it, the logits of the new ids and the cache.
    """
    x = weights["model.embed_tokens.weight"][token_ids]  # (B, T, D)
    kept = []
    for i in range(config.num_hidden_layers):
        name, past = f"model.layers.{i}", cache[i] if cache else None
        y = scale_rows(x, weights, f"{name}.input_layernorm", config)
        y, past = latent_attention(
            y, weights, f"{name}.self_attn", config, past, absorbed
        )
        x, kept = x + y, [*kept, past]
        y = scale_rows(x, weights, f"{name}.post_attention_layernorm", config)
        is_dense = i < config.first_k_dense_replace
        network = feed_forward if is_dense else routed_experts
        x = x + network(y, weights, f"{name}.mlp", config)
    x = scale_rows(x, weights, "model.norm", config)
    logits = project(x, weights, "lm_head", config)  # (B, T, N)
    return logits if cache is None else (logits, kept)
