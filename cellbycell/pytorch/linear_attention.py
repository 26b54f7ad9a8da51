"""Attention without softmax: its pytorch part, for what comes after it.

Built and explained in the chapter *Attention without softmax* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.common.linear_attention import switches
from cellbycell.pytorch.attention import attend
from cellbycell.pytorch.cache import attend_grouped
from cellbycell.pytorch.families import feed_forward, project, scale_rows
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


class StateModel(nn.Module):
    """One head of attention with a rule: ids (B, T) to logits (B, T, N).

    rule: "softmax" (no positions), "rotary", "sum", "fading", or "delta".
    """

    def __init__(self, vocab_size, d_model, d_head, rule):
        super().__init__()
        self.rule = rule
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.query_proj = nn.Linear(d_model, d_head, bias=False)
        self.key_proj = nn.Linear(d_model, d_head, bias=False)
        self.value_proj = nn.Linear(d_model, d_model, bias=False)
        self.gates = nn.Linear(d_model, 2)
        if rule in ("softmax", "rotary"):  # which have no use for them
            self.gates.requires_grad_(False)
        self.linear = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        x, slots = self.embedding(token_ids), torch.arange(token_ids.shape[1])
        query, key = self.query_proj(x), self.key_proj(x)  # each (B, T, K)
        value = self.value_proj(x)  # (B, T, D)
        pace, gate = self.gates(x).unbind(-1)  # each (B, T)
        if self.rule in ("softmax", "rotary"):
            if self.rule == "rotary":
                query, key = (rotary_halves(y, slots) for y in (query, key))
            output, _ = attend(query, key, value, slots <= slots[:, None])
            return self.linear(x + output)
        decay = -F.softplus(pace - 4) * (self.rule != "sum")  # (B, T)
        state = x.new_zeros(len(x), key.shape[-1], x.shape[-1])
        inputs = unit(query), unit(key), value, decay
        if self.rule == "delta":
            output, _ = delta_chunk(*inputs, gate.sigmoid(), state)
        else:
            output, _ = linear_chunk(*inputs, state)
        return self.linear(x + output)


def recall_loss(model, rows):
    """Return the mean loss of the answers, the last quarter of rows (B, C)."""
    answers = rows.shape[1] // 4
    logits = model(rows[:, :-answers])[:, -answers:]  # (B, T, N)
    return F.cross_entropy(logits.mT, rows[:, -answers:])  # ()


def short_conv(x, kernel, past=None, bias=0.0):
    """Return SiLU of columns x (B, T, D) mixed over time, and the new past.

    kernel (D, C): of the last C tokens; past (B, C - 1, D), zeros at first;
    bias (D,).
    """
    width, seq_len = kernel.shape[1], x.shape[1]
    if past is None:
        past = x.new_zeros(len(x), width - 1, x.shape[-1])
    rows = torch.cat([past, x], dim=1)  # (B, C - 1 + T, D)
    mixed = sum(rows[:, i : i + seq_len] * kernel[:, i] for i in range(width))
    return F.silu(mixed + bias), rows[:, seq_len:]


def state_inputs(x, weights, name, config, past):
    """Return query, key and value, each (B, H, T, ...), and the new past.

    x (B, T, D); past: rows of the convolution, or None.
    """
    heads, d_head = config.linear_num_key_heads, config.linear_key_head_dim
    groups = config.linear_num_value_heads // heads
    wide = x @ weights[f"{name}.in_proj_qkv.weight"].mT  # (B, T, C)
    kernel = weights[f"{name}.conv1d.weight"][:, 0]  # (C, 4)
    wide, past = short_conv(wide, kernel, past)
    ends = heads * d_head, 2 * heads * d_head
    query, key, value = wide.tensor_split(ends, dim=-1)
    query, key = (
        unit(split_heads(y, heads)).repeat_interleave(groups, dim=1)
        for y in (query, key)
    )  # each (B, H, T, K)
    value = split_heads(value, heads * groups)  # (B, H, T, V)
    return query / math.sqrt(d_head), key, value, past


def decay_and_beta(x, weights, name):
    """Return what each token of x (B, T, D) chooses, each (B, H, T)."""
    pace = x @ weights[f"{name}.in_proj_a.weight"].mT  # (B, T, H)
    pace = F.softplus(pace + weights[f"{name}.dt_bias"])
    decay = (-weights[f"{name}.A_log"].exp() * pace).mT  # (B, H, T)
    beta = x @ weights[f"{name}.in_proj_b.weight"].mT  # (B, T, H)
    beta = beta.sigmoid().mT  # (B, H, T)
    return decay, beta


def gated_output(output, x, weights, name, config):
    """Return the heads' output (B, H, T, V), gated by x: (B, T, D)."""
    output = rms_rows(output, config.rms_norm_eps)
    output = merge_heads(output * weights[f"{name}.norm.weight"])
    gate = F.silu(x @ weights[f"{name}.in_proj_z.weight"].mT)  # (B, T, C)
    output = output * gate  # (B, T, C)
    return output @ weights[f"{name}.out_proj.weight"].mT  # (B, T, D)


def delta_net(x, weights, name, config, cache=(None, None)):
    """Return the gated delta net of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: rows of the convolution, and a state.
    """
    past, state = cache
    *inputs, past = state_inputs(x, weights, name, config, past)
    if state is None:
        state = torch.zeros_like(inputs[1].mT @ inputs[2])  # (B, H, K, V)
    inputs += decay_and_beta(x, weights, name)
    output, state = in_chunks(delta_chunk, 64, *inputs, state=state)
    return gated_output(output, x, weights, name, config), (past, state)


def attended_heads(x, weights, name, config, cache=None):
    """Return what heads find, their gates, (B, H, T, K), and the cache.

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
    return attend_grouped(query, key, value, mask), gate, (key, value)


def gated_attention(x, weights, name, config, cache=None):
    """Return the gated attention of Qwen 3.5, (B, T, D), and its cache.

    x (B, T, D); cache: keys and values (B, H, S, K) of the tokens before.
    """
    output, gate, cache = attended_heads(x, weights, name, config, cache)
    output = merge_heads(output * gate.sigmoid())  # the one new line
    output = output @ weights[f"{name}.o_proj.weight"].mT  # (B, T, D)
    return output, cache


def qwen35(token_ids, weights, config, cache=()):
    """Return the logits (B, T, N) of a Qwen 3.5, and its cache.

    token_ids (B, T); weights: by their names in state_dict(); config: with
    the names of config.json; cache: empty at the start, then as returned.
    """
    parts = switches(config)
    x, kept = weights["model.embed_tokens.weight"][token_ids], []
    for i, kind in enumerate(config.layer_types):
        layer, linear = f"model.layers.{i}", kind == "linear_attention"
        mix = delta_net if linear else gated_attention
        name = f"{layer}.linear_attn" if linear else f"{layer}.self_attn"
        y = scale_rows(x, weights, f"{layer}.input_layernorm", parts)
        found, past = mix(y, weights, name, config, *cache[i : i + 1])
        x, kept = x + found, [*kept, past]
        norm = f"{layer}.post_attention_layernorm"
        y = scale_rows(x, weights, norm, parts)
        x = x + feed_forward(y, weights, f"{layer}.mlp", parts)
    x = scale_rows(x, weights, "model.norm", parts)
    return project(x, weights, "lm_head", parts), kept
