"""The moving pictures of *Which token next?*."""

import numpy as np

from .moving import show_break


def show_unsorted(keeps, theirs, logits, random_rows, spoken):
    """Return what a nucleus breaks that is not sorted back.

    Parameters
    ----------
    keeps
        Two functions: logits (B, N), p -> logits, -inf where dropped.
    theirs
        A library's function of ids and logits, for p = 0.7.
    logits
        Of PyTorch, (N,), sorted downwards.
    random_rows
        Of PyTorch, (B, N).
    spoken
        What each writes, in two lists of texts.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed, ids = [], random_rows.new_zeros(1, 0).long()
    by_theirs = theirs(ids, random_rows).isfinite()
    first = theirs(ids, logits[None]).isfinite()
    for keep in keeps:
        kept = keep(random_rows, 0.7)
        sums, is_kept = kept.softmax(-1).sum(-1), kept.isfinite()
        in_order = keep(logits[None], 0.7).isfinite()
        passed.append(
            {
                "the probabilities sum to one": np.allclose(sums, 1),
                "our five tokens: those that generate() keeps": bool(
                    (in_order == first).all()
                ),
                "random rows: as many as generate() keeps": bool(
                    (is_kept.sum(-1) == by_theirs.sum(-1)).all()
                ),
                "random rows: those that generate() keeps": bool(
                    (is_kept == by_theirs).all()
                ),
            }
        )
    return show_break(
        "sampling-mistake",
        *([[text] for text in texts[:6]] for texts in spoken),
        passed,
        "Wrong probabilities sum to one, too, and five tokens that are sorted "
        "already need no sorting back.",
    )
