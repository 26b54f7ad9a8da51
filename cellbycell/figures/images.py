"""The plots and the drawings of *Images are tokens, too*."""

import numpy as np

from .draw import Picture
from .plots import show_mask

# Pictures keep their colours on a dark page, so nothing of it is painted.
GROUND, INK = "none", "0.5"


def _image(ax, picture, title=""):
    """Show a picture (height, width, 3) without axes."""
    ax.imshow(np.clip(picture, 0, 1))
    ax.set_title(title, fontsize=9, color=INK)
    ax.set_xticks([])
    ax.set_yticks([])


def plot_cut(picture, size):
    """Plot a picture, cut into patches, and below it the row of them.

    Parameters
    ----------
    picture
        (height, width, 3), from 0 to 1.
    size
        Of a patch.
    """
    import matplotlib.pyplot as plt

    height, width, _ = picture.shape
    count = height * width // size**2
    whole = {"figsize": (3.6, 3.4), "layout": "constrained"}
    figure = plt.figure(facecolor=GROUND, **whole)
    parts = {"height_ratios": [2, 1.2], "facecolor": GROUND}
    above, below = figure.subfigures(2, 1, **parts)
    ax = above.subplots()
    _image(ax, picture)
    for place in range(size, width, size):
        ax.axvline(place - 0.5, color="white", linewidth=2)
    for place in range(size, height, size):
        ax.axhline(place - 0.5, color="white", linewidth=2)
    for number, ax in enumerate(below.subplots(2, count // 2).flat):
        row, column = divmod(number * size, width)
        row *= size
        patch = picture[row : row + size, column : column + size]
        _image(ax, patch, number)


def plot_pictures(pictures, titles):
    """Plot pictures side by side, each below its title.

    Parameters
    ----------
    pictures
        (B, height, width, 3), from 0 to 1.
    titles
        One for each.
    """
    import matplotlib.pyplot as plt

    size = {"figsize": (3.6, 1.1), "layout": "constrained"}
    _, axes = plt.subplots(1, len(pictures), facecolor=GROUND, **size)
    for ax, picture, title in zip(axes, pictures, titles, strict=True):
        _image(ax, picture, title)


def plot_looks(pictures, looks, titles):
    """Plot pictures, bright where the class token looks.

    Parameters
    ----------
    pictures
        (B, height, width, 3), from 0 to 1.
    looks
        (B, T): the weights of the patches, row by row, as many in a row as in
        a column.
    titles
        One for each.
    """
    import matplotlib.pyplot as plt

    size = {"figsize": (3.6, 1.9), "layout": "constrained"}
    _, axes = plt.subplots(2, len(pictures), facecolor=GROUND, **size)
    for (top, bottom), picture, look, title in zip(
        axes.T, pictures, looks, titles, strict=True
    ):
        _image(top, picture, title)
        side = round(len(look) ** 0.5)
        grid = np.reshape(look, (side, side))
        bottom.imshow(grid, cmap="Blues", vmin=0, vmax=0.5)
        bottom.set_xticks([])
        bottom.set_yticks([])


def plot_matches(before, after, names):
    """Plot two maps of cosines between pictures and names.

    Parameters
    ----------
    before, after
        (B, N): a row for a picture, a column for a name.
    names
        The N names; the pictures are theirs, in the same order.
    """
    import matplotlib.pyplot as plt

    size = {"figsize": (3.7, 2.4), "layout": "constrained", "sharey": True}
    _, axes = plt.subplots(1, 2, **size)
    titles = "drawn at random", "trained"
    colours = list(dict.fromkeys(name.split()[0] for name in names))
    each = len(names) // len(colours)
    groups = each * np.arange(len(colours)) + each // 2, colours
    for ax, cosines, title in zip(axes, (before, after), titles, strict=True):
        ax.imshow(cosines, cmap="PuOr", vmin=-1, vmax=1)
        ax.set_title(title, fontsize=10)
        ax.set_xticks(*groups, rotation=45, fontsize=8)
        ax.set_xlabel("names")
    axes[0].set_yticks(*groups, fontsize=8)
    axes[0].set_ylabel("pictures")


def draw_towers():
    """Draw two encoders, for pictures and for names, and where they meet.

    Returns
    -------
    Picture
        The two rows, their encoders, and a vector of each.
    """
    p = Picture(
        236,
        "Two encoders side by side. The left one reads a class token and "
        "patches, the right one reads the words red, cross and end. The class "
        "token of the one and the end of the other each become a vector, and "
        "the two vectors are compared.",
    )
    left = p.tokens(196, ["class", "□", "□", "□"], left=0, right=168)
    right = p.tokens(196, ["red", "cross", "end"], left=192, right=360)
    towers = [
        p.layer(0, 118, 168, "encoder of pictures", "query", height=40),
        p.layer(192, 118, 168, "encoder of words", "key", height=40),
    ]
    for boxes, tower in ((left, towers[0]), (right, towers[1])):
        for box in boxes:
            p.arrow(box.top, (box.top[0], tower.bottom[1] + 1))
    ends = (left[0].top[0], right[-1].top[0])
    vectors = [
        p.matrix(ends[0] - 10, 62, [0.6, 0.8], "query", texts=[["", ""]]),
        p.matrix(ends[1] - 46, 62, [0.7, 0.7], "key", texts=[["", ""]]),
    ]
    for end, box in zip(ends, vectors, strict=True):
        p.arrow((end, 117), (end, box.bottom[1] + 1))
    p.text(180, 30, "cosine: near 1 if they belong together")
    for box in vectors:
        p.arrow(box.top, (180 + (box.top[0] > 180) * 40 - 20, 38))
    return p


def plot_prefix(mask, names):
    """Plot the mask of words behind a picture.

    Parameters
    ----------
    mask
        (T, S), True = may attend.
    names
        Of its tokens.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(3.4, 3.4), layout="constrained")
    show_mask(ax, mask, names, names)
    ax.set(xlabel="key", ylabel="query")
