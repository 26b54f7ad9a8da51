"""Which token next?: its pytorch part, for what comes after it.

Built and explained in the chapter *Which token next?* of the book.
Written by `make package`: change it in the chapter.
"""

from itertools import count

import numpy as np
import torch


def keep_top_k(logits, k):
    """Return logits (..., N) with -inf at all but the k largest.

    Of equal logits, the first are kept; NaN counts as infinite.
    """
    numbers = logits.masked_fill(logits.isnan(), torch.inf)  # (..., N)
    order = numbers.argsort(dim=-1, descending=True, stable=True)
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
    wide = logits.double()  # half precision would round the limit
    shares = (wide - wide.amax(-1, keepdim=True)).exp()  # (..., N)
    return logits.masked_fill(shares < min_p, -torch.inf)


def filter_logits(logits, temperature=1.0, k=None, p=1.0, min_p=0.0):
    """Return logits (..., N) over the temperature, with -inf at the tail.

    Temperature 0 keeps only the largest. The order is that of generate in
    transformers. Half precision becomes float32.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if temperature == 0:
        return keep_top_k(logits, 1)
    logits = logits / temperature
    if k is not None:
        logits = keep_top_k(logits, k)
    if p < 1:
        logits = keep_top_p(logits, p)
    return keep_min_p(logits, min_p) if min_p > 0 else logits


def sampler(noise, **settings):
    """Return a function that draws the next ids (B,) from logits (B, N).

    noise (C, B, N), a row for each of C steps; or a seed, for any number of
    steps. settings: those of filter_logits.
    """
    rng = np.random.default_rng(noise) if np.ndim(noise) == 0 else None
    steps = count()

    def choose(logits):
        row = rng.gumbel(size=logits.shape) if rng else noise[next(steps)]
        row = torch.as_tensor(row, device=logits.device).double()  # (B, N)
        return (filter_logits(logits, **settings) + row).argmax(-1)

    return choose
