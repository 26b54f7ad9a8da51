"""A Llama, cell by cell: its pytorch part, for what comes after it.

Built and explained in the chapter *A Llama, cell by cell* of the book.
Written by `make package`: change it in the chapter.
"""

import torch
from torch import nn

from cellbycell.checkpoint import (
    checked_weights,
    llama_config,
    llama_shapes,
    read_checkpoint,
)
from cellbycell.common.llama import llama_parts
from cellbycell.pytorch.cache import attend_grouped
from cellbycell.pytorch.encoder import RMSNorm, SwiGLU
from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary_halves


class LlamaAttention(nn.Module):
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
        self.query_proj = nn.Linear(d_model, wide, bias=False)
        self.key_proj = nn.Linear(d_model, narrow, bias=False)
        self.value_proj = nn.Linear(d_model, narrow, bias=False)
        self.output_proj = nn.Linear(wide, d_model, bias=False)

    def forward(self, x, positions, attention_mask, cache=None):
        query = split_heads(self.query_proj(x), self.num_heads)
        key = split_heads(self.key_proj(x), self.key_heads)
        value = split_heads(self.value_proj(x), self.key_heads)
        query = rotary_halves(query, positions, self.base)
        key = rotary_halves(key, positions, self.base)
        if cache is not None:
            key = torch.cat([cache[0], key], dim=2)  # (B, C, S, K)
            value = torch.cat([cache[1], value], dim=2)  # (B, C, S, K)
        # Four heads with two key heads read the keys [K1, K1, K2, K2].
        output = attend_grouped(query, key, value, attention_mask)
        return self.output_proj(merge_heads(output)), (key, value)


class LlamaLayer(nn.Module):
    """Attention and SwiGLU, each after a norm, with residual connections.

    Takes and returns what LlamaAttention does.
    """

    def __init__(self, config):
        super().__init__()
        self.attention_norm = RMSNorm(config.d_model, config.epsilon)
        self.attention = LlamaAttention(config)
        self.feed_forward_norm = RMSNorm(config.d_model, config.epsilon)
        self.feed_forward = SwiGLU(config.d_model, config.d_ff)

    def forward(self, x, positions, attention_mask, cache=None):
        found, cache = self.attention(
            self.attention_norm(x), positions, attention_mask, cache
        )
        x = x + found
        return x + self.feed_forward(self.feed_forward_norm(x)), cache


class Llama(nn.Module):
    """A Llama: return the logits of each next token, (B, T, N).

    token_ids (B, T); key_mask (B, S): True = a token so far, not a pad.
    cache: [] at the start, then what was returned beside the new logits.
    """

    def __init__(self, config):
        super().__init__()
        vocab_size, d_model = config.vocab_size, config.d_model
        self.tied = config.tied
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            LlamaLayer(config) for _ in range(config.num_layers)
        )
        self.norm = RMSNorm(d_model, config.epsilon)
        if not config.tied:
            self.linear = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, token_ids, cache=None, key_mask=None):
        start = cache[0][0].shape[2] if cache else 0
        slots = torch.arange(start + token_ids.shape[1])  # (S,)
        slots = slots.to(token_ids.device)  # (S,)
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
        table = self.embedding.weight if self.tied else self.linear.weight
        logits = self.norm(x) @ table.T  # (B, T, N)
        return logits if cache is None else (logits, kept)


def llama_weights(model):
    """Return the weights of a Llama by their names in a checkpoint."""
    parts = llama_parts(model).items()
    return {name: next(part.parameters()) for name, part in parts}


def filled_llama(model, weights):
    """Return a Llama whose parameters are these weights, by their names."""
    for name, part in llama_parts(model).items():
        own_name, _ = next(part.named_parameters())
        values = torch.as_tensor(weights[name])
        setattr(part, own_name, nn.Parameter(values))
    return model


def load_llama(folder, dtype=torch.float32):
    """Return the Llama of a checkpoint folder, in a floating-point type.

    Raises FileNotFoundError or ValueError, which say what to do.
    """
    config, weights = read_checkpoint(
        folder, lambda values: torch.from_numpy(values).to(dtype)
    )
    config = llama_config(config)
    weights = checked_weights(weights, llama_shapes(config))
    with torch.device("meta"):  # shapes alone, no numbers yet
        model = Llama(config)
    return filled_llama(model, weights)
