"""Do positions enter the model?

It takes three experiments, because no single one shows every kind of position.

Exchange two tokens: without positions, an output that sees both of them does
not change. But in a causal model of two layers, outputs change even without
positions, because the token between the two sees only one of them.

Repeat one token: without positions, all outputs of a causal model are equal,
at any depth. But they are also equal with rotary or relative positions.

Perturb the repeated token a little, by 0, 1, 2, 3 ... times the same vector.
Without positions all attention is even, and the mean of 0, 1 ... t is t/2: a
ramp goes into each layer, and a ramp comes out. With rotary or relative
positions attention is not even, and the ramp bends. The effect of a small
perturbation on an output is a gradient, which is free of curvature and nearly
free of rounding.
"""

from __future__ import annotations

import numpy as np

from .context import CheckContext
from .gradients import gradient_of
from .verdicts import Failed, MissingArgument, NotRun

# How much a ramp may bend by rounding alone.
STRAIGHT = 2e-5
# At most so many tokens are perturbed.
RAMP_LENGTH = 8
ADVICE = (
    "check whether positions are added, along which axis, and whether all "
    "rows of their table are equal."
)


def position_dependence(context: CheckContext) -> str:
    """Do the outputs depend on the order of the tokens?"""
    if context.rows.shape[1] < 3:
        raise MissingArgument(
            "give sequences of three tokens or more.", "three tokens"
        )
    for number in range(len(context.ids)):
        exchange_two(context, number)
    if not context.causal or context.is_random:
        return "Exchanging two tokens changes the other outputs."
    if spread := repeat_one(context):
        return f"The outputs of a repeated token differ by {spread:.1e}."
    bend = bend_of_ramp(context)
    if bend is None:
        raise NotRun(
            "exchanging two tokens changes later outputs, but the kit cannot "
            "tell whether positions or the causal mask is the cause: it finds "
            "no table of tokens, or one with too few rows."
        )
    if bend < STRAIGHT:
        raise Failed(
            "The model has no positions: a repeated token has the same output "
            f"everywhere, and attention to it is even within {bend:.0e}. Only "
            f"the causal mask tells one position from another: {ADVICE}"
        )
    return f"Attention depends on the distance: it is uneven by {bend:.1e}."


def exchange_two(context: CheckContext, number: int) -> None:
    """Raise Failed if exchanging the first two tokens changes no output.

    number: 0 for token_ids or the source, 1 for a decoder's ids.
    """
    ids = [x[:1].copy() for x in context.ids]
    row = context.fill_pads(ids[number], number)  # (1, T)
    if row.shape[1] < 3:
        return
    row[0, :2] = context.known[number][:2]
    ids[number] = row
    other = ids.copy()
    other[number] = row[:, [1, 0, *range(2, row.shape[1])]]
    where = context.real[:1]
    if number == len(ids) - 1:
        where = np.arange(row.shape[1])[None] >= 2
    # With nearly equal scores, rotary positions hardly matter.
    for scale in (False, True):
        before = context.outputs(*ids, scale=scale)
        after = context.outputs(*other, scale=scale)
        if context.say_change(before, after, where):
            break
    else:
        which = "the source" if number < len(ids) - 1 else "a sequence"
        raise Failed(
            f"Exchanging the first two tokens of {which} changes no other "
            f"output: {ADVICE}"
        )


def repeat_one(context: CheckContext) -> float:
    """Return how much the outputs of a repeated token differ; 0 if equal.

    Sinks of attention are removed: they count tokens, as positions do.
    """
    ids = [x[:1] for x in context.ids]
    ids[-1] = np.full_like(ids[-1], with_a_row(context))
    copy = context.copy()
    copy.close_sinks()
    found = copy.outputs(tuple(ids)).reshape(1, ids[-1].shape[1], -1)
    spread = context.change(found[:, :1], found).max()
    if spread <= context.tolerance:
        context.refuse_coarse(spread)
        return 0.0
    return float(spread)


def with_a_row(context: CheckContext) -> int:
    """Return a known token whose row in the table says something.

    That of a pad is often zeros: it has equal keys everywhere, turned or not.
    """
    found, known = context.copy().read_table(context.ids), context.known[-1]
    if found is not None:
        spread = np.ptp(found[1][known], axis=1)
        known = known[spread > spread.max() / 100]
    return int(known[0])


def bend_of_ramp(context: CheckContext) -> float | None:
    """Return how far the response to a ramp is from a ramp.

    In a copy, some rows of the table of tokens become one vector. Small
    matrices are scaled up, because nearly equal scores make attention even.
    None if there is no table, or too few rows.
    """
    found = context.copy().read_table(context.ids)
    if found is None:
        return None
    name, table = found
    taken = context.ids[0] if context.ids[1:] else [context.pad_id or 0]
    free = np.setdiff1d(np.arange(len(table)), taken)
    tokens = free[: min(RAMP_LENGTH, context.rows.shape[1])]
    if len(tokens) < 4:
        return None
    one = table[with_a_row(context)]
    rng = np.random.default_rng(0)
    direction = rng.normal(size=one.shape)
    ids = tuple([*(x[:1] for x in context.ids[:-1]), tokens[None]])
    slopes = []
    for position in np.unique([1, 2, len(tokens) // 2, len(tokens) - 1]):

        def cotangent(shape, position=position):
            numbers = np.zeros(shape)
            numbers[0, position] = np.random.default_rng(1).normal(
                size=shape[2:]
            )
            if shape[-1] == len(table):
                # A tied table also gets a gradient as the last layer.
                numbers[..., tokens] = 0
            return numbers

        copy = context.copy()
        copy.close_sinks()
        copy.scale_up()
        changed = dict(copy.weights())[name].copy()
        changed[tokens] = one
        copy.assign(name, changed)
        grad = gradient_of(copy, name, ids, cotangent)
        if grad is None:
            return None
        ramp = grad[tokens] @ direction * np.arange(len(tokens))
        slopes.append(ramp.sum() / position)
    slopes = np.array(slopes)
    size = np.abs(slopes).max()
    return float(np.abs(slopes - slopes[0]).max() / size) if size else None
