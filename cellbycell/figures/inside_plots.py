"""The plots of *Look inside a real model*."""

import numpy as np

__all__ = [
    "plot_copies",
    "plot_crossing",
    "plot_heads",
    "plot_ranks",
    "plot_sink",
]


def _axes(columns=1, size=(6.4, 3.0), **given):
    import matplotlib.pyplot as plt

    return plt.subplots(1, columns, figsize=size, **given)


def plot_ranks(ranks, names):
    """Draw the rank of each answer after each layer.

    Parameters
    ----------
    ranks
        (C, B): of C streams, for B prompts.
    names
        Of the prompts; the first is written at its line.
    """
    ranks = np.asarray(ranks)
    _, ax = _axes()
    ax.plot(ranks[:, 1:], color="0.75", linewidth=1)
    ax.plot(ranks[:, 0], color="tab:blue", linewidth=2)
    place = len(ranks) // 3
    ax.annotate(
        names[0], (place, ranks[place, 0]), (0, 8),
        textcoords="offset points", color="tab:blue",
    )  # fmt: skip
    ax.set_yscale("log")
    ax.set_xlabel("layers that have run")
    ax.set_ylabel("rank of the right capital")


def plot_copies(scores, weights, head):
    """Draw the score of every head, and where one of them looks.

    Parameters
    ----------
    scores
        (C, H), from 0 to 1.
    weights
        Of each layer, (B, H, T, S).
    head
        Its layer, and its number there.
    """
    fig, (left, right) = _axes(
        2, (6.8, 3.6), width_ratios=[1, 1.7], layout="constrained"
    )
    image = left.imshow(
        np.asarray(scores), cmap="Blues", vmin=0, vmax=1, aspect="auto"
    )
    left.set_xlabel("head")
    left.set_ylabel("layer")
    left.set_xticks(range(0, np.shape(scores)[1], 2))
    fig.colorbar(image, ax=left, label="copying score")
    layer, number = head
    looks = np.asarray(weights[layer])[0, number]
    # A weight is one pixel of a hundred: darker than it is, to be seen.
    right.imshow(looks**0.5, cmap="Blues", vmin=0, vmax=1)
    right.set_xlabel(f"key (layer {layer}, head {number})")
    right.set_ylabel("query")


def plot_sink(share, first, others):
    """Draw the attention on the first token, and the largest numbers.

    Parameters
    ----------
    share
        Of attention on the first token, for each layer.
    first, others
        The largest number of the stream after each layer: at the first token,
        and at all others.
    """
    _, (left, right) = _axes(2, (6.8, 2.8), layout="constrained")
    left.bar(range(len(share)), share, color="#9ecae1")
    left.set_xlabel("layer")
    left.set_ylabel("attention on the first token")
    left.set_ylim(0, 1)
    right.plot(first, color="tab:orange")
    right.plot(others, color="0.5")
    right.set_yscale("log")
    right.set_xlabel("layers that have run")
    right.set_ylabel("largest number")
    right.annotate("first token", (13, first[13] / 4), color="tab:orange")
    right.annotate("all others", (13, others[13] / 4), color="0.4")


def plot_crossing(layers, taken):
    """Draw how many answers follow a patch, layer by layer.

    Parameters
    ----------
    layers
        After which the patch is made.
    taken
        {what is written at a line: how many answers follow, for each layer};
        two of them.
    """
    _, ax = _axes(size=(6.4, 2.6))
    for colour, (name, counts) in zip(
        ("tab:blue", "tab:orange"), taken.items(), strict=True
    ):
        ax.plot(layers, counts, "o-", color=colour)
        best = max(range(len(layers)), key=counts.__getitem__)
        late = counts[-1] > counts[0]
        x = layers[-1] if late else layers[best]
        ax.annotate(
            name, (x, max(counts)), (-4 if late else 4, -14),
            textcoords="offset points", color=colour,
            ha="right" if late else "left",
        )  # fmt: skip
    ax.set_xlabel("layers that have run before the patch")
    ax.set_ylabel("say the other capital")


def plot_heads(counts):
    """Draw how many answers follow each head.

    Parameters
    ----------
    counts
        {the head: how many}.
    """
    _, ax = _axes(size=(6.4, 2.0))
    ax.bar([*counts], [*counts.values()], color="#9ecae1")
    ax.set_xticks([*counts])
    ax.set_ylim(0, 10.5)
    ax.set_xlabel("head that is exchanged")
    ax.set_ylabel("say the other capital")
