"""The plots of *Learn from your own text*."""

import numpy as np

__all__ = ["plot_clip", "plot_pairs", "plot_practice"]


def _named(ax, x, y, name, line):
    """Write a curve's name at its end."""
    ax.annotate(
        name, (x, y), (6, 0), va="center", textcoords="offset points",
        color=line.get_color(), annotation_clip=False,
    )  # fmt: skip


def plot_practice(runs):
    """Draw the reward and the KL of each step.

    Parameters
    ----------
    runs
        {name: (steps, 2)}, the mean reward and the mean KL of each step.
    """
    import matplotlib.pyplot as plt

    size = {"figsize": (3.7, 4.2), "layout": "constrained", "sharex": True}
    _, axes = plt.subplots(2, 1, **size)
    for name, seen in runs.items():
        for i, ax in enumerate(axes):
            smooth = np.convolve(seen[:, i], np.ones(5) / 5, "valid")
            steps = np.arange(4, len(seen))
            (line,) = ax.plot(steps, smooth, linewidth=2)
            if i == 0:
                below = 0.5 - 0.15 * len(ax.lines)
                ax.text(8, below, name, color=line.get_color())
    for ax, label in zip(axes, ("reward", "KL, nats a name"), strict=True):
        ax.set_ylabel(label)
    axes[1].set_xlabel("step")
    axes[0].set_ylim(0, 1.05)
    axes[1].set_xlim(0, len(seen) - 1)


def plot_pairs(seen):
    """Draw how far both of a pair have moved.

    Parameters
    ----------
    seen
        (steps, 3): loss, and the change of the log-probability of names that
        won and of names that lost.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(3.7, 2.8), layout="constrained")
    for i, name in enumerate(("won", "lost"), start=1):
        smooth = np.convolve(seen[:, i], np.ones(5) / 5, "valid")
        steps = np.arange(4, len(seen))
        (line,) = ax.plot(steps, smooth, linewidth=2)
        _named(ax, steps[-1], smooth[-1], name, line)
    ax.axhline(0, color="grey", linewidth=0.8)
    ax.set_xlim(0, 1.2 * len(seen))
    ax.set_xlabel("step")
    ax.set_ylabel("change of log q, nats")


def plot_clip(clip=0.2):
    """Draw a token's gain by its ratio, for a text that won and one that lost.

    Parameters
    ----------
    clip
        How far the ratio may go.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(3.7, 2.6), layout="constrained")
    ratio = np.linspace(0.5, 1.5, 101)
    for a, name in ((1, "won, A = 1"), (-1, "lost, A = −1")):
        cut = ratio.clip(1 - clip, 1 + clip)
        gain = np.minimum(ratio * a, cut * a)
        (line,) = ax.plot(ratio, gain, linewidth=2)
        ax.text(0.55, 0.25 * a, name, color=line.get_color(), va="center")
    ax.axvline(1, color="grey", linewidth=0.8)
    ax.set_xlim(0.5, 1.5)
    ax.set_xlabel("ratio")
    ax.set_ylabel("gain")
