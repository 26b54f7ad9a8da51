"""Which token next?: its pytorch part, for what comes after it.

Built and explained in the chapter *Which token next?* of the book.
Written by `make package`: change it in the chapter.
"""

import torch

from cellbycell.pytorch.decoder import append_ids


def keep_top_k(logits, k):
    """Return logits (..., N) with -inf at all but the k largest.

    Of equal logits, the first are kept.
    """
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ranks = order.argsort(dim=-1)  # (..., N)
    return logits.masked_fill(ranks >= k, -torch.inf)


def keep_top_p(logits, p):
    """Return logits (..., N) with -inf beyond the fewest that reach p.

    The largest stays. Long sums of small numbers need float64.
    Source: Holtzman et al. 2020, section 3.1.
    """
    probs = logits.softmax(-1, dtype=torch.float64)  # (..., N)
    probs, order = probs.sort(dim=-1, descending=True, stable=True)
    before = probs.cumsum(-1) - probs  # (..., N)
    kept = (before < p) | (before == 0)
    kept = kept.gather(-1, order.argsort(-1))  # (..., N): sorted back
    return logits.masked_fill(~kept, -torch.inf)


def keep_min_p(logits, min_p):
    """Return logits (..., N) with -inf below min_p times the likeliest."""
    probs = logits.softmax(-1)  # (..., N)
    limit = min_p * probs.amax(-1, keepdim=True)  # (..., 1)
    return logits.masked_fill(probs < limit, -torch.inf)


def filter_logits(logits, temperature=1.0, k=None, p=1.0, min_p=0.0):
    """Return logits (..., N) over the temperature, with -inf at the tail.

    Temperature 0 keeps only the largest. The order is Transformers'.
    """
    if temperature == 0:
        return keep_top_k(logits, 1)
    logits = logits / temperature
    if k is not None:
        logits = keep_top_k(logits, k)
    if p < 1:
        logits = keep_top_p(logits, p)
    return keep_min_p(logits, min_p) if min_p > 0 else logits


def sample_decode(model, token_ids, noise, end_id, **settings):
    """Return token_ids (B, T) and what a model writes behind them.

    After end_id a row has zeros. model: ids (B, T) to logits (B, T, N);
    noise (C, B, N): C steps at most; settings: those of filter_logits.
    """
    has_ended = torch.zeros(len(token_ids), dtype=torch.bool)
    for row in noise:
        logits = model(token_ids)[:, -1]  # (B, N)
        logits = filter_logits(logits, **settings)
        next_ids = (logits + row).argmax(-1)  # (B,)
        next_ids = next_ids.masked_fill(has_ended, 0)
        token_ids = append_ids(token_ids, next_ids.to(token_ids.dtype))
        has_ended = has_ended | (next_ids == end_id)
        if has_ended.all():
            break
    return token_ids
