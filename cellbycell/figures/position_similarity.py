"""The moving pictures of *The similarity of positions*."""

import math
from functools import cache

import numpy as np

from .moving import show_mistake, show_states
from .parts import svg_image, svg_texts

WIDTHS = [6, 16, 64]
STYLES = {
    "axes": "stroke:#767676",
    "dials": "stroke:#767676",
    "curve": "stroke:#2b4c7e",
    "heights": "stroke:#e08214;stroke-width:7",
    "hands": "stroke:#222;stroke-width:2",
    "dot": "stroke:#b35806;stroke-width:9;stroke-linecap:round",
}


def show_clocks():
    """Return clocks that an offset turns, and the curve of similarity.

    Returns
    -------
    IPython.display.HTML
        The reader chooses the offset and the width.
    """
    offset = {"min": 0, "max": 100, "step": 1, "value": 6}
    width = {"type": "radio", "choices": list(map(str, WIDTHS)), "chosen": [0]}
    return show_states(
        "clocks",
        [
            {"label": "offset", "name": "offset", "type": "range"} | offset,
            {"label": "width of a vector", "name": "width"} | width,
        ],
        clocks_state,
        _draw_clocks,
    )


def _speeds(width):
    """Return the speed of each hand, in radians per step, (C,)."""
    return 10000.0 ** (-np.arange(0, width, 2) / width)


def clocks_state(offset, width):
    """Return what the picture shows (sentence, parts); width: its index."""
    width = WIDTHS[width]
    turns, points = offset * _speeds(width), _curve(width)
    clocks = min(8, len(turns))
    drawn = [j * (len(turns) - 1) // (clocks - 1) for j in range(clocks)]
    parts = {"dials": "", "heights": "", "hands": ""}
    for j, i in enumerate(drawn):
        x, up = 24 + 44 * j, f"{26 - 19 * math.cos(turns[i]):.1f}"
        parts["dials"] += f"M{x - 19} 26a19 19 0 1 0 38 0a19 19 0 1 0 -38 0"
        parts["heights"] += f"M{x} 26V{up}"
        parts["hands"] += f"M{x} 26L{x + 19 * math.sin(turns[i]):.1f} {up}"
    parts |= {
        "curve": "M" + "L".join(points),
        "dot": f"M{points[2 * offset]}h0",
    }
    heights = np.cos(turns)  # (C,)
    terms = " + ".join(f"{height:.4f}" for height in heights)
    if width > 16:
        terms = (
            f"clocks of pairs {', '.join(map(str, drawn))}; sum of all heights"
        )
    said = f"Width {width}, offset {offset}: {terms} = {heights.sum():.4f} "
    said = f"{said}of {len(turns)}"
    return said.replace("+ -", "− ").replace("-", "−"), parts


@cache
def _curve(width):
    """Return where the curve goes, at every half offset from 0 to 100."""
    angles = np.outer(np.arange(201) / 2, _speeds(width))  # (201, C)
    shares = np.cos(angles).mean(axis=-1)  # (201,)
    return [
        f"{30 + 1.6 * n:.1f} {152 - 80 * share:.1f}"
        for n, share in enumerate(shares)
    ]


def _draw_clocks(parts):
    """Return the picture of the start."""
    paths = parts | {"axes": "M30 72V232M30 152H350"}
    legend = {"heights": "M30 265h14", "curve": "M170 265h14"}
    legend["dot"] = "M299 265h0"
    drawn = [
        f"<path data-part='{part}' d='{paths[part]}' style='{style}'/>"
        for part, style in STYLES.items()
    ]
    drawn += [
        f"<path d='{path}' style='{STYLES[part]}'/>"
        for part, path in legend.items()
    ]
    words = [((16, 77), "1"), ((16, 156), "0"), ((9, 234), "−1")]
    words += [((30, 64), "similarity, as a share of d / 2")]
    words += [((30, 248), "offset 0"), ((326, 248), "100")]
    words += [((50, 270), "height of a hand"), ((190, 270), "sum of heights")]
    words += [((308, 270), "offset")]
    return svg_image(
        "Clocks with the heights of their hands; below them the curve that "
        "adds the heights up",
        "360 278",
        "".join(drawn) + svg_texts(words),
    )


def show_taken_for_order(words, products, by_distance, by_product):
    """Return the bet on similarity that is taken for an order.

    Parameters
    ----------
    words
        Ten tokens; the first is compared with all.
    products
        Of the vectors of their positions, (T, T).
    by_distance, by_product
        The positions, (T,), sorted the right way and the wrong way.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    products = np.asarray(products)
    four = np.arange(4), np.argsort(-products[0, :4])  # (4,), (4,)
    shown, passed = [], []
    for order, short in zip((by_distance, by_product), four, strict=True):
        order = np.asarray(order)
        in_order = [words[p] for p in order]
        shown.append([in_order[:5], in_order[5:]])
        norms = np.sqrt(np.diag(products))  # (T,)
        passed.append(
            {
                "each word comes once": sorted(in_order) == sorted(words),
                "all vectors have one norm": np.ptp(norms) < 1e-9,
                "Life is nearest to itself": order[0] == 0,
                "four tokens come in order": short.tolist() == [0, 1, 2, 3],
                "ten tokens come in order": (np.diff(order) > 0).all(),
            }
        )
    return show_mistake(
        "similarity-mistake",
        *shown,
        passed,
        "Nothing is wrong with the vectors, and on four tokens even the sort "
        "is correct: up to there the product falls at every step.",
    )
