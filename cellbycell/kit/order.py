"""The check `order`: do positions enter the model?

Three questions, because each kind of position answers another one.

Exchange two tokens: without positions, nothing that sees both of them can
tell. But in a causal model of two layers the token between them can, so the
outputs move even without positions.

Repeat one token: without positions all outputs are equal in a causal model,
however deep. But they are equal, too, with rotary or relative positions.

Perturb the repeated token a little, by 0, 1, 2, 3 ... times the same vector.
Without positions every attention is even, and the mean of 0, 1 ... t is t/2:
a ramp goes in, and a ramp comes out, at every layer. With rotary or relative
positions attention is not even, and the ramp bends. How much a small
perturbation of each token adds to an output is a gradient, so what counts is
free of curvature and nearly of rounding.
"""

from __future__ import annotations

import numpy as np

from .asked import Asked, Failed, Lacks, NotAsked

# By how much a ramp may bend for rounding alone.
STRAIGHT = 2e-5
# So many tokens are perturbed at most.
RAMP_LENGTH = 8
ADVICE = (
    "look whether positions are added, along which axis, and whether every "
    "row of their table is the same."
)


def order(asked: Asked) -> str:
    """Do the outputs depend on the order of the tokens?"""
    if asked.rows.shape[1] < 3:
        raise Lacks("give sequences of three tokens or more.")
    for number in range(len(asked.ids)):
        exchange_two(asked, number)
    if not asked.causal or asked.is_random:
        return "Two tokens exchanged move the other outputs."
    if spread := repeat_one(asked):
        return f"A repeated token has outputs that differ, by {spread:.1e}."
    bend = bend_of_ramp(asked)
    if bend is None:
        raise NotAsked(
            "two tokens exchanged move later outputs, and whether positions "
            "or the causal mask do it is not known: the table of tokens was "
            "not found, or has too few rows."
        )
    if bend < STRAIGHT:
        raise Failed(
            "No positions: a repeated token has the same output everywhere, "
            f"and attention to it is even within {bend:.0e}. Only the causal "
            f"mask tells one position from another: {ADVICE}"
        )
    return f"Attention depends on the distance: it is uneven by {bend:.1e}."


def exchange_two(asked: Asked, number: int) -> None:
    """Raise Failed if the first two tokens can be exchanged unnoticed.

    number: 0 for token_ids or the source, 1 for a decoder's ids.
    """
    ids = [x[:1].copy() for x in asked.ids]
    row = asked.fill_pads(ids[number], number)  # (1, T)
    if row.shape[1] < 3:
        return
    row[0, :2] = asked.known[number][:2]
    ids[number] = row
    other = ids.copy()
    other[number] = row[:, [1, 0, *range(2, row.shape[1])]]
    where = asked.real[:1]
    if number == len(ids) - 1:
        where = np.arange(row.shape[1])[None] >= 2
    # Attention to nearly equal scores hardly knows of rotary positions.
    for scale in (False, True):
        before = asked.outputs(*ids, scale=scale)
        after = asked.outputs(*other, scale=scale)
        if asked.say_change(before, after, where):
            break
    else:
        which = "the source" if number < len(ids) - 1 else "a sequence"
        raise Failed(
            f"The first two tokens of {which} change places, and no other "
            f"output moves: {ADVICE}"
        )


def repeat_one(asked: Asked) -> float:
    """Return how far the outputs of a repeated token differ; 0 if equal.

    Sinks of attention are closed: they count tokens, as positions would.
    """
    ids = [x[:1] for x in asked.ids]
    ids[-1] = np.full_like(ids[-1], asked.known[-1][0])
    copy = asked.copy()
    copy.close_sinks()
    found = copy.outputs(tuple(ids)).reshape(1, ids[-1].shape[1], -1)
    spread = asked.change(found[:, :1], found).max()
    if spread <= asked.tolerance:
        asked.refuse_coarse(spread)
        return 0.0
    return float(spread)


def bend_of_ramp(asked: Asked) -> float | None:
    """Return how far the response to a ramp is from a ramp.

    The table of tokens is rewritten in a copy: some of its rows become one
    vector. Small matrices are scaled up, for attention to nearly equal scores
    is even, too. None if there is no table, or too few rows.
    """
    found = asked.copy().read_table(asked.ids)
    if found is None:
        return None
    name, table = found
    taken = asked.ids[0] if asked.ids[1:] else [asked.pad_id or 0]
    free = np.setdiff1d(np.arange(len(table)), taken)
    tokens = free[: min(RAMP_LENGTH, asked.rows.shape[1])]
    if len(tokens) < 4:
        return None
    one = table[asked.known[-1][0]]
    rng = np.random.default_rng(0)
    direction = rng.normal(size=one.shape)
    ids = tuple([*(x[:1] for x in asked.ids[:-1]), tokens[None]])
    slopes = []
    for position in np.unique([1, 2, len(tokens) // 2, len(tokens) - 1]):

        def pull(shape, position=position):
            numbers = np.zeros(shape)
            numbers[0, position] = np.random.default_rng(1).normal(
                size=shape[2:]
            )
            if shape[-1] == len(table):
                # A table that is also the last layer learns from there.
                numbers[..., tokens] = 0
            return numbers

        copy = asked.copy()
        copy.close_sinks()
        copy.scale_up()
        changed = dict(copy.weights())[name].copy()
        changed[tokens] = one
        copy.assign(name, changed)
        grad = copy.gradient(name, ids, pull)
        if grad is None:
            return None
        ramp = grad[tokens] @ direction * np.arange(len(tokens))
        slopes.append(ramp.sum() / position)
    slopes = np.array(slopes)
    size = np.abs(slopes).max()
    return float(np.abs(slopes - slopes[0]).max() / size) if size else None
