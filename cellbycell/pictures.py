"""Small pictures and their names, drawn by NumPy: *red cross*, *blue disc*.

A thing has one of five colours and one of five shapes, and is 7 pixels wide
and high. This module needs no framework.
"""

from collections.abc import Iterable

import numpy as np

COLOURS = {
    "red": (0.9, 0.2, 0.2),
    "green": (0.2, 0.7, 0.3),
    "blue": (0.2, 0.4, 0.9),
    "yellow": (0.95, 0.8, 0.2),
    "white": (1.0, 1.0, 1.0),
}
_Y, _X = np.mgrid[-3:4, -3:4]
_FAR = _X**2 + _Y**2
SHAPES = {
    "disc": _FAR < 10.5,
    "square": (abs(_X) < 3) & (abs(_Y) < 3),
    "cross": (_X == 0) | (_Y == 0),
    "ring": (_FAR < 10.5) & (_FAR > 4.5),
    "bar": abs(_Y) < 2,
}
# A thing's number is 5 times that of its colour and that of its shape.
NAMES = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
WORDS = (*COLOURS, *SHAPES, "end")
SIZE = 7  # of a thing, in pixels


def draw_pictures(
    things: Iterable, seed: int, size: tuple[int, int] = (16, 16)
) -> np.ndarray:
    """Return pictures of things side by side, each at a random place.

    Parameters
    ----------
    things
        The numbers of the things in each picture, (B, C), from left to right.
    seed
        Of their places, and of a little noise.
    size
        Height and width; C things need 7 C columns.

    Returns
    -------
    numpy.ndarray
        (B, height, width, 3), red, green and blue from 0 to 1, float32.
    """
    rng, things = np.random.default_rng(seed), np.asarray(things)
    pictures = np.zeros((len(things), *size, 3), np.float32)
    wide = size[1] // things.shape[1]
    for picture, row in zip(pictures, things, strict=True):
        for place, number in enumerate(row):
            colour, shape = NAMES[number].split()
            top = rng.integers(size[0] - SIZE + 1)
            left = place * wide + rng.integers(wide - SIZE + 1)
            part = picture[top : top + SIZE, left : left + SIZE]
            part[SHAPES[shape]] = COLOURS[colour]
    noise = 0.05 * rng.standard_normal(pictures.shape)
    return np.clip(pictures + noise, 0, 1).astype(np.float32)


def draw_pairs(count: int, seed: int) -> np.ndarray:
    """Return the numbers of two things of different shapes, (count, 2).

    Parameters
    ----------
    count
        How many pairs.
    seed
        Of the draw.

    Returns
    -------
    numpy.ndarray
        What `draw_pictures` takes.
    """
    rng, side = np.random.default_rng(seed), len(SHAPES)
    shapes = rng.integers(side, size=(count, 2))
    shapes[:, 1] = (shapes[:, 0] + rng.integers(1, side, size=count)) % side
    return side * rng.integers(len(COLOURS), size=(count, 2)) + shapes


def name_ids() -> np.ndarray:
    """Return the ids of the words of all names, each with its end, (25, 3).

    Returns
    -------
    numpy.ndarray
        Indices of WORDS; a row for each of NAMES.
    """
    rows = [[*map(WORDS.index, (*n.split(), "end"))] for n in NAMES]
    return np.array(rows)


def shuffle_patches(
    pictures: np.ndarray, size: int, order: Iterable
) -> np.ndarray:
    """Return pictures with their square patches in another order.

    Parameters
    ----------
    pictures
        (B, height, width, C).
    size
        Of a patch; it divides height and width.
    order
        Which patch comes to each place, counted row by row.

    Returns
    -------
    numpy.ndarray
        Of the same shape.
    """
    count, height, width, channels = pictures.shape
    rows, columns = height // size, width // size
    cut = pictures.reshape(count, rows, size, columns, size, channels)
    cut = cut.swapaxes(2, 3).reshape(count, -1, size, size, channels)
    cut = cut[:, [*order]]
    cut = cut.reshape(count, rows, columns, size, size, channels)
    return cut.swapaxes(2, 3).reshape(pictures.shape)
