"""The similarity of positions: its common part, for what comes after it.

Built and explained in the chapter *The similarity of positions* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def frequencies(d_model, base=10000.0):
    """Return the speed of each pair, in radians per step, (C,).

    Raises ValueError for an odd d_model, whose last column has no partner.
    """
    if d_model % 2:
        raise ValueError(f"d_model has to be even, and is {d_model}")
    return base ** (-np.arange(0, d_model, 2) / d_model)  # (C,)


def similarity(offset, d_model, base=10000.0):
    """Return the dot product of two positions that lie offset apart.

    offset: a number or an array; the result has its shape. d_model: even.
    """
    angles = np.multiply.outer(offset, frequencies(d_model, base))
    return np.cos(angles).sum(axis=-1)
