"""What `benchmarks.changes` printed for *A model at work*, change by change.

A line has a model, its parameters, and for three seeds the loss on the test
rows and the share of exact answers.
"""

import numpy as np

from .plots import print_table

# python -m benchmarks.changes 3 400
_AFTER_400 = """
encoder-decoder, 147968, 0.030, 0.031, 0.031, 0.982, 0.979, 0.980
2017, 131072, 0.086, 0.054, 0.168, 0.907, 0.949, 0.778
rotary, 131072, 0.033, 0.040, 0.041, 0.972, 0.949, 0.960
RMSNorm, 130752, 0.116, 0.109, 0.122, 0.870, 0.866, 0.873
SwiGLU, 130560, 0.092, 0.099, 0.088, 0.887, 0.882, 0.902
no biases, 130176, 0.109, 0.084, 0.200, 0.879, 0.893, 0.705
tied, 99072, 0.119, 0.164, 0.300, 0.879, 0.795, 0.556
grouped keys, 122752, 0.163, 0.113, 0.178, 0.771, 0.865, 0.747
Llama, 89536, 0.068, 0.095, 0.113, 0.922, 0.881, 0.852
Llama - rotary, 89536, 0.230, 0.248, 0.262, 0.692, 0.636, 0.624
Llama - RMSNorm, 89856, 0.065, 0.103, 0.150, 0.930, 0.870, 0.792
Llama - SwiGLU, 89664, 0.045, 0.032, 0.034, 0.969, 0.971, 0.974
Llama - no biases, 89920, 0.044, 0.052, 0.035, 0.968, 0.953, 0.974
Llama - tied, 121536, 0.063, 0.068, 0.045, 0.926, 0.920, 0.963
Llama - grouped keys, 97728, 0.034, 0.051, 0.027, 0.965, 0.950, 0.982
"""
# python -m benchmarks.changes 3 1200 2017 rotary Llama
_AFTER_1200 = """
2017, 131072, 0.006, 0.005, 0.007, 0.991, 0.993, 0.992
rotary, 131072, 0.007, 0.006, 0.006, 0.990, 0.993, 0.991
Llama, 89536, 0.007, 0.006, 0.008, 0.990, 0.995, 0.989
"""
# The exact answers on validation rows, every 50 steps: the seeds' median.
STORED_WAYS = {
    "encoder-decoder": [0.00, 0.14, 0.72, 0.92, 0.95, 0.97, 0.98, 0.98],
    "rotary": [0.00, 0.11, 0.58, 0.83, 0.90, 0.94, 0.95, 0.95],
    "Llama": [0.00, 0.01, 0.22, 0.55, 0.71, 0.83, 0.88, 0.87],
    "2017": [0.00, 0.01, 0.14, 0.50, 0.78, 0.89, 0.93, 0.93],
    "Llama - rotary": [0.00, 0.00, 0.05, 0.24, 0.44, 0.59, 0.65, 0.65],
}
# Per cent, two digits a weight; the side road *Where it looks* computes them.
_LOOKS = (
    "0000000000000000000004009604011700010300001652000500"
    "0301060000030000018600000005011900010501001545010700"
    "0100000000010097000000000000010000000100970000000000"
)


def stored_runs(steps):
    """Return what was stored of the models after so many steps.

    Parameters
    ----------
    steps
        400 or 1200.

    Returns
    -------
    dict
        {model: (parameters, losses, exact shares)}, a number a seed.
    """
    runs = {}
    for line in {400: _AFTER_400, 1200: _AFTER_1200}[steps].split("\n")[1:-1]:
        name, size, *numbers = line.split(", ")
        numbers = [float(number) for number in numbers]
        half = len(numbers) // 2
        runs[name] = (int(size), numbers[:half], numbers[half:])
    return runs


def print_runs(runs):
    """Print the median and the range of the exact answers, and the loss.

    Parameters
    ----------
    runs
        Some of what stored_runs returns.
    """
    rows = {}
    for name, (size, losses, shares) in runs.items():
        found = (np.median(shares), min(shares), max(shares))
        found = [f"{x:.3f}" for x in (*found, np.median(losses))]
        rows[name] = [*found, size]
    print_table(["exact", "least", "most", "loss", "parameters"], rows)


def plot_ways():
    """Plot the exact answers over the steps, of each model of STORED_WAYS."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(4.1, 3.2), layout="constrained")
    for name, way in STORED_WAYS.items():
        ax.plot(range(50, 401, 50), way, label=name)
    ax.set(xlabel="step", ylabel="exact answers", ylim=(0, 1.02))
    fig.legend(loc="outside upper center", ncols=2)


def stored_looks():
    """Return where the model looks in a Portuguese date, (T, S)."""
    pairs = zip(*[iter(_LOOKS)] * 2, strict=True)
    return np.array([int(a + b) for a, b in pairs]).reshape(6, 13) / 100


def plot_looks(looks, written, read):
    """Plot where a model looks while it writes, with the larger weights.

    Parameters
    ----------
    looks
        Weights from 0 to 1, (T, S).
    written, read
        The tokens of both texts, T and S.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(4.1, 2.6), layout="constrained")
    ax.imshow(looks, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.argwhere(looks > 0.1):
        weight = looks[row, column]
        ink = "white" if weight > 0.5 else "black"
        text = f"{weight:.1f}".lstrip("0")
        ax.text(column, row, text, ha="center", va="center", color=ink, size=7)
    ax.set_xticks(range(len(read)), read, rotation=45)
    ax.set_yticks(range(len(written)), written)
    ax.set(xlabel="token of the question", ylabel="token that is written")
