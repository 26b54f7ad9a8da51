"""The key-value cache: its pytorch part, for what comes after it.

Built and explained in the chapter *The key-value cache* of the book.
Written by `make package`: change it in the chapter.
"""

import torch

from cellbycell.pytorch.attention import attend
from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary


def attend_cached(x, layer, num_heads, cache=None):
    """Causal attention of new tokens: return the output and the new cache.

    x (B, T, D): the new tokens; layer: three matrices (D, D), for queries,
    keys and values; cache: keys and values (B, H, S, K) of the tokens before.
    """
    query, key, value = (split_heads(x @ w, num_heads) for w in layer)
    start = 0 if cache is None else cache[0].shape[2]
    positions = torch.arange(start, start + x.shape[1])  # (T,)
    query, key = rotary(query, positions), rotary(key, positions)
    if cache is not None:
        key = torch.cat([cache[0], key], dim=2)  # (B, H, S, K)
        value = torch.cat([cache[1], value], dim=2)  # (B, H, S, K)
    mask = torch.arange(key.shape[2]) <= positions[:, None]  # (T, S)
    output, _ = attend(query, key, value, mask)
    return merge_heads(output), (key, value)


def attend_grouped(query, key, value, mask=None):
    """Attention whose key heads serve several heads each, without copies.

    query (B, H, T, K); key and value (B, C, S, K), H a multiple of C;
    mask (T, S), True = may attend; output (B, H, T, K).
    """
    key_heads = key.shape[1]
    groups = query.unflatten(1, (key_heads, -1))  # (B, C, H // C, T, K)
    output, _ = attend(groups, key[:, :, None], value[:, :, None], mask)
    return output.flatten(1, 2)  # (B, H, T, K)
