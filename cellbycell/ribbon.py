"""How the loss on names falls from chapter to chapter, as one line."""

import json
from html import escape
from pathlib import Path

__all__ = ["points", "ribbon"]
FILE = Path(__file__).parent / "data" / "ribbon.json"
TITLE = "The loss on names that no model has read"
TICKS = 3.4, 3.0, 2.6, 2.2  # nats a letter


def points() -> list[dict]:
    """Return the points of the line, in the order of the chapters.

    Returns
    -------
    list of dict
        The chapter, the part that it adds, the steps of the training, the
        loss on held-out names in nats a letter, and five names that this
        model writes. `python -m benchmarks.ribbon` computes them.
    """
    return json.loads(FILE.read_text("utf-8"))


def ribbon(current: str | None = None) -> str:
    """Return the line as a drawing, and a second one for narrow windows.

    Parameters
    ----------
    current
        The chapter in which the reader is, as in "attention"; its points are
        marked.

    Returns
    -------
    str
        HTML with two SVG drawings, of which the page shows one.
    """
    both = _wide(current) + _tall(current)
    return f'<div class="ribbon">\n{both}</div>\n'


def _told(point):
    """Return a point in words."""
    steps = f"after {point['steps']} steps" if point["steps"] else "untrained"
    return f"{point['part']}, {steps}, {point['loss']:.2f}"


def _names(point):
    """Return the names that begin with k and s, cut to a column."""
    names = point["names"][1], point["names"][4]
    return [n if len(n) < 13 else f"{n[:10]}…" for n in names]


def _drawing(kind, width, height, drawn):
    told = "; ".join(map(_told, points()))
    return (
        f'<svg class="ribbon-{kind}" viewBox="0 0 {width} {height}" '
        f'role="group" aria-label="{TITLE}">\n<desc>In nats a letter: '
        f"{told}.</desc>\n{drawn}</svg>\n"
    )


def _mark(x, y, point, current):
    """Return a point's circle: hollow if the model was trained longer."""
    kind = "longer" if point["steps"] > 300 else "point"
    here = point["chapter"] == current
    ring = f'<circle class="here" cx="{x}" cy="{y}" r="10"/>' if here else ""
    return f'{ring}<circle class="{kind}" cx="{x}" cy="{y}" r="5"/>'


def _text(x, y, words, kind="", anchor="start"):
    return (
        f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def _lines(places):
    """Return the line, dashed where only the training differs."""
    path = " ".join(f"{x},{y}" for x, y in places[:-1])
    (x1, y1), (x2, y2) = places[-2:]
    return (
        f'<polyline class="line" points="{path}"/>\n'
        f'<path class="line longer" d="M{x1} {y1}L{x2} {y2}"/>\n'
    )


def _linked(point, current, x, y, anchor):
    """Return the part's name, a link to its chapter."""
    words = _text(x, y, point["part"], "part", anchor)
    if point["chapter"] == current:
        return words
    return f'<a href="{point["chapter"]}.html">{words}</a>'


def _steps(point, current):
    here = point["chapter"] == current
    words = f"{point['steps']} steps" if point["steps"] else "no training"
    return f"{words}, you are here" if here else words


def _wide(current):
    def down(loss):
        return round(30 + 150 * (3.4 - loss), 1)

    drawn, places = "", []
    for tick in TICKS:
        drawn += f'<path class="grid" d="M34 {down(tick)}H826"/>'
        drawn += _text(0, down(tick) + 4, f"{tick:.1f}", "scale") + "\n"
    for i, point in enumerate(points()):
        x, y = 74 + 92 * i, down(point["loss"])
        places.append((x, y))
        drawn += f'<path class="drop" d="M{x} {y}V240"/>'
        drawn += _mark(x, y, point, current)
        drawn += _text(x + 4, y - 10, f"{point['loss']:.2f}", "loss")
        drawn += _linked(point, current, x, 260, "middle")
        steps = _steps(point, current).split(", ")
        rows = [*steps, *_names(point)]
        for r, row in enumerate(rows):
            kind = "name" if r >= len(steps) else "steps"
            drawn += _text(x, 278 + 17 * r, row, kind, "middle")
        drawn += "\n"
    return _drawing("wide", 866, 350, _lines(places) + drawn)


def _tall(current):
    def along(loss):
        return round(306 - 100 * (3.4 - loss), 1)

    drawn, places = "", []
    for tick in TICKS:
        x = along(tick)
        drawn += f'<path class="grid" d="M{x} 16V620"/>'
        drawn += _text(x, 12, f"{tick:.1f}", "scale", "middle") + "\n"
    for i, point in enumerate(points()):
        x, y = along(point["loss"]), 36 + 64 * i
        places.append((x, y))
        drawn += _mark(x, y, point, current)
        drawn += _text(x + 12, y + 5, f"{point['loss']:.2f}", "loss")
        drawn += _linked(point, current, 0, y + 5, "start")
        drawn += _text(0, y + 22, _steps(point, current), "steps")
        drawn += _text(0, y + 39, ", ".join(_names(point)), "name")
        drawn += "\n"
    return _drawing("tall", 360, 620, _lines(places) + drawn)
