"""The drawings of *The similarity of positions*: clocks, sums, turns."""

import math

import numpy as np

from .draw import Box, Picture, colour


def draw_times(places, turns):
    """Return the clocks of some positions.

    places: {what stands there: its position}; turns: by which angle each
    hand moves in a step, in radians, (C,).
    """
    told = ", ".join(f"{what} at {p}" for what, p in places.items())
    picture = Picture(
        14 + 70 * len(places),
        f"The clocks of {told}. At 0 all hands point up; from place to place "
        "the fastest hand moves most.",
    )
    picture.frame(Box(128, 8, 246, 62))
    for r, (what, position) in enumerate(places.items()):
        y = 39 + 70 * r
        picture.token(4, y - 24, what, width=88)
        picture.text(48, y + 18, f"position {position}", size=12)
        for i, turn in enumerate(turns):
            x, angle = 170 + 82 * i, position * turn
            look = f"stroke:{colour('mask')};stroke-width:1.5"
            picture.add(f'<circle cx="{x}" cy="{y}" r="27" style="{look}"/>')
            picture.line((x, y - 27), (x, y - 22), role="mask")
            tip = x + 23 * math.sin(angle), y - 23 * math.cos(angle)
            picture.arrow((x, y), tip, role="key", width=2)
    return picture


def draw_heights(turns, steps):
    """Return similarity as a bar for each offset, its fast part apart.

    turns: the speeds, (C,); steps: the number of offsets.
    """
    sums = np.cos(np.outer(np.arange(steps), turns)).sum(axis=1)  # (T,)
    told = ", ".join(f"{value:.2f}" for value in sums)
    picture = Picture(
        190,
        f"A bar for each offset from 0 to {steps - 1}: {told}. They fall "
        "until 3 and rise again until 6.",
    )
    floor, unit, wide = 150, 40, 44
    for k, value in enumerate(sums):
        x = 14 + wide * k
        bar = Box(x, floor - unit * value, wide - 10, unit * value)
        lit = k in (2, 6)
        look = f"fill:{colour('key' if lit else 'token')};fill-opacity:.5"
        picture.rect(bar, look, radius=1)
        middle = bar.top[0]
        picture.text(middle, bar.y - 6, f"{value:.2f}", bold=lit, size=12)
        picture.text(middle, floor + 17, k, bold=lit)
    picture.line((8, floor), (372, floor), role="mask")
    picture.text(190, floor + 35, "offset from position zero", size=12)
    return picture


def draw_step(turn, starts):
    """Return one turn that moves a hand from several positions by a step."""
    picture = Picture(
        178,
        "On one clock a hand turns by the same angle from "
        + " and ".join(f"{p} to {p + 1}" for p in starts)
        + ": one matrix makes every step.",
    )
    for i, p in enumerate(starts):
        x, y, radius = 95 + 190 * i, 90, 58
        look = f"stroke:{colour('mask')};stroke-width:1.5"
        picture.add(f'<circle cx="{x}" cy="{y}" r="{radius}" style="{look}"/>')
        for q, role in ((p, "token"), (p + 1, "key")):
            a = q * turn
            tip = x + radius * math.sin(a), y - radius * math.cos(a)
            picture.arrow((x, y), tip, role=role, width=2)
            far = x + 74 * math.sin(a), y + 5 - 72 * math.cos(a)
            picture.text(*far, q, role=role, bold=True)
        path = [
            (x + 34 * math.sin(a * turn), y - 34 * math.cos(a * turn))
            for a in np.linspace(p + 0.12, p + 0.85, 9)
        ]
        picture.arrow(*path, role="output", width=2)
        a = (p + 0.5) * turn
        place = x - 30 * math.sin(a), y + 5 + 30 * math.cos(a)
        picture.text(*place, "one step", role="output")
    return picture


def draw_blocks(turns):
    """Return the rotation by one step, a block of two rows for each hand.

    turns: by which angle each hand moves in a step, in radians, (C,).
    """
    matrix = np.zeros((2 * len(turns), 2 * len(turns)))  # (D, D)
    for i, turn in enumerate(turns):
        cos, sin = math.cos(turn), math.sin(turn)
        block = slice(2 * i, 2 * i + 2)
        matrix[block, block] = [[cos, sin], [-sin, cos]]
    size = len(matrix)
    cell, high = 48, 24
    picture = Picture(
        16 + high * size,
        f"A matrix of {size} rows: along its diagonal stand blocks of two "
        "rows and columns, one for each hand, and elsewhere zeros.",
    )
    roles = ["key", "query", "value"]
    left = 80
    for r in range(size):
        for c in range(size):
            same = r // 2 == c // 2
            text = f"{matrix[r, c]:.3f}" if same else "0"
            picture.matrix(
                left + cell * c, 8 + high * r, [[float(same)]],
                roles[r // 2 % 3] if same else "mask", texts=[[text]],
                cell=cell, height=high,
            )  # fmt: skip
        if r % 2 == 0:
            role = roles[r // 2 % 3]
            y = 12 + high * (r + 1)
            picture.text(left - 8, y, f"hand {r // 2}", role=role, at="end")
    return picture
