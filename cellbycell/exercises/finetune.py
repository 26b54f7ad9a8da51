"""The exercises of *Teach an old model*."""

import numpy as np

from . import Exercise

# 1: the size of an adapter


def size(count, of_all=lambda numbers: sum(numbers)):
    """Return an answer that counts each matrix (out, in, rank) otherwise."""
    return lambda shapes, rank: of_all(
        [count(d_out, d_in, rank) for d_out, d_in in shapes]
    )


check_adapter_size = Exercise(
    number=1,
    right=size(lambda d_out, d_in, rank: rank * (d_out + d_in)),
    cases=lambda: [
        ([(32, 48), (16, 48), (48, 20)], 8),
        ([(7, 5), (11, 3), (7, 5)], 2),
    ],
    mistakes={
        "up is trained, too": size(lambda d_out, d_in, rank: rank * d_in),
        "down is trained, too": size(lambda d_out, d_in, rank: rank * d_out),
        "the base is frozen; do not count it": size(
            lambda d_out, d_in, rank: d_out * d_in + rank * (d_out + d_in)
        ),
        "these are all weights of the matrices": size(
            lambda d_out, d_in, rank: d_out * d_in
        ),
        "each matrix has an adapter": size(
            lambda d_out, d_in, rank: rank * (d_out + d_in), lambda all: all[0]
        ),
        "the change has as many numbers, but it is never stored": size(
            lambda d_out, d_in, rank: rank * d_out * d_in
        ),
        "multiply by the rank": size(lambda d_out, d_in, rank: d_out + d_in),
    },
    otherwise="rank times (out + in), for each matrix",
)


# 2: the labels of an answer


def labels(first=0, ends=True, pads=False, prompt=False, fill=-100):
    """Return an answer that asks other tokens.

    first: where the answer begins, after the mark; ends: the end is asked;
    pads, prompt: they are asked; fill: elsewhere.
    """

    def labels_of(ids, mark, end):
        at = np.arange(len(ids))
        start = int(np.argmax(ids == mark)) + 1
        stop = start + int(np.argmax(ids[start:] == end)) + 1
        asked = (at >= start + first) | prompt
        asked &= (at < stop) | pads
        if not ends:
            asked &= ids != end
        return np.where(asked, ids, fill)

    return labels_of


check_labels_of = Exercise(
    number=2,
    right=labels(),
    cases=lambda: [
        (np.array(ids), 1, 2)
        for ids in (
            [5, 9, 6, 1, 6, 9, 5, 2, 2, 2],
            [7, 1, 8, 7, 2],
            [5, 2, 1, 6, 2, 2],
        )
    ],
    mistakes={
        "the end is not asked, so the model never stops": labels(ends=False),
        "pads are asked": labels(pads=True),
        "the prompt is asked": labels(prompt=True),
        "the mark belongs to the prompt": labels(first=-1),
        "the library shifts; do not shift as well": lambda *given: np.append(
            labels()(*given)[1:], -100
        ),
        "what is not asked is -100, not 0": labels(fill=0),
        "these are all tokens": labels(prompt=True, pads=True),
        "the first token of the answer is asked, too": labels(first=1),
    },
    otherwise="the ids after the mark, up to the first end, and -100 "
    "elsewhere",
)


# 3: the mask of a packed row


def packed(text=lambda positions: np.cumsum(positions == 0)):
    """Return an answer with other numbers of the texts."""

    def mask_of(positions):
        number = text(positions)
        return (number[:, None] == number) & past(positions)

    return mask_of


def past(positions):
    return np.tri(len(positions), dtype=bool)


def all_of_its_text(positions):
    number = np.cumsum(positions == 0)
    return number[:, None] == number


check_mask_of = Exercise(
    number=3,
    right=packed(),
    cases=lambda: [
        (np.array(positions),)
        for positions in (
            [0, 1, 2, 0, 1, 0, 1, 2, 3],
            [0, 0, 1, 0],
            [0, 1, 2],
        )
    ],
    mistakes={
        "a text sees the texts before it": past,
        "a token sees the future of its text": all_of_its_text,
        "inverted; True means may attend": lambda x: ~packed()(x),
        "transposed; rows are queries": lambda x: packed()(x).T,
        "a token does not see itself": lambda x: (
            packed()(x) & ~np.eye(len(x), dtype=bool)
        ),
        "a text of one token is a text, too": packed(
            lambda x: np.cumsum(np.append(0, x[:-1]) > x)
        ),
        "equal positions are not one text": packed(lambda x: x),
        "a later position is not a later token": lambda x: x[:, None] >= x,
    },
    otherwise="{} (query, key) is wrong",
)


# 4: merge an adapter


def merged(scale=lambda alpha, rank: alpha / rank, base=1, change=np.matmul):
    """Return an answer with another scale, base or change."""
    return lambda weight, lora_a, lora_b, alpha: (
        base * weight + scale(alpha, len(lora_a)) * change(lora_b, lora_a)
    )


def matrices():
    for seed, (d_out, d_in), rank, alpha in (
        (0, (6, 6), 3, 7.5),
        (1, (5, 7), 5, 1.5),
    ):
        rng = np.random.default_rng(seed)
        shapes = (d_out, d_in), (rank, d_in), (d_out, rank)
        yield *(rng.normal(size=shape) for shape in shapes), alpha


check_folded = Exercise(
    number=4,
    right=merged(),
    cases=matrices,
    mistakes={
        "the scale is missing": merged(lambda alpha, rank: 1),
        "divide alpha by the rank": merged(lambda alpha, rank: alpha),
        "this is the scale of rsLoRA; divide by the rank": merged(
            lambda alpha, rank: alpha / rank**0.5
        ),
        "add the change": merged(lambda alpha, rank: -alpha / rank),
        "this is the change alone": merged(base=0),
        "nothing is added": merged(lambda alpha, rank: 0),
        "it is added twice": merged(lambda alpha, rank: 2 * alpha / rank),
        "this is rank / alpha; divide alpha by the rank": merged(
            lambda alpha, rank: rank / alpha
        ),
        "the change is transposed": merged(change=lambda b, a: (b @ a).T),
    },
    otherwise="weight + alpha / rank * lora_b @ lora_a",
)
