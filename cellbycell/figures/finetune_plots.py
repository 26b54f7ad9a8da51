"""The plot of *Teach an old model*."""

__all__ = ["plot_taught"]


def plot_taught(losses):
    """Draw the loss of each step of some trainings.

    Parameters
    ----------
    losses
        {training: of each step}, as many steps in all.
    """
    import matplotlib.pyplot as plt
    import numpy as np

    _, ax = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    for name, found in losses.items():
        # The mean of three steps, since each has two chats only.
        smooth = np.convolve(found, np.ones(3) / 3, "valid")
        (line,) = ax.plot(np.arange(2, len(found)), smooth, linewidth=2)
        ax.annotate(
            name, (len(found) - 1, smooth[-1]), (6, 0), va="center",
            textcoords="offset points", color=line.get_color(),
        )  # fmt: skip
    ax.set_xlim(0, 1.4 * len(found))
    ax.set_xticks(range(0, len(found) + 1, 10))
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("loss of an answer's token")
