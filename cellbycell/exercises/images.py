"""The exercises of *Images are tokens, too*."""

import numpy as np

from . import Exercise

# 1: how long a picture is


def tokens(answer=lambda rows, columns: rows * columns + 1):
    """Return an answer of the patches of each side."""
    return lambda height, width, size: answer(height // size, width // size)


check_tokens_of = Exercise(
    number=1,
    right=tokens(),
    cases=lambda: [(16, 16, 4), (224, 160, 16), (30, 45, 14), (9, 21, 5)],
    mistakes={
        "the class token is one more": tokens(
            lambda rows, columns: rows * columns
        ),
        "these are pixels; how many patches is that?": (
            lambda height, width, size: height * width + 1
        ),
        "a patch that is not full is cut off, at each side": (
            lambda height, width, size: height * width // size**2 + 1
        ),
        "a patch has a width, too": (
            lambda height, width, size: height * width // size + 1
        ),
        "only full patches count": (
            lambda height, width, size: (
                -(-height // size) * -(-width // size) + 1
            )
        ),
        "a grid has rows times columns": tokens(
            lambda rows, columns: rows + columns + 1
        ),
    },
    otherwise="the patches of each side, multiplied, and one class token",
)


# 2: back to a picture


def drawn(seed, *shape):
    """Return numbers of a shape."""
    return np.random.default_rng(seed).normal(size=shape)


def join(swap=(2, 3), inside=False, across=lambda width, size: width // size):
    """Return an answer that exchanges other axes, or counts otherwise."""

    def answer(patches, size, width):
        count, columns = len(patches), across(width, size)
        if patches.shape[1] % columns:
            return None
        cut = patches.reshape(count, -1, columns, size, size, 3)
        cut = cut.swapaxes(*swap) if swap else cut
        cut = cut.swapaxes(2, 4) if inside else cut
        return cut.reshape(count, -1, width, 3)

    return answer


def colours_first(patches, size, width):
    """Join patches whose colours stand first."""
    count, columns = len(patches), width // size
    cut = patches.reshape(count, -1, columns, 3, size, size)
    cut = cut.transpose(0, 1, 4, 2, 5, 3)
    return cut.reshape(count, -1, width, 3)


check_joined = Exercise(
    number=2,
    right=join(),
    cases=lambda: [
        (drawn(0, 2, 6, 12), 2, 6),
        (drawn(1, 1, 8, 27), 3, 12),
        (drawn(2, 3, 4, 12), 2, 8),
    ],
    mistakes={
        "a reshape alone leaves each patch in one line": join(swap=None),
        "rows and columns within a patch are exchanged": join(inside=True),
        "the numbers of a patch are pixel after pixel": colours_first,
        "these are the pictures with their lines from the bottom": (
            lambda *given: join()(*given)[:, ::-1]
        ),
        "colours come last": (
            lambda *given: join()(*given).transpose(0, 3, 1, 2)
        ),
    },
    otherwise="split all axes, exchange the middle two, and join them",
)


# 3: a mirror


def mirror(rows, columns, turn=lambda grid: grid[:, ::-1]):
    """Return the numbers of a grid that is turned, in a row."""
    return turn(np.arange(rows * columns).reshape(rows, columns)).ravel()


check_mirrored = Exercise(
    number=3,
    right=mirror,
    cases=lambda: [(2, 3), (4, 4), (3, 5), (2, 1)],
    mistakes={
        "left becomes right, not above below": (
            lambda rows, columns: mirror(rows, columns, lambda x: x[::-1])
        ),
        "that is the picture turned by half a turn": (
            lambda rows, columns: (
                mirror(rows, columns)[::-1]
                .reshape(rows, columns)[:, ::-1]
                .ravel()
                if rows == 1
                else np.arange(rows * columns)[::-1]
            )
        ),
        "a row of the grid has as many patches as there are columns": (
            lambda rows, columns: mirror(columns, rows)
        ),
        "rows and columns change places here": (
            lambda rows, columns: mirror(rows, columns, lambda x: x.T)
        ),
        "the order is as before": (
            lambda rows, columns: np.arange(rows * columns)
        ),
    },
    otherwise="number the grid, and turn each of its rows around",
)


# 4: the loss of pairs


def unit(x):
    """Return rows of length one."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def loss(axes=(0, 1), norm=unit, scale=np.exp, spread=None):
    """Return an answer with other axes, lengths or another scale."""

    def answer(images, texts, log_scale):
        logits = scale(log_scale) * norm(images) @ norm(texts).T
        parts = [
            np.log(np.exp(logits - 30).sum(axis=spread or axis)) + 30
            for axis in axes
        ]
        return np.mean([(x - np.diag(logits)).mean() for x in parts])

    return answer


check_contrast = Exercise(
    number=4,
    right=loss(),
    cases=lambda: [
        (drawn(0, 4, 6), drawn(1, 4, 6), 1.0),
        (drawn(2, 3, 5), drawn(3, 3, 5), 2.0),
    ],
    mistakes={
        "names choose pictures, too: take both directions": loss(axes=(1,)),
        "pictures choose names, too: take both directions": loss(axes=(0,)),
        "each vector has to be divided by its length": loss(norm=lambda x: x),
        "the scale is learned as its logarithm": loss(scale=lambda x: x),
        "the scale multiplies the cosines": loss(scale=lambda x: np.exp(-x)),
        "each row is a softmax of its own, not all pairs together": loss(
            spread=(0, 1)
        ),
        "both directions, and their mean": (lambda *given: 2 * loss()(*given)),
        "a loss is minus a logarithm": lambda *given: -loss()(*given),
    },
    otherwise="the mean of the cross-entropies of rows and columns",
)
