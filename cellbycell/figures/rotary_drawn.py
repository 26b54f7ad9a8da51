"""The drawings of *Rotary positions*."""

import math

import numpy as np

from .draw import Box, Picture, colour


def _turned(x, position, turns):
    """Return x (K,) with its pairs turned by the position."""
    number = (x[0::2] + 1j * x[1::2]) * np.exp(1j * position * turns)
    return np.stack([number.real, number.imag], -1).ravel()


def draw_moved(query, key, turns, shifts=(0, 1, 7, 100), turn=False):
    """Return one pair of tokens at four places, with its score at each.

    query at position 5 and key at 3, (K,); turns: the frequencies, (C,);
    turn: whether the vectors are turned; otherwise positions are added.
    """
    query, key = np.array(query), np.array(key)

    def score(p, q):
        if turn:
            return _turned(query, p, turns) @ _turned(key, q, turns)
        table = [np.stack([np.sin(x * turns), np.cos(x * turns)], -1).ravel()
                 for x in (p, q)]  # fmt: skip
        return (query + table[0]) @ (key + table[1])

    scores = [f"{score(5 + s, 3 + s):.2f}" for s in shifts]
    scores = [text.replace("-", "−") for text in scores]
    how = "turned by positions" if turn else "positions are added"
    p = Picture(
        44 + 36 * len(shifts),
        f"One query and one key, two positions apart, {how}, at four places: "
        f"positions 3 and 5, and moved by {', '.join(map(str, shifts[1:]))}. "
        f"The scores are {', '.join(scores)}.",
    )
    role = "value" if turn else "wrong"
    p.text(378, 16, "score", at="end", size=12)
    p.text(0, 16, "position", at="start", size=12)
    for row, (shift, text) in enumerate(zip(shifts, scores, strict=True)):
        y, x = 26 + 36 * row, 2 + min(12 * shift, 130)
        left = p.token(x, y, f"{3 + shift}", "key", width=40)
        right = p.token(x + 88, y, f"{5 + shift}", "query", width=40)
        p.line(left.right, right.left, role="mask")
        p.text(x + 64, y + 8, "2", role="mask", size=12)
        if shift > 7:
            p.text(x - 10, y + 17, "⋯", role="mask", at="end")
        p.text(378, y + 17, text, role=role, at="end", bold=True)
        p.line((x + 138, y + 12), (332, y + 12), role="mask", width=1,
               dashed=True)  # fmt: skip
    y = 36 + 36 * len(shifts)
    p.rect(Box(92, y - 10, 12, 12), f"fill:{colour('key')};fill-opacity:.5", 6)
    p.text(110, y + 1, "key", at="start", size=12)
    p.rect(
        Box(150, y - 10, 12, 12), f"fill:{colour('query')};fill-opacity:.5", 6
    )
    p.text(168, y + 1, "query", at="start", size=12)
    return p


def _clock(p, x, y, radius, angle, role, text=""):
    """Draw a circle and a point on it, and where it started."""
    p.add(
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" '
        f'style="stroke:{colour("mask")}"/>'
    )
    p.line((x, y), (x + radius, y), role="mask", dashed=True)
    end = x + radius * math.cos(angle), y - radius * math.sin(angle)
    p.arrow((x, y), end, role=role, width=2.5)
    if text:
        p.text(x, y + radius + 17, text.replace("-", "−"), size=12)


def draw_pairs(turns):
    """Return two pairs of columns, turned at the positions 0 to 3.

    turns: radians of each pair in a step, (2,).
    """
    p = Picture(
        268,
        "Two rows of four circles, one for each position from 0 to 3, with "
        f"the point (1, 0) as an arrow. In pair 0 it turns by {turns[0]:g} "
        f"radian from position to position, in pair 1 by {turns[1]:g}, which "
        "is hardly seen.",
    )
    for t in range(4):
        p.text(92 + 82 * t, 16, f"position {t}", size=12)
    for i, (turn, role) in enumerate(
        zip(turns, ("query", "key"), strict=True)
    ):
        y = 66 + 124 * i
        p.text(0, y - 10, f"pair {i}", at="start", bold=True, role=role)
        p.text(0, y + 8, f"{turn:g} rad", at="start", size=12)
        p.text(0, y + 23, "a step", at="start", size=12)
        for t in range(4):
            at = math.cos(turn * t), math.sin(turn * t)
            text = f"{at[0]:.2f}, {at[1]:.2f}"
            _clock(p, 92 + 82 * t, y, 34, turn * t, role, text)
    return p


def draw_flow():
    """Return which of queries, keys and values are turned."""
    p = Picture(
        252,
        "A token's vector gives query, key and value. Query and key are "
        "turned by the position before they give the weights; the value goes "
        "straight to the output.",
    )
    x = p.layer(108, 8, 164, "x, nothing added")
    y = 68
    boxes = [
        p.layer(left, y, 80, text, role)
        for left, text, role in (
            (16, "query", "query"), (128, "key", "key"),
            (284, "value", "value"),
        )
    ]  # fmt: skip
    for box in boxes:
        p.arrow((box.top[0], 52), box.top)
    p.line(x.bottom, (190, 52))
    p.line((boxes[0].top[0], 52), (boxes[2].top[0], 52))
    turned = []
    for box, role in zip(boxes, ("query", "key"), strict=False):
        mid = box.bottom[0]
        p.arrow(box.bottom, (mid, 118), role=role)
        turned.append(p.layer(mid - 40, 118, 80, "turn by p", "output"))
    p.layer(40, 172, 144, "scores, weights")
    for box, at in zip(turned, (56, 168), strict=True):
        p.arrow(box.bottom, (at, 172), role="output")
    p.layer(246, 216, 118, "output", "output")
    p.arrow(boxes[2].bottom, (324, 216), role="value")
    p.arrow((112, 200), (112, 230), (246, 230))
    p.text(316, 136, "not turned", role="value", at="end", size=12)
    return p


def draw_rounds(wavelengths, longest):
    """Return after how many positions each pair comes round.

    wavelengths: {base: of each pair, (C,)}; longest: a text's length.
    """
    last = len(next(iter(wavelengths.values()))) - 1
    told = "; ".join(
        f"with the base {base:,.0f} from {row[0]:.0f} to {row[-1]:,.0f}"
        for base, row in wavelengths.items()
    )
    p = Picture(
        214,
        f"The wavelengths of pairs 0 to {last} on a logarithmic scale, two "
        f"rising lines: {told}. A dashed line at {longest:,} positions.",
    )

    def place(i, wave):
        return 62 + 300 * i / last, 190 - 28 * math.log10(wave)

    p.line((62, 10), (62, 190), (372, 190))
    for power in (1, 2, 3, 4, 5, 6):
        p.text(56, 194.5 - 28 * power, f"{10**power:,}", at="end", size=11)
    p.text(62, 206, "pair 0", size=12)
    p.text(372, 206, last, at="end", size=12)
    roles = "query", "key"
    for (base, row), role in zip(wavelengths.items(), roles, strict=True):
        p.line(*(place(i, w) for i, w in enumerate(row)), role=role, width=2.5)
        x, y = place(44, row[44])
        side = dict(at="end") if role == "key" else dict(at="start")
        x, y = (x - 8, y - 2) if role == "key" else (x + 6, y + 14)
        p.text(x, y, f"base {base:,.0f}", role=role, **side)
    y = place(0, longest)[1]
    p.line((62, y), (372, y), role="mask", dashed=True)
    p.text(68, y - 6, f"a text of {longest:,} positions", at="start", size=12)
    return p


def _columns(p, y, order, roles, names=None):
    """Draw columns as coloured cells with their numbers; return boxes."""
    boxes = []
    for place, column in enumerate(order):
        box = Box(96 + 66 * place, y, 62, 28)
        p.rect(
            box,
            f"stroke:{colour(roles[column])};stroke-width:2;"
            f"fill:{colour(roles[column])};fill-opacity:.25",
        )
        text = names[column] if names else f"column {column}"
        p.text(box.top[0], y + 18.5, text, size=12)
        boxes.append(box)
    return boxes


def draw_layouts():
    """Return which of four columns make a pair, in both layouts."""
    p = Picture(
        196,
        "Four columns in two layouts. Pairs: columns 0 and 1 turn together, "
        "and 2 and 3. Halves: columns 0 and 2 turn together, and 1 and 3. "
        "Arcs join the partners.",
    )
    for y, name, partners in (
        (54, "pairs", ((0, 1), (2, 3))),
        (152, "halves", ((0, 2), (1, 3))),
    ):
        p.text(0, y + 18.5, name, at="start", bold=True)
        roles = dict.fromkeys(partners[0], "query")
        roles |= dict.fromkeys(partners[1], "key")
        boxes = _columns(p, y, range(4), roles)
        for pair, role in zip(partners, ("query", "key"), strict=True):
            one, other = (boxes[i].top for i in pair)
            p.arc(one, other, 0.25, role)
            wide = other[0] - one[0]
            middle, rise = one[0] + wide / 2, 9 + 0.24 * wide
            text = "turns fast" if role == "query" else "turns slowly"
            aside = 0 if name == "pairs" else -24 if role == "query" else 24
            p.text(middle + aside, y - rise - 8, text, role=role, size=12)
    return p


def draw_order(to_halves):
    """Return columns that are sorted from pairs into halves.

    to_halves: the columns in their new order.
    """
    p = Picture(
        128,
        "Four columns in pairs, 0 1 2 3, with lines down to the same columns "
        f"in halves, {' '.join(map(str, to_halves))}: the even ones first. "
        "Partners keep their colour.",
    )
    roles = {0: "query", 1: "query", 2: "key", 3: "key"}
    p.text(0, 26.5, "pairs", at="start", bold=True)
    p.text(0, 112.5, "halves", at="start", bold=True)
    above = _columns(p, 8, range(4), roles)
    below = _columns(p, 94, to_halves, roles)
    for place, column in enumerate(to_halves):
        p.arrow(above[column].bottom, below[place].top, role=roles[column])
    return p


def draw_sorted_rows(to_halves, num_heads):
    """Return the rows of a projection, sorted within each head.

    to_halves: the rows of one head in their new order.
    """
    wide = len(to_halves)
    p = Picture(
        46 + 20 * wide * num_heads,
        f"The rows of a weight in {num_heads} heads of {wide}, with lines to "
        "their new places: within each head the even rows come first, and no "
        "row leaves its head.",
    )
    p.text(98, 16, "trained in pairs")
    p.text(276, 16, "for halves")
    for head in range(num_heads):
        y = 26 + head * (20 * wide + 6)
        p.text(0, y + 10 * wide + 4, f"head {head}", at="start")
        for place, row in enumerate(to_halves):
            for x, at, shown in ((56, row, row), (234, place, row)):
                role = "query" if shown < 2 else "key"
                box = Box(x, y + 20 * at, 84, 18)
                style = f"stroke:{colour(role)};fill:{colour(role)};"
                p.rect(box, style + "fill-opacity:.25", 2)
                p.text(box.top[0], box.y + 13.5, f"row {head * wide + shown}",
                       size=12)  # fmt: skip
            p.arrow((140, y + 20 * row + 9), (234, y + 20 * place + 9),
                    role="query" if row < 2 else "key")  # fmt: skip
    return p


def draw_models():
    """Return three models, which differ in where positions come in."""
    p = Picture(
        232,
        "Three stacks of embedding, attention and last layer. In the first, "
        "positions are added between embedding and attention; in the second, "
        "queries and keys are turned inside attention; the third has none.",
    )
    for x, name in ((2, "added"), (130, "rotary"), (258, "none")):
        middle = x + 60
        p.text(middle, 16, name, bold=True)
        top = p.layer(x, 28, 120, "embedding")
        deep = 50 if name == "rotary" else 28
        box = p.layer(x, 172 - deep, 120, "", "query", height=deep)
        p.text(middle, 190.5 - deep, "attention")
        if name == "added":
            plus = p.plus(middle, 92, role="output")
            p.arrow(top.bottom, plus.top)
            p.arrow(plus.bottom, box.top)
            p.text(middle + 14, 96.5, "+ PE(p)", role="output", at="start")
        else:
            p.arrow(top.bottom, box.top)
        if name == "rotary":
            p.rect(
                Box(x + 8, 150, 104, 18),
                f"fill:{colour('output')};fill-opacity:.25",
            )
            p.text(middle, 163.5, "q, k turn by p", role="output", size=12)
        last = p.layer(x, 196, 120, "last layer")
        p.arrow(box.bottom, last.top)
    return p
