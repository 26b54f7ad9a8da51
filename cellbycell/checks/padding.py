"""Do pads leave the outputs unchanged, on the right and on the left?"""

from __future__ import annotations

from copy import copy

import numpy as np

from .context import CheckContext
from .dependence import context_dependence
from .verdicts import Failed, MissingArgument, NotRun, run_check

# At most so many rows are computed one by one.
MAX_ROWS = 8


def infer_mask_polarity(context: CheckContext) -> None:
    """Find out what True means in masks whose names do not tell.

    They get True at tokens, or at pads, whichever makes pads change nothing,
    and lets tokens read each other: where all are blocked, nothing changes
    either. If neither does, the model gets no such mask, and
    `padding_invariance` reports it.
    """
    if context.pad_id is None or not context.model.ambiguous_masks:
        return
    found = []
    for polarity in ("tokens", "pads"):
        trial = copy(context.model)
        trial.notes, trial.mask_polarity = [], polarity
        asked = CheckContext(trial, context.ids, context.pad_id)
        result = run_check(more_on_the_right, asked, "more_on_the_right")
        if result.status == "passed" or result.needs:
            reads = run_check(context_dependence, asked, "context_dependence")
            found.append((reads.status != "passed", polarity))
    # The first of those that let tokens read each other, or of all.
    found.sort(key=lambda pair: pair[0])
    context.model.mask_polarity = found[0][1] if found else None


def padding_invariance(context: CheckContext) -> str:
    """Do more pads leave the outputs of the tokens unchanged?

    No sequence gets longer: its last tokens are removed, once by cutting the
    sequences and once by putting pads in their place.
    """
    if context.pad_id is None:
        needs = "pad_id=" if context.pixels is None else "patch_mask="
        raise MissingArgument(f"{needs}None: the model has no pads.", needs)
    context.refuse_random()
    if context.pixels is not None:
        return other_pads(context)
    if context.model.mask_polarity is None:
        raise NotRun(
            "the kit cannot tell what True means in "
            f"{', '.join(context.model.ambiguous_masks)}: with True at tokens "
            "and with True at pads, pads change the outputs. Give call=, a "
            "function of the model and its ids."
        )
    said = more_on_the_right(context)
    # A causal model that takes positions should generate with left pads.
    left = context.causal and "position_ids" in context.model.names
    left |= context.pad_left
    if left or not context.real_tokens(context.ids[0], 0)[:, 0].all():
        more_on_the_left(context)
        said += ", and different numbers of pads on the left,"
    return f"{said} change nothing."


def other_pads(context: CheckContext) -> str:
    """Return what happened to pads of pictures; raise Failed if it matters."""
    assert context.pixels is not None
    kept = context.pixels.table.copy()
    context.pixels.other_pads()
    try:
        after = context.outputs(*context.ids)
    finally:
        context.pixels.table = kept
    if moved := context.say_change(context.base, after, context.real):
        raise Failed(
            f"Other pixels in pads change {moved}. Patches attend to pads: "
            "check whether the mask reaches every layer and blocks keys, and "
            "what True means in it."
        )
    return "Other pixels in pads change nothing."


def more_on_the_right(context: CheckContext) -> str:
    """Return which pads were added; raise Failed if they matter."""
    first = context.ids[0]  # the source, where there is one
    real = context.real_tokens(first, 0)
    room = first.shape[1] - 1 - int(real.argmax(axis=1).max())
    count = min(3, room)
    if count < 1:
        raise MissingArgument(
            "a sequence is too short: give longer ones.", "longer rows"
        )
    cut, rest = first[:, :-count], context.ids[1:]
    real = context.real if rest else context.real_tokens(cut)
    before = context.outputs(cut, *rest)
    width = [(0, 0), (0, count)]
    padded = np.pad(cut, width, constant_values=context.pad_id)
    after = context.outputs(padded, *rest)
    after = after if rest else after[:, : cut.shape[1]]
    if moved := context.say_change(before, after, real):
        raise Failed(
            f"{count} more pads on the right change {moved}. Tokens attend to "
            "pads: check whether the padding mask reaches every layer and "
            "blocks keys, and what True means in it."
        )
    return f"{count} more pads on the right"


def more_on_the_left(context: CheckContext) -> None:
    """Raise Failed if rows with pads before them have other outputs.

    Each row gets a different number of pads, and is compared with itself,
    alone and without pads.
    """
    rows, rest = context.left_padded()[:MAX_ROWS], context.ids[1:]
    length = max(map(len, rows)) + 1
    padded = np.full((len(rows), length), context.pad_id)
    for b, row in enumerate(rows):
        padded[b, length - len(row) :] = row
    given = [x[: len(rows)] for x in rest]
    together = context.outputs(padded, *given, positions=True)
    for b, row in enumerate(rows):
        given = [x[b : b + 1] for x in rest]
        alone = context.outputs(row[None], *given, positions=True)
        with_pads = together[b : b + 1]
        real = context.real[b : b + 1]
        if not rest:
            with_pads = with_pads[:, -len(row) :]
            real = np.ones((1, len(row)), bool)
        if moved := context.say_change(alone, with_pads, real):
            moved = moved.replace("sequence 0", f"sequence {b}")  # alone
            raise Failed(
                f"Pads on the left change {moved}. Tokens attend to pads, or "
                "positions count them: check the mask of each row, and count "
                "positions from the first token."
            )
