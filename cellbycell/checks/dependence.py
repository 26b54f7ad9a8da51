"""Do the outputs depend on each token, on its context, and on the source?"""

from __future__ import annotations

import numpy as np

from .context import CheckContext
from .verdicts import Failed, MissingArgument, Warned


def context_dependence(context: CheckContext) -> str:
    """Does the output at the last token depend on the other tokens?"""
    real = context.real
    last = real & (real[:, ::-1].cumsum(axis=1)[:, ::-1] == 1)
    last &= real.sum(axis=1, keepdims=True) > 1
    others = context.exchange(context.rows, real & ~last)
    after = context.outputs(*context.ids[:-1], others)
    same = (context.change(context.base, after) == 0) & last
    if same.any():
        row, position = np.argwhere(same)[0]
        warn_of_selection(context)
        raise Failed(
            f"Exchanging all other tokens of sequence {row} does not change "
            f"the output at position {position}: check whether the mask is "
            "inverted, and what True means in it."
        )
    return "The output at the last token depends on the other tokens."


def token_influence(context: CheckContext) -> str:
    """Does each token change its own output and another one?

    With causal=False: do tokens change earlier outputs and later ones?
    """
    changes, moves = context.influence.changes, context.influence.moves
    place = np.arange(context.rows.shape[1])
    row, position = changes.T
    # Only outputs at tokens count.
    moved = context.real[row] & (moves > 2 * context.model.eps)  # (M, T)
    own = moved[np.arange(len(moved)), position]
    late = (moved & (place > position[:, None])).any(axis=1)
    early = (moved & (place < position[:, None])).any(axis=1)
    later = context.real[row] & (place > position[:, None])
    follows = later.any(axis=1)  # whether a token comes later
    if not context.causal and early.any() != late.any():
        way = "later" if late.any() else "earlier"
        raise Failed(
            f"Tokens change {way} outputs only: a model that may look both "
            "ways (causal=False) has a causal mask."
        )
    kinds = {
        "its own output": ~own,
        "a later output": context.causal & follows & ~late,
        "any other output": ~(context.causal | late | early),
    }
    for what, still in kinds.items():
        if still.any():
            b, t = changes[still.argmax()]
            warn_of_selection(context)
            raise Failed(
                f"Changing the token at position {t} of sequence {b} does not "
                f"change {what}: check what a position reads, whether logits "
                "or inputs are shifted twice, and the edges of the mask."
            )
    far = (place - position[:, None])[moved]
    return (
        f"Tokens change outputs from {-far.min()} positions before to "
        f"{far.max()} after."
    )


def warn_of_selection(context: CheckContext) -> None:
    """Raise Warned if the model lets a token read only some others."""
    if found := context.model.selects(context.rows.shape[1]):
        raise Warned(
            f"Some tokens do not read each other, by selection ({found}). "
            "Give rows in which each reads all, to test the rest."
        )


def source_dependence(context: CheckContext) -> str:
    """Does each token of the source change the outputs?"""
    if len(context.ids) < 2:
        raise MissingArgument(
            "only for an encoder-decoder: give decoder_ids, too.",
            "decoder_ids",
        )
    ids = context.ids[0]
    for position in range(ids.shape[1]):
        where = context.real_tokens(ids, 0) & (
            np.arange(ids.shape[1]) == position
        )  # (B, S)
        after = context.outputs(context.exchange(ids, where, 0), context.rows)
        change = np.where(context.real, context.change(context.base, after), 0)
        still = where.any(axis=1) & (change.max(axis=1) == 0)
        if still.any():
            raise Failed(
                f"Changing the token at position {position} of source "
                f"{still.argmax()} changes no output: check the keys and "
                "values of cross-attention, and the mask of the memory."
            )
    return "Each token of the source changes the outputs."
