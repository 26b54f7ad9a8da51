"""The plots of *Fewer bits*: what SmolLM2 loses by rounding."""

import numpy as np

__all__ = ["plot_activations", "plot_bits", "plot_cache"]

GUESS = np.log(49152)  # the loss of who guesses blindly
LINES = {
    "32": ("for 32 columns", "tab:blue"),
    "row": ("for a row", "tab:orange"),
    "tensor": ("for a matrix", "tab:red"),
}


def _axes(label, size=(6.4, 3.2)):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.set_ylabel(label)
    return ax


def _bits(ax, all_bits):
    ax.set_xlabel("bits")
    ax.set_xticks(all_bits)
    ax.invert_xaxis()


def plot_bits(measured):
    """Draw the loss with fewer bits, a line for each kind of group.

    Parameters
    ----------
    measured
        What `cellbycell.figures.bits.rounded_smol` returns.
    """
    ax = _axes("loss, nats a token")
    places = {"32": (2.88, 3.5), "row": (4.35, 4.9), "tensor": (5.45, 7)}
    for group, (name, color) in LINES.items():
        losses = {int(b): y for b, y in measured["weights"][group].items()}
        shown = {}
        for bits, loss in losses.items():
            shown[bits] = loss
            if loss > GUESS:
                break  # what is worse than a guess has no order
        ax.plot([*shown], [*shown.values()], ".-", color=color)
        side = "left" if group == "32" else "right"
        ax.text(*places[group], name, color=color, ha=side)
    ax.axhline(GUESS, color="0.6", linewidth=1)
    ax.text(8, GUESS - 0.15, "a blind guess", color="0.4", va="top")
    ax.axhline(measured["exact"], color="0.6", linewidth=1, linestyle=":")
    ax.set_ylim(2.3, 12)
    _bits(ax, [8, 6, 5, 4, 3, 2])
    ax.set_xlim(8.2, 1.5)


def plot_cache(measured):
    """Draw what a cache of fewer bits adds, for its keys and its values.

    Parameters
    ----------
    measured
        What `cellbycell.figures.bits.rounded_smol` returns.
    """
    ax = _axes("added, nats a token", (6.4, 2.6))
    cache, exact = measured["cache"], measured["second half"]
    all_bits = [int(bits) for bits in cache]
    for i, (name, color) in enumerate(
        [("keys", "tab:orange"), ("values", "tab:green")]
    ):
        added = [losses[i] - exact for losses in cache.values()]
        ax.plot(all_bits, added, ".-", color=color)
        ax.annotate(
            name, (all_bits[-1], added[-1]), (6, 0),
            textcoords="offset points", color=color, va="center",
        )  # fmt: skip
    _bits(ax, all_bits)
    ax.set_xlim(8.2, 1.2)


def plot_activations(measured):
    """Draw what int8 activations add, by who shares a scale.

    Parameters
    ----------
    measured
        What `cellbycell.figures.bits.rounded_smol` returns.
    """
    ax = _axes("", (6.4, 1.8))
    names = {
        "32": "a scale for 32 columns",
        "row": "a scale for a token",
        "tensor": "one scale for all",
    }
    added = [
        max(measured["activations"][k] - measured["exact"], 0) for k in names
    ]
    ax.barh([*names.values()], added, color=["0.75", "0.75", "tab:red"])
    for y, more in enumerate(added):
        ax.text(more + 0.01, y, f"{more:.2f}", va="center")
    ax.set_xlim(0, 0.85)
    ax.set_xlabel("added to the loss, nats a token")
