"""The exercises of *The similarity of positions*."""

import math
import timeit

import numpy as np

from . import Exercise, Seen, agree, peak_bytes, to_numbers


def speeds(d_model):
    """Return the speed of each hand, in radians per step, (C,)."""
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


# 1: the mean of two positions


def from_product(norm):
    """Return an answer that is a function of the dot product, and d."""
    return lambda k, d: norm(np.cos(k * speeds(d)).sum(), d)


check_norm_of_mean = Exercise(
    number=1,
    right=from_product(lambda S, d: np.sqrt(d + 2 * S) / 2),
    cases=lambda: [(6, 6), (0, 8), (-3, 6), (1, 512), (20, 2)],
    mistakes={
        "this is the square of the norm": from_product(
            lambda S, d: (d + 2 * S) / 4
        ),
        "this is the norm of the sum, not of the mean": from_product(
            lambda S, d: np.sqrt(d + 2 * S)
        ),
        "divide by 2, not by the square root of 2": from_product(
            lambda S, d: np.sqrt(d / 2 + S)
        ),
        "half the distance; mind a sign": from_product(
            lambda S, d: np.sqrt(d - 2 * S) / 2
        ),
        "the product occurs twice in |a + b|^2": from_product(
            lambda S, d: np.sqrt(d + S) / 2
        ),
        "the mean of two norms is no norm of a mean": from_product(
            lambda S, d: np.sqrt(d / 2)
        ),
        "this is for vectors of norm 1": from_product(
            lambda S, d: np.sqrt(2 + 4 * S / d) / 2
        ),
        "this is the similarity": from_product(lambda S, d: S),
    },
    otherwise="{} is not the norm of the mean",
)


# 2: counting full turns


def from_rounds(count):
    """Return an answer that counts the rounds of each hand, (C,)."""
    return lambda n, d: count(n * speeds(d) / (2 * math.pi))


check_whole_rounds = Exercise(
    number=2,
    right=from_rounds(lambda rounds: int(np.floor(rounds).sum())),
    cases=lambda: [(512, 512), (6, 6), (7, 6), (2000, 64), (50, 2)],
    mistakes={
        "these are columns; a hand has two": from_rounds(
            lambda rounds: 2 * np.floor(rounds).sum()
        ),
        "these are the hands that come round": from_rounds(
            lambda rounds: (rounds >= 1).sum()
        ),
        "incomplete rounds are counted": from_rounds(np.sum),
        "each hand drops its own incomplete round": from_rounds(
            lambda rounds: int(rounds.sum())
        ),
        "rounds are not complete if rounded up": from_rounds(
            lambda rounds: np.round(rounds).sum()
        ),
        "a round is 2 pi radians": from_rounds(
            lambda rounds: np.floor(2 * math.pi * rounds).sum()
        ),
        "half a round is not a round": from_rounds(
            lambda rounds: np.floor(2 * rounds).sum()
        ),
        "the width is always 512": lambda n, d: np.floor(
            n * speeds(512) / (2 * math.pi)
        ).sum(),
    },
    otherwise="{} is not the number of whole rounds",
)


# 3: the other layout


def rotation(offset, width):
    """Return the rotation of interleaved pairs, (D, D)."""
    matrix = np.zeros((width, width))
    for i, angle in enumerate(offset * speeds(width)):
        cos, sin, pair = np.cos(angle), np.sin(angle), slice(2 * i, 2 * i + 2)
        matrix[pair, pair] = [[cos, sin], [-sin, cos]]
    return matrix


def reordered(rows=True, columns=True, back=False, step=lambda k: k):
    """Return an answer that reorders rows and columns of a rotation."""

    def rotation_halves(offset, d_model):
        order = np.r_[0:d_model:2, 1:d_model:2]  # (D,)
        order = np.argsort(order) if back else order
        matrix = rotation(step(offset), d_model)
        matrix = matrix[order] if rows else matrix
        return matrix[:, order] if columns else matrix

    return rotation_halves


def both_positive(offset, d_model):
    return abs(reordered()(offset, d_model))


def is_no_rotation(answer):
    found = to_numbers(answer(2, 6), (6, 6))
    return not np.allclose(found @ found.T, np.eye(6))


check_rotation_halves = Exercise(
    number=3,
    right=reordered(),
    cases=lambda: [(2, 6), (-1.5, 8), (3, 10), (1, 2)],
    mistakes={
        "this is the matrix of the interleaved layout": rotation,
        "only the rows are reordered; the columns are not": reordered(
            columns=False
        ),
        "only the columns are reordered; the rows are not": reordered(
            rows=False
        ),
        "it steps back; mind the sign of the sine": reordered(
            step=lambda k: -k
        ),
        "this reorders halves to pairs; do the reverse": reordered(back=True),
        "it always steps by 1; the offset is not used": reordered(
            step=lambda k: 1
        ),
        "this is no rotation: its rows do not have norm 1, or are not "
        "perpendicular": Seen(
            is_no_rotation,
            both_positive,
            lambda k, d: 2 * reordered()(k, d),
        ),
    },
    otherwise="this is a rotation, but not the one that steps by the offset: "
    "{}",
)


# 4: read the clocks


def turned(here, there):
    """Return cosine + i sine of the angle by which each hand moved, (C,)."""
    first, second = (x[1::2] + 1j * x[0::2] for x in (here, there))
    return second * first.conj()


def best_match(hands=slice(None), most=50):
    """Return an answer that compares some hands, for -most..most."""

    def read_offset(here, there):
        candidates = np.arange(-most, most + 1)  # (C,)
        angles = np.outer(candidates, speeds(len(here)))[:, hands]
        matches = np.exp(-1j * angles) @ turned(here, there)[hands]
        return candidates[matches.real.argmax()]

    return read_offset


def fast_hand(low):
    """Return an answer that reads the fastest hand, from low to a round on."""
    return lambda here, there: (
        (np.angle(turned(here, there)[0]) - low) % (2 * math.pi) + low
    )


def slow_hand(here, there):
    """Read a hand that passes a round where its angle jumps."""
    angles = np.arctan2([here[42], there[42]], [here[43], there[43]])
    return np.diff(angles)[0] / speeds(64)[21]


def near_the_beginning(here, there):
    """Look both positions up among the first hundred."""
    angles = np.outer(np.arange(100), speeds(64))
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(100, -1)
    is_there, is_here = (
        table @ x > 31.99 for x in (there, here)
    )  # (T,), (T,)
    return is_there.argmax() - is_here.argmax()


# The position of the first vector, and the steps to the second; at last, where
# a slow hand passes a quarter of its round.
SLOW = 10000.0 ** (-np.arange(22, 64, 2)[:, None] / 64)  # (C, 1)
QUARTERS = np.ravel([1, 2, 3, 4] / SLOW * math.pi / 2) // 1 - 25  # (84,)
READ = [(7, 2), (7, -2), (20, 44), (5, 0), (50, -50), (9, 50)]
READ += [(100_000, 49)]
READ += [(start, 50) for start in QUARTERS]


def read_cases():
    turns = np.repeat(speeds(64), 2)  # (D,)
    noon = np.tile([0, math.pi / 2], 32)  # (D,): the angles of position 0
    for start, k in READ:
        yield tuple(np.sin(p * turns + noon) for p in (start, start + k))


def first_wrong(answer):
    """Return the index in READ of the first that is wrong; 0 for none."""
    wrong = (
        i
        for i, (case, (_, k)) in enumerate(
            zip(read_cases(), READ, strict=True)
        )
        if not agree(answer(*case), k)
    )
    return next(wrong, 0)


def loses_rounds(answer):
    found = [answer(*case) for case in read_cases()]
    off = np.array(found) - [k for _, k in READ]
    rounds = 2 * math.pi * np.round(off / (2 * math.pi))
    return first_wrong(answer) and (abs(off - rounds) <= 0.5).all()


check_read_offset = Exercise(
    number=4,
    right=best_match(),
    cases=read_cases,
    mistakes={
        "it gives the steps from `there` to `here`": lambda here, there: (
            best_match()(there, here)
        ),
        "the sign is lost, as S(-k) = S(k)": lambda here, there: abs(
            best_match()(here, there)
        ),
        "whole rounds are lost: only the fastest hand is read": Seen(
            loses_rounds,
            best_match(slice(1), most=3),
            fast_hand(-math.pi),
            fast_hand(0),
        ),
        "it fails far from the beginning of the text": Seen(
            lambda answer: first_wrong(answer) == 6, near_the_beginning
        ),
        "a slow hand is lost where it passes a quarter of its round": Seen(
            lambda answer: first_wrong(answer) > 6, slow_hand
        ),
    },
    otherwise="{} is not the number of steps",
)


# 5: it rises for ever


def looped(turn, start, stop, divisor):
    return sum(math.cos(turn * k) for k in range(start, stop)) / divisor


def in_one_array(turn, n):
    return np.cos(turn * np.arange(n)).mean()


def collapsed(turn, n, sin=math.sin):
    """Divide by zero for turn 0."""
    return (sin(turn * (n - 0.5)) / sin(turn / 2) + 1) / (2 * n)


def with_zero(at_zero=1.0, of=lambda mean, n: mean):
    """Return an answer with another value for turn 0, or a slip elsewhere."""
    return lambda turn, n: of(collapsed(turn, n), n) if turn else at_zero


MEANS = [(1.0, 7), (0.01, 1000), (-0.5, 10), (3.0, 1), (0.0, 9)]


def goes_through_all(answer):
    def call():
        answer(1.0, 10**6)

    slow = min(timeit.repeat(call, number=1, repeat=3)) > 0.005  # seconds
    return slow or peak_bytes(call) > 10**6


ZERO_DIVIDES = "turn 0 divides by zero; it needs a line of its own"

check_mean_cosine = Exercise(
    number=5,
    right=with_zero(),
    cases=lambda: MEANS,
    faults={"division by zero": ZERO_DIVIDES},
    mistakes={
        "this is the sum; divide it by n": lambda turn, n: looped(
            turn, 0, n, 1
        ),
        "k runs from 0 to n - 1, not from 1 to n": lambda turn, n: looped(
            turn, 1, n + 1, n
        ),
        "there are n terms; k = n is not one of them": lambda turn, n: looped(
            turn, 0, n + 1, n + 1
        ),
        "twice too large: mind the 2 before the sine": with_zero(
            of=lambda mean, n: 2 * mean
        ),
        "the sum of differences has two ends": with_zero(
            of=lambda mean, n: mean - 1 / (2 * n)
        ),
        "this is the mean of the sines": lambda turn, n: np.sin(
            turn * np.arange(n)
        ).mean(),
        ZERO_DIVIDES: (
            collapsed,
            lambda turn, n: collapsed(turn, n, sin=np.sin),
        ),
        "for turn 0 every term is 1": (with_zero(0.0), with_zero(0.5)),
        "goes through all n terms; write one formula": Seen(
            goes_through_all,
            lambda turn, n: looped(turn, 0, n, n),
            in_one_array,
        ),
    },
    otherwise="{} is not the mean",
)
