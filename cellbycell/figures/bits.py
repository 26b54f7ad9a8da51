"""The moving pictures of *Fewer bits*, and what SmolLM2 loses by rounding.

`python -m benchmarks.bits` has written the losses.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .moving import show_states
from .parts import svg_image, svg_texts

STROKES = {
    "weights": "stroke:#2b4c7e;stroke-width:5;stroke-linecap:round",
    "moves": "stroke:#b0b0b0",
    "levels": "stroke:#b25706",
}


FILE = Path(__file__).parents[1] / "data" / "bits.json"


@cache
def rounded_smol() -> dict[str, Any]:
    """Return the losses of SmolLM2 on a text, rounded in many ways.

    Returns
    -------
    dict
        text; exact; weights: a group ("32", "row", "tensor"), then bits;
        answers: bits; kinds: in three bits alone; activations: a group;
        cache: bits, then of the keys and of the values.
    """
    return json.loads(FILE.read_text("utf-8"))


def show_levels(weights, with_outlier):
    """Return weights above their levels, and where each is rounded to.

    Parameters
    ----------
    weights, with_outlier
        Numbers, (C,), and the same with one that is far away.

    Returns
    -------
    IPython.display.HTML
        The reader chooses the bits, and whether the outlier is there.
    """

    def state(bits, outlier):
        given = with_outlier if outlier else weights
        top = 2 ** (bits - 1) - 1
        step = np.abs(given).max() / top
        whole = np.round(given / step)
        right = 168 / np.abs(given).max()
        places = [f"{180 + right * w:.1f}" for w in given]
        levels = [
            f"{180 + right * step * q:.1f}" for q in range(-top, top + 1)
        ]
        ends = [levels[int(q) + top] for q in whole]
        pairs = zip(places, ends, strict=True)
        parts = {
            "weights": "".join(f"M{x} 22h0" for x in places),
            "moves": "".join(f"M{x} 28L{end} 76" for x, end in pairs),
            "levels": "".join(f"M{x} 78v10" for x in levels),
        }
        error = np.abs(given - step * whole).max()
        said = f"{bits} bits: {2 * top + 1} levels with steps of {step:.3f}. "
        said += f"The largest error is {error:.3f}; "
        return said + f"zeros: {(whole == 0).sum()} of {len(given)}.", parts

    def draw(parts):
        drawing = "".join(
            f"<path data-part='{name}' d='{path}' style='{STROKES[name]}'/>"
            for name, path in parts.items()
        )
        return svg_image(
            "Weights above, levels below, and a line from each to its level",
            "360 106",
            drawing + svg_texts([((176, 104), "0")]),
        )

    return show_states(
        "line",
        [
            dict(label="bits", name="bits", type="range")
            | dict(min=2, max=8, value=4),
            dict(label="outlier", name="outlier", type="checkbox")
            | dict(choices=["on"], chosen=[]),
        ],
        state,
        draw,
    )
