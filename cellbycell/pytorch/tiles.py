"""Attention in tiles: its pytorch part, for what comes after it.

Built and explained in the chapter *Attention in tiles* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import torch


def _zero_if_empty(total):
    """Return log-sums, with 0 where a query has no key; any shape."""
    return total.masked_fill(total == -torch.inf, 0.0)


def attend_with_sum(query, key, value, attention_mask=None):
    """Return the output of attention (..., T, V) and its log-sums (..., T).

    query (..., T, K), key (..., S, K), value (..., S, V);
    attention_mask broadcasts to (..., T, S), True = may attend. A query that
    may attend to no key gets an output of zeros, and the log-sum -inf. Both
    are float32 at least.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    query, key, value = (x.to(dtype) for x in (query, key, value))
    query = query / math.sqrt(query.shape[-1])
    scores = query @ key.mT  # (..., T, S)
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, -torch.inf)
    total = scores.logsumexp(dim=-1)  # (..., T)
    weights = torch.exp(scores - _zero_if_empty(total)[..., None])
    return weights @ value, total


def join_attention(one, two):
    """Return output and log-sum of the keys of two sets that share none.

    one, two: the output (..., T, V) and log-sum (..., T) of a set of keys.
    """
    total = torch.logaddexp(one[1], two[1])  # (..., T)
    share_one, share_two = (
        torch.exp(part - _zero_if_empty(total))[..., None]
        for part in (one[1], two[1])
    )
    return share_one * one[0] + share_two * two[0], total


def attend_in_tiles(query, key, value, attention_mask, size):
    """Return what attend_with_sum does, holding size x size weights.

    Shapes as there; attention_mask (..., T, S). size need not divide T or S.
    The output has value's type; whole numbers give float32. Automatic
    gradients would hold all weights: take gradients_in_tiles.
    """
    rows = []
    for t in range(0, query.shape[-2], size):
        kept = None
        for s in range(0, key.shape[-2], size):
            tile = attend_with_sum(
                query[..., t : t + size, :],
                key[..., s : s + size, :],
                value[..., s : s + size, :],
                attention_mask[..., t : t + size, s : s + size],
            )
            kept = join_attention(kept, tile) if s else tile
        rows.append(kept)
    outputs, totals = zip(*rows, strict=True)
    output = torch.cat(outputs, dim=-2)  # (..., T, V)
    total = torch.cat(totals, dim=-1)  # (..., T)
    return output.to(torch.result_type(value, 1.0)), total


def tile_gradients(query, key, value, attention_mask, kept, grad):
    """Return a tile's part in the gradients by query, key and value.

    Shapes as in attend_with_sum, with the keys and values of the tile; kept:
    the output and the log-sums of all keys; grad (..., T, V): the gradient
    by the output.
    """
    output, total = kept
    query, key, value, output, grad = (
        x.to(total.dtype) for x in (query, key, value, output, grad)
    )
    root = math.sqrt(query.shape[-1])
    # The weights, computed again.
    scores = query @ key.mT / root  # (..., T, S)
    weights = torch.exp(scores - _zero_if_empty(total)[..., None])
    weights = weights.masked_fill(~attention_mask, 0.0)  # (..., T, S)
    # What they get, less its weighted mean over the row.
    weight_grad = grad @ value.mT  # (..., T, S)
    mean = (grad * output).sum(dim=-1, keepdim=True)  # (..., T, 1)
    score_grad = weights * (weight_grad - mean) / root  # (..., T, S)
    key_grad = score_grad.mT @ query  # (..., S, K)
    value_grad = weights.mT @ grad  # (..., S, V)
    return score_grad @ key, key_grad, value_grad


def gradients_in_tiles(query, key, value, attention_mask, kept, grad, size):
    """Return the gradients by query, key and value, holding T x size weights.

    Arguments as in tile_gradients, with all keys; attention_mask (..., T, S).
    Each gradient has the type of its tensor.
    """
    query_grad, key_grads, value_grads = 0.0, [], []
    for s in range(0, key.shape[-2], size):
        tile = (
            key[..., s : s + size, :],
            value[..., s : s + size, :],
            attention_mask[..., s : s + size],
        )
        parts = tile_gradients(query, *tile, kept, grad)
        query_grad = query_grad + parts[0]
        key_grads.append(parts[1])
        value_grads.append(parts[2])
    key_grad = torch.cat(key_grads, -2).to(key.dtype)  # (..., S, K)
    value_grad = torch.cat(value_grads, -2).to(value.dtype)  # (..., S, V)
    return query_grad.to(query.dtype), key_grad, value_grad


def with_sink(output, total, sink):
    """Return output (..., T, V) after a sink has taken its share.

    total (..., T): the log-sums; sink: a score that broadcasts to them.
    """
    share = torch.sigmoid(total - sink)[..., None]  # (..., T, 1)
    return share.to(output.dtype) * output
