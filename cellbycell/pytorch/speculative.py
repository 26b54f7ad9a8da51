"""A draft and a judge: its pytorch part, for what comes after it.

Built and explained in the chapter *A draft and a judge* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np
import torch
import torch.nn.functional as F

from cellbycell.common.speculative import (
    cut_cache,
    draw,
    judge,
    read_on,
    what_followed,
)
from cellbycell.pytorch.decoder import append_ids, evaluating
from cellbycell.pytorch.sampling import filter_logits


def probabilities(logits, settings):
    """Return what tokens are drawn with, as NumPy's, of logits (..., N)."""
    kept = filter_logits(logits.cpu().double(), **settings)  # (..., N)
    return kept.softmax(-1).numpy()


def propose(draft, ids, cache, count, end_id, rng, settings):
    """Return ids (1, T) with what draft draws, its rows (C, N), its cache."""
    rows = []
    while len(rows) < count and not (rows and ids[0, -1] == end_id):
        logits, cache = read_on(draft, ids, cache)
        if logits is None:  # no guess
            break
        rows.append(probabilities(logits[0, -1], settings))
        ids = append_ids(ids, ids.new_tensor([draw(rows[-1], rng)]))
    return ids, rows, cache


def speculate(
    target, draft, token_ids, max_len, count=4, end_id=None, rng=0, **settings
):
    """Return token_ids (1, T) and what target writes after them, and rounds.

    target, draft: models with a cache; count: tokens to draft in a round;
    rng: a seed, or what draws; settings: those of filter_logits, for both;
    rounds: pairs (drafted, accepted), one for each call of target.
    """
    if len(token_ids) != 1:
        raise ValueError(f"{len(token_ids)} texts: speculate writes one.")
    rng = np.random.default_rng(rng) if isinstance(rng, int) else rng
    ids, stop, rounds = token_ids, token_ids.shape[1] + max_len, []
    read, drafted_from, new = [], [], []  # two caches, and the last round
    with evaluating(target), evaluating(draft):
        while ids.shape[1] < stop and end_id not in new:
            start = ids.shape[1]
            few = min(count, stop - start - 1)
            ids, q, drafted_from = propose(
                draft, ids, drafted_from, few, end_id, rng, settings
            )
            logits, read = read_on(target, ids, read)
            p = probabilities(logits[0, -len(q) - 1 :], settings)
            new = judge(ids[0, start:].tolist(), p, q, rng)
            rounds.append((len(q), len(new) - 1))
            if end_id in new:
                new = new[: new.index(end_id) + 1]
            last = ids.new_tensor(new[-1:])  # (B,)
            ids = append_ids(ids[:, : start + len(new) - 1], last)
            read = cut_cache(read, ids.shape[1] - 1)
            drafted_from = cut_cache(drafted_from, ids.shape[1] - 1)
    return ids, rounds


def look_up(token_ids, cache, vocab_size=49_152):
    """Return logits (B, 1, N) that are sure of what followed; and a cache."""
    ids = token_ids[:, None]  # (B, 1, T)
    if cache:
        ids = torch.cat([cache[0][0], ids], 2)  # (B, 1, S)
    guess = what_followed(ids[0, 0].tolist())
    if guess is None:
        return None, [(ids, ids)]
    sure = F.one_hot(torch.tensor([[guess]]), vocab_size)  # (B, 1, N)
    return sure.log(), [(ids, ids)]
