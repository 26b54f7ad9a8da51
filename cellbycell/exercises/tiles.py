"""The exercises of *Attention in tiles*."""

import math

import numpy as np

from . import Exercise, softmax

# 1: join the outputs of parts


def joined(shares):
    """Return an answer with other shares."""
    return lambda outputs, sums: shares(sums) @ outputs


def outputs_and_sums():
    outputs = np.arange(12.0).reshape(4, 3) ** 2  # (C, V)
    sums = np.array([0.5, 2.0, 1.0, 1.5])  # (C,)
    return [(outputs, sums), (outputs, sums + 1000)]


check_joined_output = Exercise(
    number=1,
    right=joined(softmax),
    cases=outputs_and_sums,
    mistakes={
        "the parts are averaged; each has its own share": (
            lambda outputs, sums: outputs.mean(0)
        ),
        "the outputs are summed; their shares are missing": (
            lambda outputs, sums: outputs.sum(0)
        ),
        "the shares do not sum to one; divide by their sum": joined(np.exp),
        "the shares are the log-sums themselves; take exponentials": joined(
            lambda sums: sums / sums.sum()
        ),
        "log-sums were added; the logarithm of a sum is another": joined(
            lambda sums: np.exp(sums - sums.sum())
        ),
        "the signs are exchanged; mind a minus": joined(
            lambda sums: softmax(-sums)
        ),
        "these log-sums are natural ones; take e, not two": joined(
            lambda sums: softmax(sums * math.log(2))
        ),
        "large log-sums overflow; subtract the largest first": joined(
            lambda sums: np.exp(sums) / np.exp(sums).sum()
        ),
    },
    otherwise="the shares are the exponentials of the log-sums, over their "
    "sum",
)


# 2: the share of a tile


def share(fill=-np.inf, empty=0.0):
    """Return an answer that fills blocked scores, and one for an empty tile.

    empty: None if nothing is done for an empty tile.
    """

    def tile_share(scores, mask, rest):
        if not mask.any() and empty is not None:
            return empty(rest) if callable(empty) else empty
        tile = np.logaddexp.reduce(np.where(mask, scores, fill))
        return np.exp(tile - np.logaddexp(tile, rest))

    return tile_share


def without_largest(scores, mask, rest):
    part = np.exp(scores[mask]).sum()
    return part / (part + np.exp(rest))


def tiles():
    scores, mask = np.array([1.0, 3.0, 2.0]), np.array([True, False, True])
    low = np.array([-2e9, 5.0])
    return [
        (scores, mask, 0.5),
        (scores, mask & False, 0.5),
        (low, np.array([True, False]), -2e9),
        (scores, mask, -20_000.0),
        (scores, mask, 20_000.0),
    ]


check_tile_share = Exercise(
    number=2,
    right=share(),
    cases=tiles,
    mistakes={
        "the mask is not used: the blocked key has a share": (
            lambda scores, mask, rest: share()(scores, mask > -1, rest)
        ),
        "a blocked score becomes 0, and e^0 is one": (share(0.0, None)),
        "this is the share of the rest": lambda scores, mask, rest: (
            1 - share()(scores, mask, rest)
        ),
        "a tile that is blocked throughout gives NaN; it needs a guard": share(
            empty=np.nan
        ),
        "an empty tile has the log-sum minus infinity, not zero": share(
            empty=lambda rest: 1 / (1 + np.exp(rest))
        ),
        "a tile that is blocked throughout has no share, not all": share(
            empty=1.0
        ),
        "a real score may be lower than your fill": (
            share(-1e4, None),
            share(-1e9, None),
        ),
        "if scores are far from zero, subtract the largest first": (
            without_largest
        ),
    },
    otherwise="the share is the tile's sum over that of the tile and the rest",
)


# 3: the score of a sink


def kept_weights():
    total = 1.5
    for sink in (0.5, 2.0):
        kept = 1 / (1 + math.exp(sink - total))
        yield kept * np.array([0.1, 0.2, 0.7]), total


def lost(weights):
    """Return the weight of the sink over that of the keys."""
    return 1 / weights.sum() - 1


check_sink_of = Exercise(
    number=3,
    right=lambda weights, total: total + np.log(lost(weights)),
    cases=kept_weights,
    mistakes={
        "the signs are exchanged: a large sink takes much": lambda w, total: (
            total - np.log(lost(w))
        ),
        "this is the sink's weight; find its score": lambda w, total: (
            1 - w.sum()
        ),
        "the log-sum of the keys is missing": lambda w, total: np.log(lost(w)),
        "divide by what the keys have kept": lambda w, total: (
            total + np.log(1 - w.sum())
        ),
        "this is the log-sum of keys and sink": lambda w, total: (
            total - np.log(w.sum())
        ),
        "take the logarithm": lambda w, total: np.exp(total) * lost(w),
    },
    otherwise="this sink would leave the keys other weights",
)
