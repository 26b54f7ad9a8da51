"""The moving pictures of *Attention*."""

import math

import numpy as np

from .moving import read, show_break, show_states
from .parts import svg_image, svg_texts, table_cell, table_head

NAMES = ["Life", "dessert", "eat", "first"]
KEYS = np.array([[2, 0.5], [1, 1.5], [-1.5, 1], [0.5, -1.5]])  # (S, K)
VALUES = np.array([[-1, 2], [2, 1], [1.5, -1], [-1.5, -1]])  # (S, V)
BLUE, ORANGE = "#2b4c7e", "#b35806"


def show_query():
    """Return a query that the reader drags among four keys.

    Returns
    -------
    IPython.display.HTML
        Keys and query in a plane, values and output in another, and a table
        of scores and weights.
    """
    angle = {"min": -180, "max": 180, "step": 15, "value": 0}
    norm = {"min": 0, "max": 2.5, "step": 0.5, "value": 1.5}
    root = {"type": "checkbox", "checked": True}
    return show_states(
        "query",
        [
            {"label": "angle in degrees", "name": "angle", "type": "range"}
            | angle,
            {"label": "length", "name": "norm", "type": "range"} | norm,
            {"label": "divide by √2", "name": "root"} | root,
        ],
        query_state,
        _draw_query,
        read("query.js"),
    )


def query_state(angle, norm, root):
    """Return what the picture shows for a query (sentence, parts).

    angle: in degrees; norm: its length; root: whether scores are divided.
    """
    turn = math.radians(angle)
    query = norm * np.array([math.cos(turn), math.sin(turn)])  # (K,)
    scores = KEYS @ query  # (S,)
    divided = scores / math.sqrt(2) if root else scores
    weights = np.exp(divided) / np.exp(divided).sum()  # (S,)
    output = weights @ VALUES  # (V,)
    tip = _place(query, 110, 36)
    parts = {
        "root": "÷ √2" if root else "÷ 1",
        "query": f"M110 118L{tip}" if norm else "",
        "handle": f"M{tip}h0",
        "output": f"M282 118L{_place(output, 282, 28)}",
    }
    for j, weight in enumerate(weights):
        parts[f"score-{j}"] = _text(scores[j])
        parts[f"divided-{j}"] = _text(divided[j])
        parts[f"weight-{j}"] = f"{weight:.2f}", round(weight, 3)
        parts[f"value-{j}"] = {"stroke-width": round(6 + 20 * weight, 1)}
    said = ", ".join(
        f"{name} {weight:.2f}"
        for name, weight in zip(NAMES, weights, strict=True)
    )
    x, y = map(_text, output)
    return f"Weights: {said}. The output is ({x}, {y}).", parts


def _text(number):
    return f"{number:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _place(point, middle, unit):
    """Return where a point of a plane lies in the drawing."""
    return f"{middle + unit * point[0]:.1f} {118 - unit * point[1]:.1f}"


def _draw_query(parts):
    """Return the picture of the start."""
    arrow = "stroke-width:2.5;pointer-events:none;marker-end:url(#{}-tip)"
    grip = f"stroke:{ORANGE};stroke-width:40;stroke-opacity:.2;"
    grip += "stroke-linecap:round;cursor:grab;touch-action:none"
    styles = {
        "axes": "stroke:#bbb;fill:transparent;cursor:pointer",
        "edge": "stroke:#767676;stroke-dasharray:4",
        "blue": f"stroke:{BLUE};{arrow.format('blue')}",
        "orange": f"stroke:{ORANGE};{arrow.format('orange')}",
        "dot": f"stroke:{BLUE};stroke-linecap:round",
        "grip": grip,
    }
    points = [_place(value, 282, 28) for value in VALUES]
    lines = [("axes", "axes", "M8 16h204v204H8zM110 16v204M8 118h204")]
    lines += [("", "edge", f"M{'L'.join(points)}z")]
    lines += [("", "blue", f"M110 118L{_place(key, 110, 36)}") for key in KEYS]
    lines += [(f"value-{j}", "dot", f"M{p}h0") for j, p in enumerate(points)]
    for part, style in dict(query="orange", handle="grip").items():
        lines.append((part, style, parts[part]))
    lines.append(("output", "orange", parts["output"]))
    drawn = [
        f"<marker id='{name}-tip' orient='auto' refX='8' refY='4' "
        "markerWidth='9' markerHeight='8' markerUnits='userSpaceOnUse'>"
        f"<path d='M0 0L9 4L0 8z' style='fill:{colour}'/></marker>"
        for name, colour in (("blue", BLUE), ("orange", ORANGE))
    ]
    for part, style, path in lines:
        named = f" data-part='{part}'" if part else ""
        if style == "dot":
            named += f" stroke-width='{parts[part]['stroke-width']}'"
        drawn.append(f"<path{named} d='{path}' style='{styles[style]}'/>")
    labels = [((8, 11), "keys and a query"), ((228, 11), "values and output")]
    labels += [((186, 94), "Life"), ((152, 59), "dessert"), ((30, 75), "eat")]
    labels += [((134, 184), "first"), ((242, 46), "Life")]
    labels += [((304, 70), "dessert"), ((316, 168), "eat")]
    labels += [((228, 168), "first")]
    table = "<tr><td></td><td>q · k</td>" + table_cell("root", parts["root"])
    table += "<td>weight</td>"
    for j, name in enumerate(NAMES):
        table += f"<tr>{table_head(f'name-{j}', name)}"
        for column in ("score", "divided"):
            table += table_cell(f"{column}-{j}", parts[f"{column}-{j}"])
        table += table_cell(f"weight-{j}", *parts[f"weight-{j}"])
    return (
        svg_image(
            "On the left, four keys and a query as arrows; on the right, four "
            "values as dots, and the output, an arrow that ends between them",
            "360 224",
            "".join(drawn) + svg_texts(labels),
        )
        + f"<table>{table}</table>"
    )


def show_wrong_axis(tokens, projections, correct):
    """Return the weights of a softmax along either axis, and checks.

    Parameters
    ----------
    tokens
        Six vectors, (T, D).
    projections
        Of queries and keys, (2, D, D).
    correct
        {axis: the share of new digits that the trained model writes
        backwards}, for -1 and -2.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    T, causal = len(tokens), np.tri(len(tokens), dtype=bool)
    order = np.random.default_rng(0).permutation(T)
    changed = np.vstack([tokens[:-1], -tokens[-1:]])  # (T, D)

    def mixed(axis, x, mask=True):
        query, key = x @ projections  # (T, D), (T, D)
        scores = query @ key.T / math.sqrt(x.shape[-1])  # (T, T)
        scores = np.where(mask, scores, -np.inf)
        parts = np.exp(scores - scores.max(axis=axis, keepdims=True))
        weights = parts / parts.sum(axis=axis, keepdims=True)  # (T, T)
        return weights @ x, weights

    by_axis, passed = [], []
    for axis in (-1, -2):
        output, weights = mixed(axis, tokens)
        early, late = (mixed(axis, x, causal)[0] for x in (tokens, changed))
        by_axis.append(weights.tolist())
        passed.append(
            {
                "right shape, no NaN": output.shape == tokens.shape
                and bool(np.isfinite(output).all()),
                "new digits are written backwards": correct[axis] == 1,
                "shuffled tokens give shuffled outputs": np.allclose(
                    mixed(axis, tokens[order])[0], output[order]
                ),
                "each row of the weights sums to one": np.allclose(
                    weights.sum(axis=-1), 1
                ),
                "causal mask: no later token leaks": np.allclose(
                    early[:-1], late[:-1]
                ),
            }
        )
    return show_break(
        "attention-mistake",
        *by_axis,
        passed,
        "Shuffling treats rows and columns alike. But each later query takes "
        "its share of every key, so the future leaks past the mask.",
    )
