"""The moving pictures of *Positional encoding*."""

import math
from functools import cache
from itertools import groupby

import numpy as np

from .moving import show_break, show_states
from .parts import SIGNED, svg_image, svg_texts

WIDTHS = [8, 16]


def show_waves():
    """Return the table of positions with four of its waves and clocks.

    Returns
    -------
    IPython.display.HTML
        The reader chooses width, base and position.
    """
    base = {"min": 1, "max": 4, "step": 1, "value": 4}
    position = {"min": 0, "max": 31, "step": 1, "value": 5}
    width = {"type": "radio", "choices": list(map(str, WIDTHS)), "chosen": [1]}
    controls = [
        {"label": "width of the table", "name": "width"} | width,
        {"label": "base, as a power of ten", "name": "base", "type": "range"}
        | base,
        {"label": "position", "name": "position", "type": "range"} | position,
    ]
    return show_states("waves", controls, waves_state, _draw_waves)


def _turns(width, base):
    """Return the angles of the hands' steps, (C,); base: a power of ten."""
    return 10.0 ** (-base * np.arange(0, width, 2) / width)


def waves_state(width, base, position):
    """Return what the picture shows (sentence, parts)."""
    width = WIDTHS[width]
    turns = _turns(width, base)
    angles = position * turns  # (C,)
    parts = {
        "table": {"transform": f"translate(25 22) scale({320 / width:g} 5)"},
        "frame": f"M24 {21 + 5 * position}h322v7h-322z",
        "dots": "",
        "hands": "",
    }
    parts |= _shades(width, base)
    for j in range(4):
        i, y = j * (len(turns) - 1) // 3, 232 + 44 * j
        waves = y - 18 * np.sin(np.arange(63) / 2 * turns[i])
        points = [f"{25 + 4 * p} {at:.1f}" for p, at in enumerate(waves)]
        parts[f"wave-{j}"] = "M" + "L".join(points)
        parts["dots"] += f"M{points[2 * position]}h0"
        tip = 326 + 18 * math.sin(angles[i]), y - 18 * math.cos(angles[i])
        parts["hands"] += f"M326 {y}L{tip[0]:.1f} {tip[1]:.1f}"
    row = np.stack([np.sin(angles), np.cos(angles)], 1).ravel()  # (D,)
    numbers = ", ".join(f"{value:.4f}" for value in row[:6])
    said = (
        f"Width {width}, base {10**base}, position {position}: {numbers}, "
        f"...; wavelengths from 6.3 to {2 * math.pi / turns[-1]:.1f} steps."
    )
    return said.replace("-", "−"), parts


@cache
def _shades(width, base):
    """Return what each colour covers, a rectangle for equal rows."""
    paths = {f"shade-{level}": "" for level in range(21)}
    angles = np.outer(_turns(width, base), np.arange(32))  # (C, T)
    for i, angle in enumerate(angles):
        for c, values in ((2 * i, np.sin(angle)), (2 * i + 1, np.cos(angle))):
            p = 0
            for level, run in groupby(np.floor(10 * values + 10.5)):
                rows = len(list(run))
                paths[f"shade-{level:.0f}"] += f"M{c} {p}h1v{rows}h-1z"
                p += rows
    return paths


def _draw_waves(parts):
    """Return the picture of the start."""
    styles = {
        f"shade-{i}": f"fill:{colour}" for i, colour in enumerate(SIGNED)
    }
    styles |= {f"wave-{j}": "stroke:#222" for j in range(4)}
    styles |= {
        "dials": "stroke:#767676",
        "frame": "stroke:#222;stroke-width:2",
        "hands": "stroke:#222;stroke-width:2",
        "dots": "stroke:#b35806;stroke-width:8;stroke-linecap:round",
    }
    dials = "".join(
        f"M308 {y}a18 18 0 1 0 36 0a18 18 0 1 0 -36 0"
        for y in range(232, 408, 44)
    )
    drawn = {
        part: f"<path data-part='{part}' style='{style}' "
        f"d='{(parts | {'dials': dials})[part]}'/>"
        for part, style in styles.items()
    }
    cells = "".join(drawn.pop(f"shade-{level}") for level in range(21))
    words = [((25, 14), "columns"), ((10, 30), "0"), ((3, 182), "31")]
    words += [((25, 205), "sines, from the fastest"), ((304, 205), "clocks")]
    words += [((25, 396), "position 0"), ((266, 396), "31")]
    return svg_image(
        "The position table in colours; below it four waves and their clocks",
        "360 404",
        f"<g data-part='table' transform='{parts['table']['transform']}' "
        f"style='shape-rendering:crispEdges'>{cells}</g>"
        f"{''.join(drawn.values())}{svg_texts(words)}",
    )


def show_drowned(trained, rows):
    """Return what a model of names learns if loud tokens drown positions.

    Parameters
    ----------
    trained
        {"right": (model, losses, held_out), "wrong": ...}: models of PyTorch,
        whose first layer gives the tokens' vectors and whose second adds
        positions; the losses of the training, and that on held-out names.
    rows
        Names that the models have not seen, a tensor of ids (B, T).

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    written, passed = [], []
    for model, losses, held_out in trained.values():
        logits = model(rows).detach()  # (B, T, N)
        x = model[0](rows).detach()  # (B, T, D)
        position = model[1](0 * x)  # (B, T, D)
        token = model[1](x) - position  # (B, T, D)
        flipped = model(rows.flip(1)).detach().flip(1)  # (B, T, N)
        ends = {"first loss": losses[0], "loss on new names": held_out}
        written.append([[name, f"{x:.2f}"] for name, x in ends.items()])
        turns = _turns(x.shape[-1], 4)  # (C,)
        angles = np.outer(np.arange(x.shape[1]), turns)  # (T, C)
        table = np.stack([np.sin(angles), np.cos(angles)], -1)  # (T, C, 2)
        squares = position.norm() ** 2, token.norm() ** 2
        passed.append(
            {
                "logits of the right shape, no NaN": logits.shape
                == (*rows.shape, logits.shape[-1])
                and not logits.isnan().any(),
                "the positions are the known numbers": np.allclose(
                    position[0], table.reshape(len(table), -1), atol=1e-5
                ),
                "the loss falls": losses[-1] < losses[0] - 0.2,
                "the place of a letter matters": (flipped - logits).abs().max()
                > 0.1,
                "position: a tenth of the sum": squares[0]
                > 0.1 * sum(squares),
            }
        )
    return show_break(
        "drowned-mistake",
        *written,
        passed,
        "Shape, known numbers and the place pass: the positions are in the "
        "sum, but beside the tokens they are too faint to learn from. Ask "
        "which share of the sum they are.",
    )
