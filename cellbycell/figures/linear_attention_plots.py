"""The plot of *Attention without softmax*."""

import json
from pathlib import Path

import numpy as np

__all__ = ["RECALL", "plot_recall", "read_recall"]
# What one head recalls of many things: `python -m benchmarks.recall`.
RECALL = Path(__file__).parent.parent / "data" / "recall.json"
LINES = {
    "rotary 8": ("softmax, keys of 8", "tab:orange", (6, 0)),
    "delta 16": ("delta rule, keys of 16", "tab:blue", (6, 0)),
    "delta 8": ("delta rule, keys of 8", "tab:cyan", (6, 0)),
}


def read_recall():
    """Return the stored shares of right answers."""
    return json.loads(RECALL.read_text("utf-8"))


def plot_recall(stored, widths):
    """Draw the share of right answers by the number of things.

    Parameters
    ----------
    stored
        What `read_recall` returns.
    widths
        Where dotted lines stand.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    things = stored["things"]
    for name, (label, colour, shift) in LINES.items():
        seeds = np.array(stored["shares"][name])  # (C, T)
        ax.plot(things, seeds.mean(0), color=colour, marker="o", ms=4)
        for row in seeds:
            ax.plot(things, row, color=colour, lw=0, marker="_", ms=7)
        ax.annotate(
            label, (things[-1], seeds.mean(0)[-1]), shift,
            textcoords="offset points", color=colour, va="center",
        )  # fmt: skip
    for width in widths:
        ax.axvline(width, color="0.6", lw=1, ls=":")
    ax.set(ylim=(0, 1.04), xticks=things)
    ax.set_xlim(things[0] - 1, things[-1] + 12)
    ax.set_xlabel("things in a text")
    ax.set_ylabel("right answers")
