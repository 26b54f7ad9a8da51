"""Twenty models, one decoder: its pytorch part, for what comes after it.

Built and explained in the chapter *Twenty models, one decoder* of the book.
Written by `make package`: change it in the chapter.
"""

import torch
import torch.nn.functional as F

from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary, rotary_halves


def project(x, weights, name, config):
    """Return x (..., D) times the matrix (C, D) of this name, (..., C)."""
    y = x @ weights[f"{name}.weight"].mT  # (..., C)
    has_bias = name.split(".")[-1].removesuffix("_proj") in config.biases
    return y + weights[f"{name}.bias"] if has_bias else y


def scale_rows(x, weights, name, config):
    """Return RMSNorm of x (..., D), or LayerNorm without a shift."""
    if config.centred:
        x = x - x.mean(dim=-1, keepdim=True)
    square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    x = x / torch.sqrt(square + config.epsilon)
    return x * (weights[f"{name}.weight"] + config.scale_offset)


def soft_cap(x, cap):
    """Return numbers between -cap and cap, or x if cap is None."""
    return x if cap is None else cap * torch.tanh(x / cap)


def turn_heads(x, number, config):
    """Return heads x (B, H, T, K) after the rotation of layer number."""
    base = config.bases[number]
    if base is None:
        return x
    positions = torch.arange(x.shape[2], device=x.device)  # (T,)
    turn = rotary if config.pairs else rotary_halves
    return turn(x, positions, base)


def asking_heads(x, weights, number, part, config):
    """Return the queries ("q") or keys ("k") of a layer, (B, H, T, K)."""
    name = f"model.layers.{number}.self_attn.{part}"
    heads = config.num_heads if part == "q" else config.key_heads

    def norm_if(when, y):
        if config.heads_norm != when:
            return y
        return scale_rows(y, weights, f"{name}_norm", config)

    y = norm_if("width", project(x, weights, f"{name}_proj", config))
    y = norm_if("head", split_heads(y, heads))  # (B, H, T, K)
    return norm_if("turned", turn_heads(y, number, config))


def self_attention(x, weights, number, config):
    """Return the attention of layer number to x (B, T, D), (B, T, D)."""
    name = f"model.layers.{number}.self_attn"
    query, key = (
        asking_heads(x, weights, number, part, config) for part in "qk"
    )
    value = project(x, weights, f"{name}.v_proj", config)
    value = split_heads(value, config.key_heads)[:, :, None]
    query = query.unflatten(1, (config.key_heads, -1))  # (..., T, K)
    scale = config.score_scale
    if scale is None:
        scale = config.d_head**-0.5
    scores = scale * query @ key[:, :, None].mT  # (..., T, S)
    scores = soft_cap(scores, config.score_cap)
    positions = torch.arange(x.shape[1], device=x.device)  # (T,)
    back = positions[:, None] - positions  # (T, S)
    mask = (back >= 0) & (back < (config.windows[number] or len(back)))
    shares = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    output = (shares @ value).flatten(1, 2)  # (B, H, T, K)
    return project(merge_heads(output), weights, f"{name}.o_proj", config)


def feed_forward(x, weights, name, config):
    """Return the gated network of this name of x (..., D), (..., D)."""
    gate = project(x, weights, f"{name}.gate_proj", config)  # (..., F)
    if config.activation == "silu":
        gate = F.silu(gate)
    else:
        gate = F.gelu(gate, approximate="tanh")
    wide = gate * project(x, weights, f"{name}.up_proj", config)
    return project(wide, weights, f"{name}.down_proj", config)


def run_layer(x, weights, number, config):
    """Return x (B, T, D) after layer number, (B, T, D)."""
    name = f"model.layers.{number}"

    def norm_at(place, y):
        if config.norms[place] is None:
            return y
        norm = f"{name}.{config.norms[place]}"
        return scale_rows(y, weights, norm, config)

    sublayer = mixture if config.num_experts else feed_forward
    first = norm_at(0, x)
    found = norm_at(1, self_attention(first, weights, number, config))
    if config.side_by_side:
        found = found + sublayer(first, weights, f"{name}.mlp", config)
        return x + config.residual_factor * found
    x = x + config.residual_factor * found
    found = sublayer(norm_at(2, x), weights, f"{name}.mlp", config)
    return x + config.residual_factor * norm_at(3, found)


def run_decoder(weights, token_ids, config):
    """Return the logits (B, T, N) of token_ids (B, T)."""
    table = weights["model.embed_tokens.weight"]  # (N, D)
    x = config.embedding_factor * table[token_ids]  # (B, T, D)
    for number in range(len(config.bases)):
        x = run_layer(x, weights, number, config)
    x = scale_rows(x, weights, "model.norm", config)
    head = table if config.tied else weights["lm_head.weight"]  # (N, D)
    logits = config.logit_factor * x @ head.mT  # (B, T, N)
    return soft_cap(logits, config.logit_cap)


def router_shares(scores, count, to_one):
    """Return the shares (..., C) of C experts from scores (..., C).

    All but the count best are zero, the first ones of equals; to_one: those
    of a token sum to one.
    """
    shares = scores.softmax(dim=-1)  # (..., C)
    best, chosen = shares.sort(dim=-1, descending=True, stable=True)
    best, chosen = best[..., :count], chosen[..., :count]
    if to_one:
        best = best / best.sum(dim=-1, keepdim=True)
    spread = F.one_hot(chosen, scores.shape[-1])  # (..., C)
    spread = spread * best[..., None]  # (..., C)
    return spread.sum(dim=-2)  # (..., C)


def mixture(x, weights, name, config):
    """Return the experts of this name of x (..., D), by shares, (..., D)."""
    scores = project(x, weights, f"{name}.gate", config)  # (..., C)
    shares = router_shares(scores, config.experts_asked, config.to_one)
    return sum(
        shares[..., e, None]
        * feed_forward(x, weights, f"{name}.experts.{e}", config)
        for e in range(shares.shape[-1])
    )
