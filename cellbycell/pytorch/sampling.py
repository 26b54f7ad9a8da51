"""Which token next?: its pytorch part, for what comes after it.

Built and explained in book/sampling.ipynb.
Written by `make package`: change it in the chapter.
"""

import torch

from cellbycell.pytorch.decoder import append_ids


def keep_top_k(logits: torch.Tensor, k):
    """Return logits (..., N) with -inf at all but the k largest.

    Of equal logits, the first are kept.
    """
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ranks = order.argsort(dim=-1)  # (..., N)
    return logits.masked_fill(ranks >= k, -torch.inf)


def keep_top_p(logits: torch.Tensor, p):
    """Return logits (..., N) with -inf beyond the fewest that reach p.

    They are the largest, at least one; sums are those of float64.
    Source: Holtzman et al. 2020, section 3.1.
    """
    probs = logits.softmax(-1, dtype=torch.float64)  # (..., N)
    probs, order = probs.sort(dim=-1, descending=True, stable=True)
    before = probs.cumsum(-1) - probs  # (..., N)
    kept = (before < p) | (before == 0)
    kept = kept.gather(-1, order.argsort(-1))  # (..., N)
    return logits.masked_fill(~kept, -torch.inf)


def keep_min_p(logits: torch.Tensor, min_p):
    """Return logits (..., N) with -inf below min_p times the likeliest."""
    probs = logits.softmax(-1)  # (..., N)
    limit = min_p * probs.amax(-1, keepdim=True)  # (..., 1)
    return logits.masked_fill(probs < limit, -torch.inf)


def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    k=None,
    p: float = 1.0,
    min_p: float = 0.0,
):
    """Return logits (..., N) over the temperature, with -inf at the tail.

    Temperature 0 leaves the largest alone. The order is that of Transformers.
    """
    if temperature == 0:
        return keep_top_k(logits, 1)
    logits = logits / temperature
    if k is not None:
        logits = keep_top_k(logits, k)
    if p < 1:
        logits = keep_top_p(logits, p)
    return keep_min_p(logits, min_p) if min_p > 0 else logits


def sample_decode(
    model, token_ids: torch.Tensor, noise, end_id: int, **settings
):
    """Return token_ids (B, T) and what a model writes behind them.

    model: ids (B, T) to logits (B, T, N); noise (C, B, N): C steps at most;
    zeros after end_id. settings: those of filter_logits.
    """
    has_ended = torch.zeros(len(token_ids), dtype=torch.bool)
    for row in noise:
        logits = filter_logits(model(token_ids)[:, -1], **settings)  # (B, N)
        next_ids = (logits + row).argmax(-1)  # (B,)
        next_ids = next_ids.masked_fill(has_ended, 0)
        token_ids = append_ids(token_ids, next_ids.to(token_ids.dtype))
        has_ended = has_ended | (next_ids == end_id)
        if has_ended.all():
            break
    return token_ids
