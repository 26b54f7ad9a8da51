"""The exercises of *Positional encoding*."""

import math
from functools import partial

import numpy as np

from . import Exercise, Seen, agree, to_numbers

# 1: how long is a wave


def pair(column):
    """Return twice the index of a column's pair."""
    return 2 * (column // 2)


def wave(exponent=pair, round_=2 * math.pi, base=10000):
    """Return an answer with another exponent, of a column, times d."""
    return lambda c, d: round_ * base ** (exponent(c) / d)


check_wavelength = Exercise(
    number=1,
    right=wave(),
    cases=lambda: [(2, 6), (3, 6), (0, 8), (511, 512), (4, 7)],
    mistakes={
        "a round is 2 pi radians, not one": wave(round_=1),
        "a round is 2 pi radians, not pi": wave(round_=math.pi),
        "you multiplied; a slow hand takes longer": wave(lambda c: -pair(c)),
        "the exponent is doubled": wave(lambda c: 2 * c),
        "a cosine is as slow as its sine": wave(lambda c: c),
        "the exponent lacks its 2": wave(lambda c: c // 2),
        "d/2 - 1 is tensor2tensor's divisor; here it is d/2": lambda c, d: (
            wave()(c, max(d - 2, 1))
        ),
        "the base is 10000, not 1000": wave(base=1000),
        "this is the first pair's; each has its own speed": wave(lambda c: 0),
        "it is rounded; return it as it is": lambda c, d: round(wave()(c, d)),
    },
    otherwise="{} is not the length of the column's wave",
)


# 2: the other layout


def angle_of(position, column, d_model, base=10000):
    return position / base ** (pair(column) / d_model)


def vectors(positions, d_model, angle=angle_of):
    """Return positions' vectors with sine and cosine in turn, (..., D)."""
    columns = np.arange(d_model)
    positions = np.asarray(positions, float)[..., None]
    angles = angle(positions, columns, d_model)  # (..., D)
    return np.where(columns % 2, np.cos(angles), np.sin(angles))


def arranged(change, angle=angle_of):
    """Return an answer that changes the interleaved table."""
    return lambda n, d: change(vectors(np.arange(n), d, angle))


def halves(first=1, angle=angle_of):
    """Return an answer with the cosines first, or with the sines."""
    return arranged(
        lambda x: np.hstack([x[:, first::2], x[:, 1 - first :: 2]]), angle
    )


def more_cosines(seq_len, d_model):
    even = np.arange(0, d_model, 2)  # (C,)
    angles = angle_of(np.arange(seq_len)[:, None], even, d_model)  # (T, C)
    return np.hstack([np.cos(angles), np.sin(angles)[:, : d_model // 2]])


check_halves_table = Exercise(
    number=2,
    right=halves(),
    cases=lambda: [(10, 6), (10, 5), (3, 8), (1, 2), (4, 1)],
    mistakes={
        "this is the interleaved layout, unchanged": arranged(lambda x: x),
        "the cosines come first": halves(first=0),
        "these are tensor2tensor's speeds, d/2 - 1": halves(
            angle=lambda p, c, d: p / 10000 ** (pair(c) / (d - 2))
        ),
        "these are not pairs; reshape to (-1, d // 2, 2)": arranged(
            lambda x: x.reshape(len(x), 2, -1).swapaxes(1, 2).reshape(x.shape)
        ),
        "an odd width ends in a sine without a cosine": lambda n, d: halves()(
            n, d - d % 2
        ),
        "an odd width has one more sine, not one more cosine": more_cosines,
    },
    otherwise="{} of the table is wrong",
)


# 3: padding on the left


def counting(count):
    """Return two answers that count so: pads get 0, or what comes out."""
    return lambda mask: count(mask) * mask, count


def position_cases():
    for rows in ["00111 11110", "0001 1111 0000", "1", "0110 0011"]:
        mask = [[digit == "1" for digit in row] for row in rows.split()]
        yield (np.array(mask),)


check_token_positions = Exercise(
    number=3,
    right=lambda mask: (mask.cumsum(axis=1) - 1) * mask,
    cases=position_cases,
    mistakes={
        "a pad before the first token has position -1; pads get 0": (
            lambda mask: mask.cumsum(axis=1) - 1
        ),
        "pads should have position 0, those on the right, too": lambda mask: (
            np.maximum(mask.cumsum(axis=1) - 1, 0)
        ),
        "pads on the left are counted as tokens": counting(
            lambda mask: np.indices(mask.shape)[1]
        ),
        "the first token is 0, not 1": counting(
            lambda mask: mask.cumsum(axis=1)
        ),
        "count along the sequence, not the batch": counting(
            lambda mask: mask.cumsum(axis=0) - 1
        ),
        "you count from the last token": counting(
            lambda mask: mask[:, ::-1].cumsum(axis=1)[:, ::-1] - 1
        ),
    },
    otherwise="the position {} is wrong",
)


# 4: without a table


def encoding(angle):
    """Return an answer whose angle is another one."""
    return lambda positions, d_model: vectors(positions, d_model, angle)


def in_halves(positions, d_model):
    found = vectors(positions, d_model)
    return np.concatenate([found[..., 0::2], found[..., 1::2]], axis=-1)


def rounded(positions, d_model):
    """Hold positions with eight significant bits, as bfloat16 does."""
    part, power = np.frexp(positions)
    return vectors(np.ldexp(np.round(256 * part), power - 8), d_model)


def encode_cases():
    for rows, d_model in [
        ([[0, 1, 2], [4, 4, 2.5]], 6),
        ([[3, 0.5]], 8),
        ([[7], [1], [-3]], 2),
        ([[300, 301]], 6),
    ]:
        yield np.array(rows), d_model


def takes_two_for_one(encode_positions):
    found = encode_positions(np.array([[1, 2, 300, 301]]), 6)[0]  # (T, D)
    near = np.abs(found[::2] - found[1::2]).max(axis=-1) < 0.05
    return not near[0] and near[1]


check_encode_positions = Exercise(
    number=4,
    right=vectors,
    cases=encode_cases,
    mistakes={
        "sines and cosines are in halves, not in turn": in_halves,
        "you count the columns; use the positions given": lambda p, d: vectors(
            np.indices(p.shape)[1], d
        ),
        "the positions are multiplied, not divided": encoding(
            lambda p, c, d: p * 10000 ** (pair(c) / d)
        ),
        "the exponent is doubled: i is a column, or a pair": encoding(
            lambda p, c, d: p / 10000 ** (2 * c / d)
        ),
        "odd columns have a speed of their own: forgot the - 1": encoding(
            lambda p, c, d: p / 10000 ** (c / d)
        ),
        "the base is 1000 instead of 10000": encoding(
            partial(angle_of, base=1000)
        ),
        "a negative position lost its sign": encoding(
            lambda p, c, d: angle_of(abs(p), c, d)
        ),
        "one column: the index is lost, as in 1 // 2": lambda p, d: np.sin(p)[
            ..., None
        ],
        "positions are held in half precision: 300 and 301 are one": Seen(
            takes_two_for_one, rounded
        ),
    },
    otherwise="{} is wrong",
    close=lambda found, wanted: (
        agree(found, wanted)  # which is lenient with half precision
        or (
            found.shape == wanted.shape and np.allclose(found, wanted, 0, 1e-4)
        )
    ),
)


# 5: token and position in balance


def initialised(deviation=lambda N, d: (2 * d) ** -0.5, draw=None, pad=None):
    """Return an answer with another deviation, distribution or zero row.

    deviation: of vocab_size and d_model; draw: numbers, from a generator and
    a shape; pad: the row of zeros, or those of a list, by pad_id.
    """

    def balanced_table(vocab_size, d_model, pad_id, seed):
        rng, shape = np.random.default_rng(seed), (vocab_size, d_model)
        rows = draw(rng, shape) if draw else rng.standard_normal(shape)
        rows = deviation(*shape) * rows  # (N, D)
        rows[pad(pad_id) if pad else pad_id] = 0
        return rows

    return balanced_table


TABLES = [(300, 64, 7, 0), (200, 256, 0, 0), (400, 33, 399, 0)]


def balance(case):
    """Return a case: a table's faults, and the log of its deviation / s."""

    def ask(balanced_table):
        N, d, pad_id, _ = case
        table = to_numbers(balanced_table(*case), (N, d))
        tokens = np.delete(table, pad_id, axis=0)
        faults = [fault(table, pad_id) for fault in FAULTS.values()]
        return np.array([*faults, np.log(tokens.std() * math.sqrt(2 * d))])

    return ask


def in_some(fault):
    """Return what tells whether one of the tables has a fault."""
    return lambda answer: any(fault(answer(*t), t[2]) for t in TABLES)


def spread(table, pad_id):
    """Return the mean and each column's deviation, as shares of all's."""
    tokens = np.delete(table, pad_id, axis=0)
    return tokens.mean() / tokens.std(), tokens.std(axis=0) / tokens.std()


# What may be wrong with a table, whatever its deviation.
FAULTS = {
    "zero": lambda table, pad_id: (
        not np.delete(table, pad_id, axis=0).any(axis=1).all()
    ),
    "pad": lambda table, pad_id: table[pad_id].any(),
    "same": lambda table, pad_id: len(np.unique(table, axis=0)) < len(table),
    "mean": lambda *given: abs(spread(*given)[0]) > 0.1,
    "uneven": lambda *given: abs(spread(*given)[1] - 1).max() > 0.3,
}


def seeds(*both):
    """Return what tells whether two seeds give equal tables."""
    return lambda answer: np.array_equal(
        *(answer(*TABLES[0][:3], seed) for seed in both)
    )


check_balanced_table = Exercise(
    number=5,
    right=initialised(),
    cases=lambda: map(balance, TABLES),
    mistakes={
        "the deviation is 1, PyTorch's default": initialised(lambda N, d: 1),
        "the deviation is 1 / sqrt(d), tensor2tensor's": initialised(
            lambda N, d: d**-0.5
        ),
        "the deviation is 0.029, Keras' default": initialised(
            lambda N, d: 0.05 / math.sqrt(3)
        ),
        "the deviation is Xavier's": initialised(
            lambda N, d: math.sqrt(2 / (N + d))
        ),
        "the deviation is 0.707: balanced only without the factor": (
            initialised(lambda N, d: 1 / math.sqrt(2))
        ),
        "the deviation is 1 / (2 d), which is the variance": initialised(
            lambda N, d: 1 / (2 * d)
        ),
        "uniform from -s to s deviates by less than s": initialised(
            draw=lambda rng, shape: rng.uniform(-1, 1, shape)
        ),
        "a row is zero that is not the row of pad_id": Seen(
            in_some(FAULTS["zero"]),
            initialised(pad=lambda pad_id: 0),
            initialised(pad=lambda pad_id: -1),
            initialised(pad=lambda pad_id: [0, pad_id]),
        ),
        "the padding row was initialised; zero it last": Seen(
            in_some(FAULTS["pad"]),
            initialised(pad=lambda pad_id: []),
            initialised(lambda N, d: 1, pad=lambda pad_id: []),
        ),
        "some tokens have the same row; initialise each one": Seen(
            in_some(FAULTS["same"]),
            initialised(
                draw=lambda rng, shape: (
                    np.ones(shape) * rng.standard_normal(shape[1])
                )
            ),
        ),
        "the mean of your numbers is not 0": Seen(
            in_some(FAULTS["mean"]),
            initialised(draw=lambda rng, shape: rng.random(shape)),
        ),
        "some columns deviate more than others": Seen(
            in_some(FAULTS["uneven"]),
            initialised(
                draw=lambda rng, shape: (
                    math.sqrt(2)
                    * rng.standard_normal(shape)
                    * (np.arange(shape[1]) % 2)
                )
            ),
        ),
        "one seed gives two tables": Seen(
            lambda answer: not seeds(0, 0)(answer),
            lambda N, d, pad_id, seed: initialised()(N, d, pad_id, None),
        ),
        "seed is not used": Seen(
            seeds(0, 1),
            lambda N, d, pad_id, seed: initialised()(N, d, pad_id, 0),
        ),
    },
    otherwise="the deviation is not 1 / sqrt(2 d)",
    close=lambda found, wanted: (
        found.shape == wanted.shape and np.allclose(found, wanted, 0, 0.03)
    ),
)


# 6: which base was it


def found_base(table):
    """Return the base, from the second pair of row 1."""
    angle = math.atan2(table[1][2], table[1][3])
    return angle ** (-table.shape[1] / 2)


def base_cases():
    for base, d in [(1e4, 6), (1e3, 6), (10.0, 4), (500.0, 8), (2.5, 64)]:
        yield (vectors(np.arange(4), d, partial(angle_of, base=base)),)


def power(exponent):
    """Return an answer that is the base to a power, by the width."""
    return lambda table: found_base(table) ** exponent(table.shape[1])


check_find_base = Exercise(
    number=6,
    right=found_base,
    cases=base_cases,
    mistakes={
        "the first hand has the speed 1 with every base": power(lambda d: 0),
        "its root: column 2 has the exponent 2/d, not 4/d": power(
            lambda d: 0.5
        ),
        "its square: column 2 has the exponent 2/d, not 1/d": power(
            lambda d: 2
        ),
        "its reciprocal: hands are slower, not faster": power(lambda d: -1),
        "this is the second denominator": power(lambda d: 2 / d),
        "this is the last denominator": power(lambda d: 1 - 2 / d),
        "its logarithm": lambda table: math.log(found_base(table)),
        "you return the usual base without looking": lambda table: 1e4,
    },
    otherwise="{} is not the base",
)
