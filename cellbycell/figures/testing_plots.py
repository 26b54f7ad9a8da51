"""The plots of *Testing a Transformer*."""

import numpy as np

from .plots import show_mask


def plot_moves(kinds):
    """Plot which outputs of an attention move with which token.

    Parameters
    ----------
    kinds
        {title: which query may attend to which key, (T, T)}.

    Returns
    -------
    dict
        {title: whether an output, a row, moves with a token, a column}.
    """
    import matplotlib.pyplot as plt

    size, moved = {"figsize": (4.1, 2.3), "layout": "constrained"}, {}
    _, axes = plt.subplots(1, len(kinds), **size)
    for ax, (title, allowed) in zip(axes, kinds.items(), strict=True):
        count, outputs = len(allowed), []
        vectors = np.random.default_rng(0).normal(size=(count, 4))  # (T, K)
        for changed in (None, *range(count)):
            x = vectors + (np.arange(count) == changed)[:, None]  # (T, K)
            shares = np.exp(x @ x.T) * allowed  # (T, S)
            outputs.append(shares / shares.sum(axis=1, keepdims=True) @ x)
        far = abs(np.array(outputs[1:]) - outputs[0]).max(axis=2).T  # (T, S)
        moved[title] = far > 1e-9
        show_mask(ax, moved[title], range(count), range(count))
        ax.set(title=title, xlabel="token that changes")
    axes[0].set_ylabel("output")
    return moved


def plot_seen(seen, rows):
    """Plot how many bugs each check sees, and how many only it sees.

    Parameters
    ----------
    seen
        {check: the bugs that it sees}.
    rows
        {bug: a sign for each check}, "x" where it is seen.
    """
    import matplotlib.pyplot as plt

    checks = sorted(seen, key=lambda check: len(seen[check]))
    once = {bug for bug, row in rows.items() if row.count("x") == 1}
    _, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
    for label, colour, bugs in (
        ("bugs seen", "tab:blue", [seen[c] for c in checks]),
        ("seen only here", "tab:orange", [seen[c] & once for c in checks]),
    ):
        ax.barh(checks, [*map(len, bugs)], color=colour, label=label)
    ax.set_xlabel("number of bugs")
    ax.legend()
