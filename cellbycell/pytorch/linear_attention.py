"""Attention without softmax: its pytorch part, for what comes after it.

Built and explained in the chapter *Attention without softmax* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import torch
import torch.nn.functional as F

from cellbycell.pytorch.cache import attend_grouped
from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary_halves


def decay_mask(decay):
    """Return what is left at t of what is written at s, (..., T, S).

    decay (..., T): finite logarithms, 0 or less. If s is after t: 0.
    """
    total = decay.cumsum(-1)  # (..., T)
    fade = total[..., :, None] - total[..., None, :]  # (..., T, S)
    future = torch.ones_like(fade, dtype=torch.bool).triu(1)
    return fade.masked_fill(future, -torch.inf).exp()


def linear_chunk(query, key, value, decay, state):
    """Return linear attention with fading, (..., T, V), and the new state.

    query and key (..., T, K), value (..., T, V), decay (..., T): logarithms;
    state (..., K, V).
    """
    total = decay.cumsum(-1)[..., None]  # (..., T, 1)
    scores = (query @ key.mT) * decay_mask(decay)  # (..., T, S)
    output = total.exp() * (query @ state) + scores @ value  # (..., T, V)
    left = (total[..., -1:, :] - total).exp()  # (..., T, 1): at the end
    new = (left * key).mT @ value  # (..., K, V)
    return output, total[..., -1:, :].exp() * state + new


def in_chunks(step, size, *inputs, state):
    """Return the outputs (B, H, T, V) of a step over chunks, and the state.

    step: takes a chunk of each input (B, H, T, ...) and a state; size: tokens.
    """
    outputs = []
    for parts in zip(*(x.split(size, dim=2) for x in inputs), strict=True):
        output, state = step(*parts, state)
        outputs.append(output)
    output = torch.cat(outputs, dim=2)  # (B, H, T, V)
    return output, state


def delta_chunk(query, key, value, decay, beta, state):
    """Return the gated delta rule, (..., T, V), and the new state.

    As linear_chunk; beta (..., T); keys of norm one; float32 or float64.
    Source: Yang et al. 2024, section 3.
    """
    total, beta = decay.cumsum(-1)[..., None], beta[..., None]  # (..., T, 1)
    overlap = beta * (key @ key.mT) * decay_mask(decay)  # (..., T, S)
    wrong = beta * (value - total.exp() * (key @ state))  # (..., T, V)
    new = torch.linalg.solve_triangular(
        overlap, wrong, upper=False, unitriangular=True
    )  # (..., T, V)
    return linear_chunk(query, key, new, decay, state)


def rms_rows(x, epsilon):
    """Return rows x (..., D) divided by their root mean square."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


def unit(x, epsilon=1e-6):
    """Return rows x (..., K) divided by their norm."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + epsilon)


def short_conv(x, kernel, past, bias=0.0):
    """Return SiLU of columns x (B, T, D) mixed over time, and the new past.

    kernel (D, C): of the last C tokens; past (B, C - 1, D); bias (D,).
    """
    rows = torch.cat([past, x], dim=1)  # (B, C - 1 + T, D)
    width, seq_len = kernel.shape[1], x.shape[1]
    mixed = sum(rows[:, i : i + seq_len] * kernel[:, i] for i in range(width))
    return F.silu(mixed + bias), rows[:, seq_len:]


def delta_net(x, weights, name, config, cache=None):
    """Return the gated delta net of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: rows of the convolution, and a state.
    """

    def times(part):
        return x @ weights[f"{name}.{part}.weight"].mT  # (B, T, C)

    heads, d_head = config.linear_num_key_heads, config.linear_key_head_dim
    groups = config.linear_num_value_heads // heads
    kernel = weights[f"{name}.conv1d.weight"][:, 0]  # (C, 4)
    wide = times("in_proj_qkv")  # (B, T, C)
    if cache is None:
        past = wide.new_zeros(len(x), kernel.shape[1] - 1, wide.shape[-1])
        state = (heads * groups, d_head, config.linear_value_head_dim)
        cache = past, wide.new_zeros(len(x), *state)
    wide, past = short_conv(wide, kernel, cache[0])
    parts = [
        heads * d_head,
        heads * d_head,
        wide.shape[-1] - 2 * heads * d_head,
    ]
    query, key, value = wide.split(parts, dim=-1)
    query, key = (
        unit(split_heads(y, heads)).repeat_interleave(groups, dim=1)
        for y in (query, key)
    )  # each (B, H, T, K)
    value = split_heads(value, heads * groups)  # (B, H, T, V)
    pace = F.softplus(times("in_proj_a") + weights[f"{name}.dt_bias"])
    decay = -(weights[f"{name}.A_log"].exp() * pace).mT  # (B, H, T)
    beta = times("in_proj_b").sigmoid().mT  # (B, H, T)
    query = query / math.sqrt(d_head)
    inputs = query, key, value, decay, beta
    output, state = in_chunks(delta_chunk, 64, *inputs, state=cache[1])
    output = rms_rows(output, config.rms_norm_eps)
    output = output * weights[f"{name}.norm.weight"]
    gate = split_heads(times("in_proj_z"), heads * groups)  # (B, H, T, V)
    output = merge_heads(output * F.silu(gate))
    output = output @ weights[f"{name}.out_proj.weight"].mT  # (B, T, D)
    return output, (past, state)


def gated_attention(x, weights, name, config, cache=None):
    """Return the gated attention of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: keys and values (B, H, S, K) of the tokens before.
    """

    def heads_of(part, count):
        y = x @ weights[f"{name}.{part}_proj.weight"].mT  # (B, T, C)
        return split_heads(y, count)

    def turned(y, part):
        scale = 1 + weights[f"{name}.{part}_norm.weight"]  # (K,)
        y = rms_rows(y, config.rms_norm_eps) * scale
        first, rest = y[..., :turns], y[..., turns:]
        first = rotary_halves(first, slots[start:], rope["rope_theta"])
        return torch.cat([first, rest], dim=-1)  # (B, H, T, K)

    rope = config.rope_parameters
    turns = int(config.head_dim * rope["partial_rotary_factor"])
    start = 0 if cache is None else cache[0].shape[2]
    slots = torch.arange(start + x.shape[1])  # (S,)
    query = heads_of("q", config.num_attention_heads)
    query, gate = query.chunk(2, dim=-1)  # each (B, H, T, K)
    key, value = (heads_of(part, config.num_key_value_heads) for part in "kv")
    query, key = turned(query, "q"), turned(key, "k")
    if cache is not None:
        key = torch.cat([cache[0], key], dim=2)  # (B, C, S, K)
        value = torch.cat([cache[1], value], dim=2)  # (B, C, S, K)
    mask = slots <= slots[start:, None]  # (T, S)
    output = attend_grouped(query, key, value, mask)
    output = merge_heads(output * gate.sigmoid())
    output = output @ weights[f"{name}.o_proj.weight"].mT  # (B, T, D)
    return output, (key, value)


def qwen35(token_ids, weights, config, cache=()):
    """Return the logits (B, T, N) of a Qwen 3.5, and its cache.

    token_ids (B, T); weights: by their names in state_dict(); config: with
    the names of config.json; cache: empty at the start, then as returned.
    """

    def norm(x, name):
        scale = 1 + weights[f"{name}.weight"]  # (D,)
        return rms_rows(x, config.rms_norm_eps) * scale

    def times(x, name):
        return x @ weights[f"{name}.weight"].mT  # (B, T, C)

    def network(x, name):
        gate = F.silu(times(x, f"{name}.gate_proj"))  # (B, T, F)
        wide = gate * times(x, f"{name}.up_proj")  # (B, T, F)
        return times(wide, f"{name}.down_proj")

    x, kept = weights["model.embed_tokens.weight"][token_ids], []
    for i, kind in enumerate(config.layer_types):
        layer, linear = f"model.layers.{i}", kind == "linear_attention"
        mix = delta_net if linear else gated_attention
        name = f"{layer}.linear_attn" if linear else f"{layer}.self_attn"
        past = cache[i] if cache else None
        y = norm(x, f"{layer}.input_layernorm")
        found, past = mix(y, weights, name, config, past)
        x, kept = x + found, [*kept, past]
        y = norm(x, f"{layer}.post_attention_layernorm")
        x = x + network(y, f"{layer}.mlp")
    return times(norm(x, "model.norm"), "lm_head"), kept
