"""A sentence with arcs: where each token looks, as thick as its weights."""

import numpy as np

from .draw import ROLES
from .moving import show_states
from .parts import svg_image

_FLOOR = 118  # where the tokens' boxes begin
_WIDE = 360
_BLUE = ROLES["query"][1]


def show_arcs(name, tokens, weights, start=None, columns=None):
    """Return a sentence whose arcs show one token's attention weights.

    Parameters
    ----------
    name
        Of the picture, for the page.
    tokens
        The T tokens of the queries, 9 at most.
    weights
        (T, S), or {what the reader chooses, such as a head: (T, S)}; NaN where
        a key is blocked.
    start
        The token that asks first, by its place; None for the last.
    columns
        The S tokens of the keys, if they are others: two rows are drawn then.

    Returns
    -------
    IPython.display.HTML
        The tokens, the arcs, and each weight; the reader chooses who asks.
    """
    both = weights if isinstance(weights, dict) else {"": weights}
    both = {key: np.asarray(w, float) for key, w in both.items()}
    keys = list(columns or tokens)
    shape = len(tokens), len(keys)
    if any(w.shape != shape for w in both.values()):
        raise ValueError(f"the weights of these tokens have the shape {shape}")
    names = list(both)

    def middle(i, count):
        return (i + 0.5) * _WIDE / count

    def state(asks, variant="0"):
        t, given = int(asks), both[names[int(variant)]]
        x = middle(t, len(tokens))
        shown, told = {}, []
        for s, weight in enumerate(given[t]):
            seen = 0.0 if np.isnan(weight) else float(weight)
            at = middle(s, len(keys))
            if columns:  # from above, the query, down to the key
                path = f"M{x:.1f} 28C{x:.1f} 75 {at:.1f} 70 {at:.1f} {_FLOOR}"
            elif s == t:
                path = f"M{at - 6:.1f} {_FLOOR}c-9 -26 21 -26 12 0"
            else:
                rise = _FLOOR - 14 - 0.36 * abs(at - x)
                path = f"M{x:.1f} {_FLOOR}C{x:.1f} {rise:.1f} "
                path += f"{at:.1f} {rise:.1f} {at:.1f} {_FLOOR}"
            shown[f"arc-{s}"] = {
                "d": path,
                "stroke-width": f"{9 * seen:.1f}",
                "stroke-opacity": f"{0.3 + 0.6 * seen:.2f}",
            }
            shown[f"weight-{s}"] = "–" if np.isnan(weight) else f"{seen:.2f}"
            told.append((seen, keys[s]))
        for i in range(len(tokens)):
            lit = ("#d9e8f5", 2) if i == t else ("#fff", 1)
            shown[f"asks-{i}"] = {"fill": lit[0], "stroke-width": lit[1]}
        most = max(weight for weight, _ in told)
        to = [key for weight, key in told if weight > most - 1e-4]
        said = f"most at {to[0]}"
        if len(to) == 2:
            said = f"equally at {to[0]} and {to[1]}"
        return f"{tokens[t]} looks {said}: {most:.2f}.", shown

    def draw(parts):
        svg = ""
        for s in range(len(keys)):
            arc = "' ".join(f"{k}='{v}" for k, v in parts[f"arc-{s}"].items())
            svg += f"<path data-part='arc-{s}' {arc}' stroke='{_BLUE}'/>"
        words = ""
        rows = [(keys, _FLOOR, "key")]
        if columns:
            rows.insert(0, (tokens, 4, "asks"))
        for row, y, kind in rows:
            step = _WIDE / len(row)
            for i, text in enumerate(row):
                part, look = "", {"fill": "#fff", "stroke-width": 1}
                if kind == "asks" or not columns:
                    part = f"data-part='asks-{i}' "
                    look = parts[f"asks-{i}"]
                svg += (
                    f"<rect {part}x='{i * step + 2:.1f}' y='{y}' "
                    f"width='{step - 4:.1f}' height='24' rx='12' "
                    f"stroke='#4a5568' fill='{look['fill']}' "
                    f"stroke-width='{look['stroke-width']}'/>"
                )
                x = middle(i, len(row))
                words += f"<text x='{x:.1f}' y='{y + 17}'>{text}</text>"
        for s in range(len(keys)):
            x = middle(s, len(keys))
            words += f"<text data-part='weight-{s}' x='{x:.1f}' "
            words += f"y='{_FLOOR + 41}'>{parts[f'weight-{s}']}</text>"
        style = "fill:#222;font:13px sans-serif"
        svg += f"<g text-anchor='middle' style='{style}'>{words}</g>"
        label = "a sentence, with arcs from one token to those it looks at"
        return svg_image(label, f"360 {_FLOOR + 48}", svg)

    last = len(tokens) - 1 if start is None else start
    controls = [
        {"label": "who asks", "name": "asks", "type": "radio"}
        | {"choices": list(tokens), "chosen": [last]}
    ]
    if len(both) > 1:
        controls.append(
            {"label": "weights", "name": "variant", "type": "radio"}
            | {"choices": names, "chosen": [0]}
        )
    return show_states(name, controls, state, draw)
