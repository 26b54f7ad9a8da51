"""The key-value cache: its pytorch part, for what comes after it.

Built and explained in the chapter *The key-value cache* of the book.
Written by `make package`: change it in the chapter.
"""

import inspect

import torch
from torch import nn

from cellbycell.pytorch.attention import attend
from cellbycell.pytorch.decoder import append_ids, evaluating
from cellbycell.pytorch.multi_head_attention import merge_heads, split_heads
from cellbycell.pytorch.rotary import rotary


def attend_cached(x, layer, num_heads, cache=None):
    """Causal attention of new tokens: return the output and the new cache.

    x (B, T, D): the new tokens; layer: three matrices (D, D), for queries,
    keys and values; cache: keys and values (B, H, S, K) of the tokens before.
    """
    query, key, value = (split_heads(x @ w, num_heads) for w in layer)
    start = 0 if cache is None else cache[0].shape[2]
    slots = torch.arange(start + x.shape[1], device=x.device)  # (S,)
    positions = slots[start:]  # (T,)
    query, key = rotary(query, positions), rotary(key, positions)
    if cache is not None:
        key = torch.cat([cache[0], key], dim=2)  # (B, H, S, K)
        value = torch.cat([cache[1], value], dim=2)  # (B, H, S, K)
    # Each token may attend to itself and to everything before it.
    output, _ = attend(query, key, value, slots <= positions[:, None])
    return merge_heads(output), (key, value)


def _next_logits(model, written, cache, key_mask):
    """Return the logits of the next ids, (B, N), and the cache.

    written (B, T); key_mask (B, T) or None; cache: [] at the start.
    """
    call = model.forward if isinstance(model, nn.Module) else model
    given = {} if key_mask is None else {"key_mask": key_mask}
    if "cache" not in inspect.signature(call).parameters:
        return model(written, **given)[:, -1], cache
    new_ids = written[:, -1:] if cache else written
    logits, cache = model(new_ids, cache=cache, **given)
    return logits[:, -1], cache


def greedy(logits):
    """Return the ids (B,) of the largest logits (B, N)."""
    return logits.argmax(-1)


def generate(
    model, token_ids, max_len, end_id=None, key_mask=None, choose=greedy
):
    """Return token_ids (B, T) and the ids that a model writes after them.

    max_len at most, zeros after end_id. model: ids (B, T) to logits (B, T, N);
    if its signature names a cache, it reads each id once; a wrapper that hides
    the name makes it reread all. key_mask (B, T), True = a token; pads are on
    the left. choose: logits (B, N) to ids (B,).
    """
    written, cache = token_ids.long(), []
    has_ended = torch.zeros_like(written[:, 0], dtype=torch.bool)  # (B,)
    with evaluating(model):
        for _ in range(max_len):
            logits, cache = _next_logits(model, written, cache, key_mask)
            next_ids = choose(logits).to(written)  # (B,)
            # Zeros, the padding id of this book, after an end.
            next_ids = next_ids.masked_fill(has_ended, 0)
            written = append_ids(written, next_ids)
            if key_mask is not None:
                key_mask = append_ids(key_mask, torch.ones_like(has_ended))
            has_ended = has_ended | (next_ids == end_id)  # None: never
            if has_ended.all():
                break
    return written.to(token_ids.dtype)


def attend_grouped(query, key, value, mask=None):
    """Attention whose key heads serve several heads each.

    query (B, H, T, K); key and value (B, C, S, K), H a multiple of C;
    mask (T, S), True = may attend; output (B, H, T, K).
    """
    key_heads = key.shape[1]
    groups = query.unflatten(1, (key_heads, -1))  # (B, C, H // C, T, K)
    key = key[:, :, None]  # (B, C, 1, S, K)
    value = value[:, :, None]  # (B, C, 1, S, K)
    output, _ = attend(groups, key, value, mask)
    return output.flatten(1, 2)  # (B, H, T, K)
