"""The exercises of *Rotary positions*."""

import math

import numpy as np

from . import Exercise

# 1: turn one pair


def turning(angle, order=1):
    """Return an answer with another angle, or the numbers exchanged."""

    def turned_pair(pair, position, turn):
        cos, sin = (f(angle(position, turn)) for f in (math.cos, math.sin))
        return (np.array([[cos, -sin], [sin, cos]]) @ pair)[::order]

    return turned_pair


check_turned_pair = Exercise(
    number=1,
    right=turning(lambda p, w: p * w),
    cases=lambda: [(np.array([3.0, 2.0]), 5, 0.3)],
    mistakes={
        "it turns the other way; mind the signs of the sines": turning(
            lambda p, w: -p * w
        ),
        "the angle is in radians, not in degrees": turning(
            lambda p, w: math.radians(p * w)
        ),
        "the position is not in the angle": turning(lambda p, w: w),
        "the angle is position times turn, not position": turning(
            lambda p, w: p
        ),
        "the two numbers are exchanged": turning(lambda p, w: p * w, -1),
        "the pair is as it was": lambda pair, position, turn: pair,
    },
    otherwise="the angle is position times turn, and equation (2) has the "
    "matrix",
)


# 2: the base, from a table


def solved(exponent):
    """Return an answer that takes the second turn to another power."""
    return lambda cosines: np.arccos(cosines[1]) ** exponent(len(cosines))


def base_cases():
    for base, width in ((1e4, 6), (123_456.7, 64), (1e6, 128)):
        turns = base ** (-np.arange(0, width, 2) / width)  # (C,)
        yield (np.cos(turns),)


check_base_of = Exercise(
    number=2,
    right=solved(lambda pairs: -pairs),
    cases=base_cases,
    mistakes={
        "this is the root of the base: a pair has two columns": solved(
            lambda pairs: -pairs / 2
        ),
        "this is the base squared: a pair has two columns": solved(
            lambda pairs: -2 * pairs
        ),
        "take the second turn, not the last": lambda cosines: (
            np.arccos(cosines[-1]) ** -len(cosines)
        ),
        "this is one over the base: mind the sign": solved(
            lambda pairs: pairs
        ),
        "this is the last turn's inverse, not the base": lambda cosines: (
            1 / np.arccos(cosines[-1])
        ),
        "this is the usual base; the table may have another": lambda cosines: (
            10000.0
        ),
    },
    otherwise="take the second turn, and solve it for the base",
)


# 3: from halves to pairs


def dealt(weight, parts, axis=0):
    """Return rows or columns of each head, dealt out from so many parts."""
    heads, count = parts
    x = np.moveaxis(weight, axis, 0)
    x = x.reshape(heads, count, -1, len(weight)).swapaxes(1, 2)
    return np.moveaxis(x.reshape(weight.shape), 0, axis)


check_halves_to_pairs = Exercise(
    number=3,
    right=lambda weight, heads: dealt(weight, (heads, 2)),
    cases=lambda: [(np.arange(24.0 * 24).reshape(24, 24), 3)],
    mistakes={
        "these are still halves; nothing is sorted": lambda w, heads: w,
        "it sorts for halves once more; this is the way back": (
            lambda w, heads: dealt(w, (heads, len(w) // heads // 2))
        ),
        "it sorts over the whole width, not within each head": (
            lambda w, heads: dealt(w, (1, 2))
        ),
        "it sorts the columns, which are the inputs": lambda w, heads: dealt(
            w, (heads, 2), 1
        ),
    },
    otherwise="within each head, the halves' rows take turns",
)
