"""The exercises of *One model, several machines*."""

import numpy as np

from . import Exercise

# 1: the factor of a loss

check_loss_factor = Exercise(
    number=1,
    right=lambda counts, rank: len(counts) * counts[rank] / counts.sum(),
    cases=lambda: [
        (np.array(counts), rank)
        for counts, rank in (([10, 36, 4], 0), ([10, 36, 4], 1), ([7, 3], 1))
    ],
    mistakes={
        "the engine averages: the machines are forgotten": lambda n, r: (
            n[r] / n.sum()
        ),
        "each machine's own mean counts as much as the others'": (
            lambda n, r: 1.0
        ),
        "this is upside down": lambda n, r: n.sum() / n[r] / len(n),
        "that is the factor of a summed loss, not of a mean": lambda n, r: (
            len(n) / n.sum()
        ),
        "the engine divides by the machines already": lambda n, r: (
            n[r] / n.sum() / len(n)
        ),
        "the shares are missing": lambda n, r: len(n),
    },
    otherwise="the machine's share of the tokens, times the machines",
)


# 2: a part of fused projections


def part_of(
    order=(0, 1, 2), take=lambda part, rank, size: np.split(part, size)[rank]
):
    """Return an answer that joins the three in an order, or takes other rows.

    take: the rows of a machine, of the rows of all heads.
    """

    def fused_part(fused, num_heads, key_heads, rank, size):
        width = len(fused) // (num_heads + 2 * key_heads)
        ends = [width * num_heads, width * (num_heads + key_heads)]
        three = np.split(fused, ends)
        return np.concatenate([take(three[i], rank, size) for i in order])

    return fused_part


def fused_rows():
    for num_heads, key_heads, size, rank in ((4, 2, 2, 1), (8, 4, 4, 2)):
        count = 3 * (num_heads + 2 * key_heads)
        fused = np.arange(count)[:, None] + np.zeros(2)
        yield fused, num_heads, key_heads, rank, size


check_fused_part = Exercise(
    number=2,
    right=part_of(),
    cases=fused_rows,
    mistakes={
        "this cuts through the queries; cut each of the three": (
            lambda fused, heads, key_heads, rank, size: np.split(fused, size)[
                rank
            ]
        ),
        "these are the rows of another machine": part_of(
            take=lambda part, rank, size: np.split(part, size)[
                (rank + 1) % size
            ]
        ),
        "a machine's heads are neighbours, not every second row": part_of(
            take=lambda part, rank, size: part[rank::size]
        ),
        "queries come first, then keys, then values": part_of((1, 2, 0)),
        "keys and values are exchanged": part_of((0, 2, 1)),
    },
    otherwise="queries, keys and values are each cut for the machines",
)


# 3: what a machine holds


def held(kinds=((2, 3), (2, 2), (12, 1)), divided=lambda n, size: n / size):
    """Return an answer; kinds: bytes, and the stage that cuts them."""
    return lambda stage, size: sum(
        divided(n, size) if stage >= cut else n for n, cut in kinds
    )


check_bytes_held = Exercise(
    number=3,
    right=held(),
    cases=lambda: [(2, 4), (0, 8), (1, 2), (3, 64), (1, 16)],
    mistakes={
        "stage 1 cuts Adam's state, and the weights come last": held(
            ((2, 1), (2, 2), (12, 3))
        ),
        "each stage goes on cutting what the one before has cut": (
            lambda stage, size: 16 - (0, 12, 2, 2)[stage] * (1 - 1 / size)
        ),
        "nothing is cut in stage 0": held(((2, 2), (2, 1), (12, 0))),
        "this is what all machines hold together": (
            lambda stage, size: size * held()(stage, size)
        ),
        "a machine holds its piece, and not what the others hold": held(
            divided=lambda n, size: n * (size - 1) / size
        ),
        "what is cut has not vanished: a piece of it stays": held(
            divided=lambda n, size: 0
        ),
    },
    otherwise="2 of weights, 2 of gradients and 12 of Adam, cut from the last",
)


# 4: a loss of parts


def log_sums(parts):
    return np.array([np.logaddexp.reduce(part) for part in parts])


def own_part(parts, target):
    for part in parts:
        if target < len(part):
            return part
        target -= len(part)


def own_logit(parts, target):
    return np.concatenate(parts)[target]


def loss(
    total=lambda parts, target: np.logaddexp.reduce(log_sums(parts)),
    logit=own_logit,
    sign=1,
):
    """Return an answer with another log-sum, logit or sign."""
    return lambda parts, target: (
        sign * (total(parts, target) - logit(parts, target))
    )


def own_maxima(parts, target):
    below = sum(np.exp(part - part.max()).sum() for part in parts)
    return max(part.max() for part in parts) + np.log(below)


def clamped(parts, target):
    total = 0
    for part in parts:
        total += part[np.clip(target, 0, len(part) - 1)]
        target -= len(part)
    return total


class Parts(list):
    """Logits in parts, of which an answer gets copies."""

    def copy(self):
        return Parts(part.copy() for part in self)


def logits_in_parts():
    logits = np.array([1.0, -2.0, 0.5, 2.0, -1.0, 0.3, 1.7])  # (N,)
    for target, scale in ((4, 1), (1, 3), (6, 2)):
        yield Parts(np.split(scale * logits, [3, 5])), target
    yield Parts([np.array([1000.0, 999.0]), np.array([1001.0])]), 2


check_loss_of_parts = Exercise(
    number=4,
    right=loss(),
    cases=logits_in_parts,
    mistakes={
        "this is the log-sum of one part only": loss(
            lambda parts, target: np.logaddexp.reduce(own_part(parts, target))
        ),
        "log-sums were added; add their exponentials": loss(
            lambda parts, target: log_sums(parts).sum()
        ),
        "log-sums were averaged": loss(
            lambda parts, target: log_sums(parts).mean()
        ),
        "sums with a maximum for each part do not add up": loss(own_maxima),
        "a part without the target gives zero, not a logit": loss(
            logit=clamped
        ),
        "the sign is exchanged": loss(sign=-1),
        "the logit of the target is missing": loss(
            logit=lambda parts, target: 0
        ),
        "large logits overflow; np.logaddexp does not": loss(
            lambda parts, target: np.log(np.exp(np.concatenate(parts)).sum())
        ),
    },
    otherwise="the log-sum of all parts, less the logit of the target",
)
