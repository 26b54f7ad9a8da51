"""The moving pictures of *Multi-head attention*."""

import numpy as np

from .moving import show_mistake, show_states
from .parts import painted, table_cell

HALVES = ["#2070b4", "#e08214"]  # of a token's numbers
X = np.arange(24).reshape(3, 8)  # (T, D)


def show_steps():
    """Return the steps of a split among two heads and a merge.

    Returns
    -------
    IPython.display.HTML
        The numbers of three tokens, coloured by the half of their token; a
        slider for the step, and boxes for the two transposes.
    """
    step = {"type": "range", "min": 0, "max": 4, "value": 2, "play": True}
    moves = {"type": "checkbox", "chosen": [0, 1]}
    choices = ["when splitting", "when merging"]
    return show_states(
        "heads",
        [
            {"label": "step", "name": "step"} | step,
            {"label": "transpose", "name": "moves", "choices": choices}
            | moves,
        ],
        step_state,
        _draw_steps,
        shades=HALVES,
    )


def split_and_merge(splitting, merging):
    """Return x (T, D) and what four steps make of it: two heads, and back.

    splitting, merging: whether there is a transpose, as there should be.
    """
    if splitting:
        divided = X.reshape(3, 2, 4)  # (T, H, K)
        heads = divided.swapaxes(0, 1)  # (H, T, K)
    else:
        divided = heads = X.reshape(2, 3, 4)  # (H, T, K)
    joined = heads.swapaxes(0, 1) if merging else heads  # (..., K)
    return X, divided, heads, joined, joined.reshape(3, 8)


def step_state(step, moves):
    """Return what the picture shows at a step (sentence, parts).

    step: from 0 to 4; moves: 0 if splitting has its transpose, 1 if merging.
    """
    array = split_and_merge(0 in moves, 1 in moves)[step]
    by_head = len(array) == 2
    grid = np.stack([*array], axis=1) if by_head else array
    sides = ["columns 0–3", "columns 4–7"]
    if array.ndim == 3:
        sides = ["head 0", "head 1"]
    parts = {f"side-{i}": side for i, side in enumerate(sides)}
    for n, number in enumerate(grid.ravel().tolist()):
        parts[f"number-{n}"] = str(number), 0.05 * (number % 8 > 3)
    parts["order"] = "In the array: " + " ".join(map(str, array.ravel()))
    titles = ["x", "reshaped", "transposed", "transposed back", "reshaped"]
    titles[2] = titles[2] if 0 in moves else "not transposed"
    titles[3] = titles[3] if 1 in moves else "not transposed"
    holds = "; ".join(
        f"{'head' if by_head else 'row'} {i} holds numbers of "
        + ", ".join(f"token {token}" for token in np.unique(part // 8))
        for i, part in enumerate(array)
    )
    said = f"Step {step}, {titles[step]}, {array.shape}: {holds}."
    if step == 4:
        said += " It is x again." if (array == X).all() else " It is not x."
    return said, parts


def _draw_steps(parts):
    """Return eight equal columns, and a legend."""
    table = '<tr><td style="width:16%">' + "".join(
        f'<th data-part="side-{i}" colspan="4">{parts[f"side-{i}"]}</th>'
        for i in range(2)
    )
    for n in range(24):
        if n % 8 == 0:
            table += f'<tr><th class="head">row {n // 8}'
        table += table_cell(f"number-{n}", *parts[f"number-{n}"], HALVES)
    legend = "".join(
        f'<span style="{painted(colour)};padding:2px 6px;margin-right:6px">'
        f"{half} half of a token</span>"
        for half, colour in zip(["first", "second"], HALVES, strict=True)
    )
    return (
        f'<table>{table}</table><p class="bar">{legend}</p>'
        f'<p data-part="order">{parts["order"]}</p>'
    )


def show_by_view(correct, by_view, numbered, x, mask):
    """Return the bet on a split and a merge that set brackets alone.

    Parameters
    ----------
    correct, by_view
        Of either kind: a layer, of queries, keys, values and a mask; its
        split, of numbers and how many heads; its merge; the loss of a model of
        names on held-out names; the share of pairs that a model gets right.
    numbered
        Numbers from zero on, (B, T, D), a tensor of PyTorch.
    x
        Vectors, (1, T, D), a tensor of PyTorch.
    mask
        (T, T), True = may attend, and none later.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    turned = x.clone()
    turned[:, -1] *= -1  # the last token changes its sign
    middle, passed = [], []
    for layer, split, merge, loss, share in (correct, by_view):
        before, after = (
            layer(given, given, given, mask).detach().numpy()
            for given in (x, turned)
        )
        heads = split(numbered, 3)  # (B, H, T, K)
        middle.append(heads[0, 1].tolist())
        passed.append(
            {
                "right shape, no NaN": before.shape == x.shape
                and not np.isnan(before).any(),
                "split, then merge, gives back the input": np.array_equal(
                    merge(heads), numbered
                ),
                "names: held-out loss below 2.45": loss < 2.45,
                "pairs: nine of ten are right": share > 0.9,
                "causal mask: no later token leaks": np.allclose(
                    before[:, :-1], after[:, :-1], rtol=1e-4, atol=1e-5
                ),
            }
        )
    return show_mistake(
        "heads-mistake",
        *middle,
        passed,
        "This merge undoes this split, right or wrong. Names hardly suffer, "
        "as the last few letters tell most, and nothing leaks, as each head "
        "sees its own part of the sequence alone.",
    )
