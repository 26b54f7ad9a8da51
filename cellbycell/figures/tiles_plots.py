"""The plots of *Attention in tiles*."""

import numpy as np

__all__ = ["plot_rows", "plot_tiles"]


def plot_rows(weights, size, shares):
    """Draw a model's rows of weights, cut into tiles, and a sink's share.

    Parameters
    ----------
    weights
        (T, S): of a layer.
    size
        Of a tile.
    shares
        Of the first key, for each layer.
    """
    import matplotlib.pyplot as plt

    weights = np.asarray(weights)
    _, (left, right) = plt.subplots(
        1, 2, figsize=(6.8, 3.2), layout="constrained"
    )
    left.imshow(weights**0.5, cmap="Blues", vmin=0, vmax=1)
    for edge in range(size, len(weights), size):
        left.axhline(edge - 0.5, color="0.6", linewidth=0.6)
        left.axvline(edge - 0.5, color="0.6", linewidth=0.6)
    left.set_xlabel("key")
    left.set_ylabel("query")
    right.bar(range(len(shares)), shares, color="#9ecae1")
    right.set_ylim(0, 1)
    right.set_xlabel("layer")
    right.set_ylabel("share of the first key")


def plot_tiles(mask, size):
    """Draw a mask, cut into tiles, and return what each tile allows.

    Parameters
    ----------
    mask
        (T, S): 1 where a query may attend.
    size
        Of a tile.

    Returns
    -------
    list of str
        Of each tile "all", "some" or "none".
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(4.1, 3.6), layout="constrained")
    looks = {
        "all": ("tab:blue", ""),
        "some": ("#b7d4ea", ""),
        "none": ("0.9", "//"),
    }
    kinds = {}
    for t in range(0, len(mask), size):
        for s in range(0, len(mask[0]), size):
            tile = mask[t : t + size, s : s + size]
            kind = "all" if tile.all() else "some" if tile.any() else "none"
            kinds[t, s] = kind
            colour, hatch = looks[kind]
            corner, (height, width) = (s - 0.5, t - 0.5), tile.shape
            ax.add_patch(
                plt.Rectangle(
                    corner, width, height, fc=colour, ec="white",
                    hatch=hatch, lw=2,
                )
            )  # fmt: skip
    for (t, s), allowed in np.ndenumerate(mask):
        ink = (
            "white" if kinds[t - t % size, s - s % size] == "all" else "black"
        )
        ax.text(s, t, str(allowed), ha="center", va="center", color=ink)
    ax.set_xlim(-0.5, len(mask[0]) - 0.5)
    ax.set_ylim(len(mask) - 0.5, -0.5)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    for kind, (colour, hatch) in looks.items():
        ax.bar(0, 0, color=colour, hatch=hatch, label=f"{kind} allowed")
    ax.figure.legend(loc="outside upper center", ncols=3, handlelength=1)
    return list(kinds.values())
