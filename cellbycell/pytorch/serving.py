"""A thousand requests: its pytorch part, for what comes after it.

Built and explained in the chapter *A thousand requests* of the book.
Written by `make package`: change it in the chapter.
"""

import torch

from cellbycell.pytorch.cache import attend_grouped
from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary_halves


def make_memory(config, slots):
    """Return room for keys and values of tokens, (P, C, K) for each layer."""
    shape = config.num_layers, slots, config.key_heads, config.d_head
    return torch.zeros(shape), torch.zeros(shape)


def rotated(part, x, positions):
    """Return query, key and value of tokens (B, T, D), (B, H, T, K) each."""
    query = split_heads(part.query_proj(x), part.num_heads)
    key = split_heads(part.key_proj(x), part.key_heads)
    value = split_heads(part.value_proj(x), part.key_heads)
    query = rotary_halves(query, positions, part.base)
    return query, rotary_halves(key, positions, part.base), value


@torch.no_grad()
def read_together(model, memory, spans):
    """Read new tokens of several texts; return their next logits, (B, N).

    spans: for each text its new ids, the position of the first, and its slots,
    those of the new ids included; what lies beyond is masked. memory: keys
    and values, (P, C, K) for each layer, into which the new ones are written.
    """
    counts = [len(ids) for ids, _, _ in spans]
    token_ids = torch.tensor([i for ids, _, _ in spans for i in ids])  # (T,)
    at = [torch.arange(start, start + len(ids)) for ids, start, _ in spans]
    seen = [torch.tensor(slots) for _, _, slots in spans]
    new = torch.cat([own[p] for own, p in zip(seen, at, strict=True)])  # (T,)
    positions = torch.cat(at)  # (T,)
    x = model.embedding(token_ids)[None]  # (1, T, D)
    for layer, keys, values in zip(model.layers, *memory, strict=True):
        part, y = layer.attention, layer.attention_norm(x)
        query, key, value = rotated(part, y, positions)
        keys[new] = key[0].swapaxes(0, 1)  # (T, C, K)
        values[new] = value[0].swapaxes(0, 1)  # (T, C, K)
        found = []
        for q, p, own in zip(query.split(counts, 2), at, seen, strict=True):
            k = keys[own].swapaxes(0, 1)[None]  # (..., K)
            v = values[own].swapaxes(0, 1)[None]  # (..., K)
            mask = torch.arange(len(own)) <= p[:, None]  # its own past
            found.append(attend_grouped(q, k, v, mask))
        x = x + part.output_proj(merge_heads(torch.cat(found, 2)))  # (1, T, D)
        x = x + layer.feed_forward(layer.feed_forward_norm(x))
    last = torch.tensor(counts).cumsum(0) - 1  # (B,)
    table = model.embedding.weight if model.tied else model.linear.weight
    return model.norm(x[0, last]) @ table.T  # (B, N)
