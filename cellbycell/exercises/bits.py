"""The exercises of *Fewer bits*."""

import numpy as np

from . import Exercise

# 1: the bytes of blocks

check_block_bytes = Exercise(
    number=1,
    right=lambda weights, bits: weights // 32 * (4 * bits + 2),
    cases=lambda: [(32, 4), (6400, 8), (4096, 5)],
    mistakes={
        "the scales are forgotten": lambda weights, bits: weights * bits // 8,
        "these are bits; a byte has eight": lambda weights, bits: (
            weights // 32 * (32 * bits + 16)
        ),
        "a scale has two bytes, not four": lambda weights, bits: (
            weights // 32 * (4 * bits + 4)
        ),
        "a scale has two bytes, not one": lambda weights, bits: (
            weights // 32 * (4 * bits + 1)
        ),
        "one scale serves a block, not all": lambda weights, bits: (
            weights * bits // 8 + 2
        ),
    },
    otherwise="a block is 32 * bits / 8 bytes, and two for its scale",
)


# 2: round in groups


def in_groups(turn=np.round, largest=0, back=True, zeros=True):
    """Return an answer that rounds otherwise.

    turn: to a level; largest: added to the largest level; back: multiplied by
    the scale again; zeros: a group of zeros is kept from a division by 0.
    """

    def rounded(w, bits, group):
        parts = w.reshape(len(w), -1, group)  # (..., C)
        top = 2 ** (bits - 1) - 1 + largest
        scale = np.abs(parts).max(-1, keepdims=True) / top
        scale = np.where(scale == 0, 1, scale) if zeros else scale
        levels = turn(parts / scale)
        return (levels * scale if back else levels).reshape(w.shape)

    return rounded


def matrices_and_groups():
    w = np.sin(np.arange(1, 65) ** 2.0).reshape(8, 8)  # (8, 8)
    with_zeros = w.copy()
    with_zeros[2, 4:] = 0
    return [(w, 4, 4), (w, 8, 2), (with_zeros, 4, 4)]


check_rounded = Exercise(
    number=2,
    right=in_groups(),
    cases=matrices_and_groups,
    mistakes={
        "a group is columns of one row, not rows of one column": (
            lambda w, bits, group: in_groups()(w.T.copy(), bits, group).T
        ),
        "each group has its own scale, not each row": (
            lambda w, bits, group: in_groups()(w, bits, w.shape[1])
        ),
        "one scale serves all; take the largest of each group": (
            lambda w, bits, group: in_groups()(
                w.reshape(1, -1), bits, w.size
            ).reshape(w.shape)
        ),
        "the largest level is 2 ** (bits - 1) - 1, not 2 ** (bits - 1)": (
            in_groups(largest=1)
        ),
        "round to the nearest level, not down": in_groups(np.floor),
        "round to the nearest level, not towards zero": in_groups(np.trunc),
        "these are whole numbers; multiply by the scale": in_groups(
            back=False
        ),
        "nothing is rounded": lambda w, bits, group: w,
        "a group of zeros has the scale 0; do not divide by it": in_groups(
            zeros=False
        ),
    },
    otherwise="divide by the scale, round, and multiply again",
)


# 3: a block of four bits


def unpacked(
    join=lambda low, high: np.concatenate([low, high]),
    level=lambda nibbles: nibbles - 8,
    scale=lambda block: np.frombuffer(block[:2].tobytes(), "<f2")[0],
):
    """Return an answer that joins the nibbles otherwise, or reads them so."""

    def read(block):
        nibbles = join(block[2:] & 15, block[2:] >> 4).astype(float)  # (32,)
        return float(scale(block)) * level(nibbles)

    return read


def block_of(weights):
    """Return 32 weights as the format has them: Q4_0, 18 bytes."""
    scale = weights[np.abs(weights).argmax()] / -8
    levels = (weights / scale + 8.5).clip(0, 15).astype(np.uint8)
    packed = levels[:16] | levels[16:] << 4
    return np.append(np.array([scale], "<f2").view(np.uint8), packed)


def blocks():
    weights = np.sin(np.arange(1, 33) ** 2.0) * 0.3
    return [(block_of(weights),), (block_of(-3 * weights[::-1]),)]


check_unpacked = Exercise(
    number=3,
    right=unpacked(),
    cases=blocks,
    mistakes={
        "low nibbles are weights 0 to 15, not every second one": unpacked(
            lambda low, high: np.stack([low, high], 1).ravel()
        ),
        "the low nibbles come first": unpacked(
            lambda low, high: np.concatenate([high, low])
        ),
        "subtract 8 from each; it is no two's complement": unpacked(
            level=lambda nibbles: np.where(nibbles > 7, nibbles - 16, nibbles)
        ),
        "a level is its nibble minus 8": unpacked(
            level=lambda nibbles: nibbles
        ),
        "a uint8 cannot be negative; widen it first": unpacked(
            level=lambda nibbles: (nibbles - 8) % 256
        ),
        "the scale is missing": unpacked(scale=lambda block: 1),
        "the scale has its low byte first": unpacked(
            scale=lambda block: np.frombuffer(block[:2].tobytes(), ">f2")[0]
        ),
        "the scale may be negative": lambda block: (
            unpacked(scale=lambda block: 1)(block)
            * abs(unpacked(level=np.ones_like)(block)[0])
        ),
    },
    otherwise="scale times nibble minus 8, all low nibbles first",
)


# 4: undo what was divided

check_undone = Exercise(
    number=4,
    right=lambda w, factors: w * factors,
    cases=lambda: [
        (
            np.sin(np.arange(1, 37) ** 2.0).reshape(6, 6),
            np.array([1.0, 2.0, 10.0, 0.5, 1.0, 4.0]),
        )
    ],
    mistakes={
        "divided once more; the weights undo it": lambda w, f: w / f,
        "the factors belong to columns, not to rows": lambda w, f: (
            w * f[:, None]
        ),
        "these rows are divided; multiply the columns": lambda w, f: (
            w / f[:, None]
        ),
        "the weights have not changed": lambda w, f: w,
        "the whole matrix has one factor now": lambda w, f: w * f.max(),
    },
    otherwise="(x / factors) @ undone.T is not x @ w.T",
)
