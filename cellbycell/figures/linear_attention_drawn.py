"""The drawings of *Attention without softmax*: a state, written and read."""

import numpy as np

from .draw import Box, Picture, colour


def draw_growth(counts, width):
    """Return what a softmax keeps of a text, and what a state keeps.

    counts: three numbers of tokens; width: of a key and of a value.
    """
    rows = [2 * width * n for n in counts]
    picture = Picture(
        222,
        f"After {counts[0]}, {counts[1]} and {counts[2]} tokens: the rows of "
        f"keys and values grow to {rows[0]}, {rows[1]} and {rows[2]} numbers; "
        f"the state is a square of {width**2} numbers each time.",
    )
    picture.text(4, 70, "softmax:", at="start", bold=True)
    picture.text(4, 88, "a row for", at="start", size=12)
    picture.text(4, 103, "each token", at="start", size=12)
    picture.text(4, 172, "state:", at="start", bold=True)
    picture.text(4, 190, "one size", at="start", size=12)
    blank = [[""] * width]
    for i, count in enumerate(counts):
        middle = 126 + 100 * i
        picture.text(middle, 18, f"{count} tokens")
        size = dict(cell=13, height=13)
        for r in range(count):
            y = 30 + 15 * r
            for x, role in ((-42, "key"), (3, "value")):
                picture.matrix(
                    middle + x, y, np.ones((1, width)), role, texts=blank,
                    **size,
                )  # fmt: skip
        picture.text(middle, 46 + 15 * count, f"{rows[i]} numbers", size=12)
        box = picture.matrix(
            middle - 20, 156, np.ones((width, width)), "output",
            texts=blank * width, **size,
        )  # fmt: skip
        picture.text(
            middle, box.bottom[1] + 18, f"{width**2} numbers", size=12
        )
    return picture


def draw_outer(keys, values, query):
    """Return a state as a sum of products, and what a query reads of it.

    keys (3, 2), values (3, 2), query (2,).
    """
    state = np.transpose(keys) @ np.asarray(values)  # (K, V)
    found = query @ state  # (V,)
    picture = Picture(
        218,
        "Three keys as columns, three values as rows; where they meet is "
        f"their product. The sum is the state {state.tolist()}, of which the "
        f"query {list(query)} reads {found.tolist()}.",
    )
    for i, (key, value) in enumerate(zip(keys, values, strict=True)):
        x = 18 + 124 * i
        picture.text(x + 13, 46, f"k{'₁₂₃'[i]}", role="key", bold=True)
        picture.matrix(x, 54, np.transpose([key]), "key", cell=26)
        picture.matrix(x + 34, 24, [value], "value", cell=30)
        name = f"v{'₁₂₃'[i]}"
        picture.text(x + 64, 16, name, role="value", bold=True)
        picture.matrix(x + 34, 54, np.outer(key, value), "token", cell=30)
        if i:
            picture.plus(x - 15, 76)
    picture.arrow((206, 106), (206, 142))
    picture.text(216, 128, "added up", at="start", size=12)
    asks = picture.matrix(30, 164, [query], "query", cell=30)
    held = picture.matrix(176, 150, state, "output", cell=30)
    out = picture.matrix(304, 164, [found], "value", cell=30)
    for start, end, role in ((asks, held, "query"), (held, out, "value")):
        picture.arrow((start.right[0] + 6, 175), (end.x - 6, 175), role=role)
    for box, role, text in (
        (asks, "query", "the query"),
        (held, "output", "the state"),
        (out, "value", "what it reads"),
    ):
        y = 212 if box is held else 204
        picture.text(box.top[0], y, text, role=role, size=12)
    return picture


def draw_fading(factors):
    """Return what is left of three values after each of three tokens.

    factors: what the second and the third token leave of the state.
    """
    second, third = factors
    left = [[1], [second, 1], [second * third, third, 1]]
    told = f"{left[2][0]:g}, {left[2][1]:g} and 1"
    picture = Picture(
        168,
        f"Bars for what is left of each value. The second token leaves "
        f"{second:g} of the first value; after the third, {told} are left.",
    )
    for t, shares in enumerate(left):
        middle = (52, 168, 308)[t]
        picture.text(middle, 16, f"after token {t + 1}")
        for s, share in enumerate(shares):
            x = middle - 21 * len(shares) + 42 * s
            bar = Box(x + 8, 116 - 72 * share, 26, 72 * share)
            style = f"fill:{colour('value')};fill-opacity:.55"
            picture.rect(bar, style, radius=1)
            picture.text(bar.top[0], bar.y - 5, f"{share:g}", size=12)
            name = f"v{'₁₂₃'[s]}"
            picture.text(bar.top[0], 133, name, role="value", bold=True)
        half = 21 * len(shares) + 4
        floor = (middle - half, 116), (middle + half, 116)
        picture.line(*floor, role="mask")
        if t:
            before = (52, 168)[t - 1]
            picture.arrow(
                (before, 158), (middle, 158), role="wrong",
                text=f"all × {factors[t - 1]:g}",
            )  # fmt: skip
    return picture


def draw_chunks(count, sizes):
    """Return a text in chunks of several sizes, the state handed on.

    count: tokens; sizes: three sizes of a chunk.
    """
    told = ", ".join(f"{count // size} of {size}" for size in sizes)
    picture = Picture(
        216,
        f"The {count} tokens of a text as chains of chunks: {told}. Each "
        "chunk is a table filled below its diagonal; an arrow hands the "
        "state from a chunk to the next.",
    )
    unit, y = 13, 12
    for size in sizes:
        steps = count // size
        side, gap = unit * size, 21
        words = f"{steps} steps" if steps > 1 else "1 step"
        middle = y + side / 2
        picture.text(4, middle - 3, f"chunks of {size}", at="start")
        picture.text(4, middle + 13, words, at="start", size=12)
        x = 116
        for _ in range(steps):
            picture.arrow(
                (x - 1, middle), (x + gap - 2, middle), role="output"
            )
            x += gap
            for r in range(size):
                for c in range(size):
                    style = f"stroke:{colour('query')};stroke-width:.8;fill:"
                    style += colour("query") if c <= r else "none"
                    cell = Box(x + unit * c, y + unit * r, unit, unit)
                    picture.rect(cell, style + ";fill-opacity:.35", radius=0)
            x += side
        picture.arrow((x + 1, middle), (x + gap, middle), role="output")
        y += side + 38
    picture.arrow((244, 190), (264, 190), role="output")
    picture.text(270, 194, "the state", role="output", at="start")
    return picture


def draw_correction(key, old, new, colours):
    """Return a state before a correction and after it, and what is read.

    key (2,) of norm one; old and new (3,), the values; colours: their names.
    """
    key, old, new = (np.asarray(x, float) for x in (key, old, new))
    error = new - old  # (V,)
    parts = np.outer(key, old), np.outer(key, error), np.outer(key, new)
    picture = Picture(
        232,
        "The state before: its first column is the key, so the key reads "
        "red. The correction, the key times blue minus red, empties that "
        "column and fills the third. After it the key reads blue.",
    )
    heads = "before", "the correction", "after"
    below = ("ball reads", old), ("blue − red", error), ("ball reads", new)
    picture.text(190, 218, f"the key of ball: ({key[0]:g}, {key[1]:g})",
                 role="key")  # fmt: skip
    for i, (part, (text, row)) in enumerate(zip(parts, below, strict=True)):
        x = 10 + 127 * i
        role = ("output", "wrong", "output")[i]
        picture.text(x + 53, 18, heads[i], bold=True)
        texts = [[f"{y:g}" if y else "0" for y in line] for line in part]
        size = dict(cell=36, height=26)
        box = picture.matrix(x, 46, part, role, texts=texts, **size)
        for c, name in enumerate(colours):
            picture.text(x + 36 * c + 18, 38, name, size=12)
        start, end = (108, 138) if i != 1 else (138, 108)
        picture.arrow((box.top[0], start - 6 * (i != 1)),
                      (box.top[0], end - 6 * (i == 1)),
                      role="key")  # fmt: skip
        if i == 1:
            picture.text(box.top[0] + 10, 124, "× key", role="key",
                         at="start", size=12)  # fmt: skip
        texts = [[f"{y:g}" if y else "0" for y in row]]
        role = ("value", "wrong", "value")[i]
        picture.matrix(x, 142, [row], role, texts=texts, **size)
        picture.text(x + 54, 186, text, role=role)
        if i:
            picture.text(x - 9.5, 76, "+="[i - 1], bold=True, size=17)
    return picture


def draw_angles(third):
    """Return two keys at right angles, and a third that has no room.

    third (2,): a key of norm one with two decimals.
    """
    a, b = third
    picture = Picture(
        196,
        "Left, two arrows at right angles, the keys 1 and 2: key 1 reads "
        "value 1 alone. Right, a third key between them: key 1 also reads "
        f"{a:g} of value 3, the length of its shadow on key 1.",
    )
    for side, keys in enumerate(([(1, 0), (0, 1)], [(1, 0), (0, 1), third])):
        x, y, long = 40 + 196 * side, 132, 96
        style = f"stroke:{colour('mask')};stroke-dasharray:3 3"
        picture.add(
            f'<path d="M{x + long} {y}A{long} {long} 0 0 0 {x} {y - long}" '
            f'style="{style}"/>'
        )
        for i, (c, s) in enumerate(keys):
            role = "wrong" if i == 2 else "key"
            tip = x + long * c, y - long * s
            picture.arrow((x, y), tip, role=role, width=2)
            name = f"k{'₁₂₃'[i]}"
            at = (tip[0] + 14, tip[1] + 5) if i == 0 else (
                tip[0] + 10 * i - 8, tip[1] - 7
            )  # fmt: skip
            picture.text(*at, name, role=role, bold=True)
        if side:
            foot = x + long * a
            picture.line(
                (foot, y - long * b), (foot, y), role="wrong", dashed=True
            )
            picture.line((x, y), (foot, y), role="wrong", width=4)
            picture.text(x + long * a / 2, y + 17, f"{a:g}", role="wrong")
        picture.text(x + 56, 172, "k₁ reads", role="key")
        read = f"v₁ + 0 v₂ + {a:g} v₃" if side else "v₁ + 0 v₂"
        picture.text(x + 56, 190, read, role="value")
    return picture
