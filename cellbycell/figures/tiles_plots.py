"""The plots of *Attention in tiles*."""

import numpy as np

__all__ = ["plot_rows"]


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
