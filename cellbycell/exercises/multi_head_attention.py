"""The exercises of *Multi-head attention*."""

import math

import numpy as np

from . import Exercise, Seen, agree, softmax
from .attention_answers import unstable

# 1: how many numbers

check_parameter_count = Exercise(
    number=1,
    right=lambda d, heads, bias: 4 * d * (d + bias),
    cases=lambda: [
        (32, 8, True),
        (32, 8, False),
        (64, 4, True),
        (12, 2, False),
    ],
    mistakes={
        "without biases there are fewer": lambda d, heads, bias: (
            4 * d * (d + 1)
        ),
        "the biases are missing": lambda d, heads, bias: 4 * d * d,
        "the output projection is missing": lambda d, heads, bias: (
            3 * d * (d + bias)
        ),
        "a head has the width d / h; yours has d": lambda d, heads, bias: (
            4 * heads * d * d + (3 * heads + 1) * d * bias
        ),
        "a bias has one number for each column": lambda d, heads, bias: (
            4 * d * d + 4 * bias
        ),
        "this is one head; there are h of them": lambda d, heads, bias: (
            4 * d * (d + bias) // heads
        ),
        "this is one projection; there are more": lambda d, heads, bias: (
            d * (d + bias)
        ),
    },
    otherwise="{} is not the number of parameters",
)


def rearranged(array, sizes, axes, shape):
    """Return an array in sizes, its axes in another order, then joined."""
    return array.reshape(sizes).transpose(axes).reshape(shape)


# 2: merge without moving axes

MOVES = """T mT einsum flatten merge_heads moveaxis permute ravel reshape
resize rollaxis swapaxes transpose view""".split()


def side_by_side(heads):
    return np.concatenate([heads[:, i] for i in range(heads.shape[1])], -1)


def merged(axes):
    """Return an answer that puts the axes (B, H, T, K) in another order."""

    def merge_by_loop(heads):
        B, H, T, K = heads.shape
        return rearranged(heads, heads.shape, axes, (B, T, H * K))

    return merge_by_loop


def names_in(code):
    """Return the names that a function's code uses, and any inside it."""
    inner = [part for part in code.co_consts if hasattr(part, "co_names")]
    return set(code.co_names).union(*map(names_in, inner))


def moves_axes(answer):
    code = getattr(answer.function, "__code__", None)  # or it is no function
    return code and names_in(code).intersection(MOVES)


check_merge_by_loop = Exercise(
    number=2,
    right=side_by_side,
    cases=lambda: [
        (np.arange(1.0, math.prod(sizes) + 1).reshape(sizes),)
        for sizes in [(2, 3, 5, 4), (1, 4, 3, 2), (3, 1, 2, 5)]
    ],
    mistakes={
        "only brackets are set; token 0 holds head 0 alone": merged(
            (0, 1, 2, 3)
        ),
        "the heads' columns alternate": merged((0, 2, 3, 1)),
        "the heads are added up; put them side by side": lambda heads: (
            heads.sum(axis=1)
        ),
        "the heads are joined along the tokens": lambda heads: np.concatenate(
            [*heads.swapaxes(0, 1)], axis=1
        ),
        "this is one head alone": lambda heads: heads[:, 0],
        "the last head comes first": lambda heads: side_by_side(
            heads[:, ::-1]
        ),
        "right, but by moving axes; slice or join instead": Seen(
            moves_axes,
            lambda heads: np.concatenate([*heads.swapaxes(0, 1)], axis=-1),
        ),
    },
    otherwise="not the heads side by side: {}",
)


# 3: without a framework


def parameters(width, seed):
    """Return matrices (4, D, D), (in, out), and biases (4, D)."""
    rng = np.random.default_rng(seed)
    matrices = rng.standard_normal((4, width, width)) / math.sqrt(width)
    return np.float32(matrices), np.float32(rng.standard_normal((4, width)))


def exchanged(x, moves):
    """Exchange the two axes in the middle, or set brackets alone."""
    right = x.swapaxes(1, 2)
    return right if moves else x.reshape(right.shape)


def multi_head(
    split=True,
    merge=True,
    heads=None,
    width=None,
    mix=softmax,
    last=True,
    given=lambda *given: given,
):
    """Return an answer with one thing changed.

    split, merge: whether they move axes; heads: their number, whatever it
    should be; width: what the scores are divided by the root of, of d_model;
    mix: the softmax; last: whether there is an output projection; given: what
    is made of queries, keys, values, matrices and biases.
    """

    def numpy_multi_head(query, key, value, matrices, biases, num_heads):
        *inputs, m, b = given(query, key, value, matrices, biases)
        parts = [
            exchanged(
                (x @ m[i] + b[i]).reshape(
                    *x.shape[:2], heads or num_heads, -1
                ),
                split,
            )
            for i, x in enumerate(inputs)
        ]
        query, key, value = parts  # (B, H, T, K), (B, H, S, K) twice
        by = width(len(b[0])) if width else query.shape[-1]
        weights = mix(query @ key.swapaxes(-2, -1) / math.sqrt(by))
        output = exchanged(weights @ value, merge).reshape(inputs[0].shape)
        return output @ m[3] + b[3] if last else output

    return numpy_multi_head


def taking(*which):
    """Return what takes some matrices and biases in place of the four."""
    which = list(which)
    return lambda q, k, v, m, b: (q, k, v, m[which], b[which])


def multi_head_cases():
    """Return 3 heads, 2, 2 of another width, and large scores."""
    for heads, width, (B, T, S), size in [
        (3, 12, (2, 5, 6), 1),
        (2, 12, (2, 5, 6), 1),
        (2, 6, (1, 1, 3), 1),
        (3, 12, (2, 5, 6), 50),
    ]:
        rng = np.random.default_rng(3)
        inputs = [size * rng.standard_normal((B, n, width)) for n in (T, S, S)]
        yield *inputs, *parameters(width, 3), heads


check_numpy_multi_head = Exercise(
    number=3,
    right=multi_head(),
    cases=multi_head_cases,
    mistakes={
        "the split lacks its transpose": multi_head(split=False),
        "the merge lacks its transpose": multi_head(merge=False),
        "split and merge both lack their transpose": multi_head(
            split=False, merge=False
        ),
        "divide by sqrt(d_k), not by sqrt(d)": multi_head(width=lambda d: d),
        "the scores are not divided by sqrt(d_k)": multi_head(
            width=lambda d: 1
        ),
        "the scores are always divided by 2": multi_head(width=lambda d: 4),
        "the softmax runs over the queries": multi_head(
            mix=lambda scores: softmax(scores, -2)
        ),
        "the output projection is missing": multi_head(last=False),
        "one head has all columns; split them": multi_head(heads=1),
        "num_heads is always 3": multi_head(heads=3),
        "the biases are missing": multi_head(
            given=lambda q, k, v, m, b: (q, k, v, m, 0 * b)
        ),
        "keys and values have changed places": multi_head(
            given=lambda q, k, v, m, b: (q, v, k, m, b)
        ),
        "the matrices are (in, out)": multi_head(
            given=lambda q, k, v, m, b: (q, k, v, m.swapaxes(1, 2), b)
        ),
        "the keys' matrix makes the values": multi_head(
            given=taking(0, 1, 1, 3)
        ),
        "the queries' matrix makes the keys": multi_head(
            given=taking(0, 0, 2, 3)
        ),
        "large scores overflow; take off each row's maximum": multi_head(
            mix=unstable
        ),
    },
    otherwise="not multi-head attention: {}",
)


# 4: pack for another reader


def repacked(sizes, axes):
    """Return an answer: rows, divided into sizes, with axes in this order."""

    def repack(in_proj, num_heads):
        divided = *sizes(num_heads), in_proj.shape[1]
        return rearranged(in_proj, divided, (*axes, 3), in_proj.shape)

    return repack


def by_three(heads):
    return 3, heads, -1


def of_columns(rows, num_heads):
    sizes = len(rows), num_heads, -1, 1
    return rearranged(rows, sizes, (0, 2, 1, 3), rows.shape)


check_repack = Exercise(
    number=4,
    right=repacked(by_three, (1, 0, 2)),
    cases=lambda: [
        (np.arange(3.0 * width**2).reshape(3 * width, width), heads)
        for heads, width in [(4, 8), (2, 8), (3, 12), (1, 4)]
    ],
    mistakes={
        "nothing moved; reshape sets brackets": repacked(by_three, (0, 1, 2)),
        "this is the way back, to (3, H, K)": repacked(
            lambda heads: (heads, 3, -1), (1, 0, 2)
        ),
        "these rows are (H, K, 3)": repacked(by_three, (1, 2, 0)),
        "these rows are (K, 3, H)": repacked(by_three, (2, 0, 1)),
        "these rows are (K, H, 3)": repacked(by_three, (2, 1, 0)),
        "these rows are (3, K, H)": repacked(by_three, (0, 2, 1)),
        "columns moved; they are the input's": of_columns,
        "num_heads is always 4": repacked(lambda heads: (3, 4, -1), (1, 0, 2)),
    },
    otherwise="not the rows of (H, 3, K): {}",
)


# 5: two biases are enough


def folded(last, kept=(1, 0, 0)):
    """Return an answer: last, of matrices and biases, is the output's bias.

    kept: whether the other three biases stay.
    """

    def fold_biases(m, b):
        return np.vstack([b[:3] * np.float32(kept)[:, None], last(m, b)])

    return fold_biases


def through(m, b):
    return b[3] + b[2] @ m[3]


def differs(rows, right):
    """Return what tells an answer whose rows differ from the right ones."""

    def by(answer):
        m, b = parameters(12, 4)
        found = answer(m, b)
        return found.shape == b.shape and not agree(found[rows], right(b))

    return by


check_fold_biases = Exercise(
    number=5,
    right=folded(through),
    cases=lambda: [parameters(width, 4) for width in (12, 5)],
    mistakes={
        "keys or values still have a bias; rows 1 and 2": Seen(
            differs(slice(1, 3), lambda b: 0 * b[1:3]),
            folded(through, (1, 1, 0)),
            folded(through, (1, 0, 1)),
            folded(lambda m, b: b[3], (1, 1, 1)),
        ),
        "the queries' bias matters and has to stay": Seen(
            differs(0, lambda b: b[0]), folded(through, (0, 0, 0))
        ),
        "the values' bias is dropped, but it reaches the output": folded(
            lambda m, b: b[3]
        ),
        "the values' bias still has to pass a matrix": folded(
            lambda m, b: b[3] + b[2]
        ),
        "a row vector stands to the left of its matrix": folded(
            lambda m, b: b[3] + m[3] @ b[2]
        ),
        "the keys' bias goes nowhere": folded(
            lambda m, b: through(m, b) + b[1] @ m[3]
        ),
        "the output's own bias has to stay": folded(lambda m, b: b[2] @ m[3]),
    },
    otherwise="the output changes: {}",
)
