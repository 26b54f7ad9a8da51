"""Do other sequences of the batch, or earlier calls, change the outputs?"""

from __future__ import annotations

import numpy as np

from .context import CheckContext
from .padding import MAX_ROWS
from .verdicts import Failed, MissingArgument


def batch_invariance(context: CheckContext) -> str:
    """Does a sequence have the same outputs without the rest of the batch?"""
    if len(context.rows) < 2:
        raise MissingArgument(
            "one sequence was given: give two or more.", "two sequences"
        )
    context.refuse_random()
    for b in range(min(len(context.rows), MAX_ROWS)):
        one = context.outputs(*(x[b : b + 1] for x in context.ids))
        here = context.base[b : b + 1], one, context.real[b : b + 1]
        if context.say_change(*here):
            gap = np.where(here[2], context.change(*here[:2]), 0)[0]
            said = "Taking a sequence out of the batch changes "
            said += f"{context.say(b, gap.argmax(), gap.max())}. "
            if not depends_on_others(context, b):
                raise Failed(
                    f"{said}The number of sequences does it, and not their "
                    "tokens: check whether positions are added along the "
                    "batch, or random numbers drawn under a seed of the "
                    "model's own."
                )
            raise Failed(
                f"{said}Sequences affect "
                "each other: check batch_first, the axis along which "
                "positions are added, how heads are split, whether "
                "each row has its own mask (repeat_interleave, not repeat), "
                "and whether experts refuse tokens when they are full."
            )
    count = len(context.rows)
    return f"Each of the {count} sequences has the same outputs alone."


def depends_on_others(context: CheckContext, b: int) -> bool:
    """Return whether a sequence's outputs depend on the others' tokens."""
    same = (np.repeat(x[b : b + 1], len(x), axis=0) for x in context.ids)
    found = context.outputs(*same)[b : b + 1]
    real = context.real[b : b + 1]
    return bool(context.say_change(context.base[b : b + 1], found, real))


def determinism(context: CheckContext) -> str:
    """Do calls in evaluation mode agree, whatever calls are between them?"""
    other = other_rows(context)
    fresh = context.outputs(*other)
    copy = context.model.copy()
    first = context.base  # from a copy that was never called before
    shape = first.shape
    copy.outputs(context.ids)
    again = copy.outputs(context.ids).reshape(shape)
    advice = "look for a mask or a cache that is edited in place"
    if moved := context.say_change(first, again, context.real):
        raise Failed(f"A second call changes {moved}: {advice}.")
    later = copy.outputs(other).reshape(shape)
    last = copy.outputs(context.ids).reshape(shape)
    pairs = [
        (fresh, later, context.real_tokens(other[-1])),
        (first, last, context.real),
    ]
    for pair in pairs:
        if moved := context.say_change(*pair):
            raise Failed(
                f"An earlier call with other pads changes {moved}: {advice}."
            )
    if context.is_random:
        raise Failed(
            "Two calls with different seeds differ: dropout acts in "
            "evaluation mode, or the model samples by design."
        )
    return "Calls agree, also after calls with other pads."


def other_rows(context: CheckContext) -> tuple[np.ndarray, ...]:
    """Return ids of the same shapes with other tokens and other pads."""
    rows = []
    for number, ids in enumerate(context.ids):
        real = context.real_tokens(ids, number)
        other = context.fill_pads(context.exchange(ids, real, number), number)
        if context.pad_id is not None and ids.shape[1] > 2:
            other[0, -(ids.shape[1] // 3) :] = context.pad_id
        rows.append(other)
    return tuple(rows)
