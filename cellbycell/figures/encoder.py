"""The moving pictures of *The encoder*."""

from itertools import product

import numpy as np

from .moving import show_mistake, show_states
from .parts import SIGNED, table_cell, table_head


def way_through(layers, x, mask, norm_first, residual, normed):
    """Return each step of a sequence of vectors through some layers.

    Parameters
    ----------
    layers
        Encoder layers as the chapter has them.
    x
        (1, T, D), what the first layer gets.
    mask
        True = may attend, for each layer's attention.
    norm_first
        Whether the norm stands before the sub-layer, or after the sum.
    residual, normed
        Whether there is a residual connection, and a norm.

    Returns
    -------
    list
        Of each layer, pairs of a step's name and its vectors, (T, D); the
        last are what the next layer gets.
    """
    way = []
    for layer in layers:
        steps = [("the token", x)]
        for name, sublayer, norm in [
            (
                "attention",
                lambda x, layer=layer: layer.attention(x, x, x, mask),
                layer.around_attention.norm,
            ),
            (
                "feed-forward",
                layer.feed_forward,
                layer.around_feed_forward.norm,
            ),
        ]:
            before, order = x, [name, "add", "norm"]
            for step in ["norm", name, "add"] if norm_first else order:
                if step == "norm":
                    x = norm(x) if normed else x
                elif step == "add":
                    x = before + x if residual else x
                else:
                    x = sublayer(x)
                steps.append((step, x))
        way.append([(step, y[0].detach().numpy()) for step, y in steps])
    return way


def lowest_similarity(vectors):
    """Return the lowest cosine similarity of two of some vectors (T, D)."""
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (unit @ unit.T).min()


def show_way(layers, x, mask):
    """Return the way of the second token through some layers.

    Parameters
    ----------
    layers, x, mask
        As in `way_through`; of x, no token is a pad.

    Returns
    -------
    IPython.display.HTML
        The first six numbers at each step, and switches for the norm, the
        residual connection and the order.
    """
    ways = {
        kind: way_through(layers, x, mask, *kind)
        for kind in product([False, True], repeat=3)
    }

    def state(parts, order, layer):
        steps = ways[order == 1, 0 in parts, 1 in parts][layer - 1]
        shown = {}
        for r, (name, vectors) in enumerate(steps):
            shown[f"step-{r}"] = name
            for c, number in enumerate(vectors[1, :6]):
                share = round(min(1, max(0, (float(number) + 4) / 8)), 2)
                text = f"{number:.1f}".replace("-0.0", "0.0")
                shown[f"way-{r}-{c}"] = text.replace("-", "−"), share
            size = np.sqrt((vectors[1] ** 2).mean())
            shown[f"size-{r}"] = f"{size:.2f}"
        said = (
            f"Layer {layer}: RMS {shown['size-0']} goes in and "
            f"{shown['size-6']} comes out. Lowest similarity of the tokens: "
            f"{lowest_similarity(steps[-1][1]):.2f}."
        )
        return said, shown

    parts = {"type": "checkbox", "choices": ["residual", "norm"]}
    order = {"type": "radio", "choices": ["post-norm", "pre-norm"]}
    layer = {"type": "range", "min": 1, "max": len(layers), "value": 1}
    layer |= {"play": True}
    return show_states(
        "way",
        [
            {"label": "parts of the layer", "name": "parts"}
            | parts
            | {"chosen": [0, 1]},
            {"label": "where the norm stands", "name": "order"}
            | order
            | {"chosen": [1]},
            {"label": "layer", "name": "layer"} | layer,
        ],
        state,
        _draw_way,
        shades=SIGNED,
    )


def _draw_way(parts):
    """Return a table of steps, each with its numbers and its RMS."""
    rows = '<tr><th class="head" style="width:24%">step'
    rows += "<th colspan=6>first six numbers<th>RMS"
    for r in range(7):
        rows += "<tr>" + table_head(f"step-{r}", parts[f"step-{r}"])
        for c in range(6):
            part = f"way-{r}-{c}"
            rows += table_cell(part, *parts[part], SIGNED)
        rows += table_cell(f"size-{r}", parts[f"size-{r}"])
    return f"<table>{rows}</table>"


def show_over_positions(runs, losses, alone, rows):
    """Return the bet on a norm over the positions.

    Parameters
    ----------
    runs
        Of the correct model and of the other: a function from ids (B, T) to
        logits (B, T, N), both NumPy arrays.
    losses, alone
        Of each, the loss on held-out names in one pass, and with each
        beginning read alone.
    rows
        The ids of some held-out names, (B, T).

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    changed = rows.copy()
    changed[:, -1] = 1
    passed = []
    for run, in_one_pass, by_letter in zip(runs, losses, alone, strict=True):
        found = run(rows)  # (B, T, N)
        passed.append(
            {
                "the logits' shape, and no NaN": found.shape[:2] == rows.shape
                and not np.isnan(found).any(),
                "the loss of new names is below 2.4": in_one_pass < 2.4,
                "a name, alone and in a batch": np.allclose(
                    run(rows[:1])[0], found[0], atol=1e-4
                ),
                "another last letter, the first logits": np.allclose(
                    run(changed)[:, 0], found[:, 0], atol=1e-4
                ),
                "each beginning read alone, the same loss": abs(
                    by_letter - in_one_pass
                )
                < 1e-3,
            }
        )
    return show_mistake(
        "encoder-mistake",
        *([[f"loss of new names: {loss:.1f}"]] for loss in losses),
        passed,
        "Mean and variance of a whole name tell each position of the letters "
        "to come: the future leaks past the mask, which acts in attention "
        "alone.",
    )
