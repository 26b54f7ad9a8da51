"""The drawings of *Positional encoding*: bags, clocks, waves and sums."""

import math

import numpy as np

from .draw import Box, Picture, colour

_SMALL = 12  # letters of a number


def draw_bag(sentences):
    """Return sentences of the same words, which fall into the same bag."""
    told = " and ".join(" ".join(words) for words in sentences)
    picture = Picture(
        168, f"{told}: both fall into one bag with the same three words."
    )
    for i, words in enumerate(sentences):
        boxes = picture.tokens(6, words, left=194 * i, right=194 * i + 186)
        x = boxes[1].bottom[0]
        picture.arrow((x, 34), (190 + 30 * (2 * i - 1), 70))
    bag = "M132 84Q190 72 248 84Q270 160 246 162H134Q110 160 132 84Z"
    look = f"stroke:{colour('token')};stroke-width:1.5;fill:"
    look += f"{colour('token')};fill-opacity:.1"
    picture.add(f'<path d="{bag}" style="{look}"/>')
    for word, x, y in zip(
        sorted(sentences[0]), (132, 190, 162), (94, 102, 132), strict=True
    ):
        picture.token(x, y, word, width=54)
    picture.text(262, 124, "who bites?", role="wrong", at="start")
    return picture


def draw_swapped(words, vectors):
    """Return a sentence and its outputs, and those of the sentence reversed.

    vectors (T, D): of the words; attention mixes them, and nothing else.
    """
    x = np.asarray(vectors, float)  # (T, D)
    parts = np.exp(x @ x.T / math.sqrt(x.shape[1]))  # (T, T)
    mixed = parts / parts.sum(axis=1, keepdims=True) @ x  # (T, D)
    picture = Picture(
        118,
        f"The new vectors of {' '.join(words)} at the left, and those of "
        f"{' '.join(words[::-1])} at the right: the same, in reverse.",
    )
    ends = []
    for i, order in enumerate((slice(None), slice(None, None, -1))):
        for t, (word, row) in enumerate(
            zip(words[order], mixed[order], strict=True)
        ):
            left, y = 212 * i, 8 + 38 * t
            texts = [[f"{value:.1f}" for value in row]]
            chip = Box(left + (0 if i == 0 else 120), y, 48, 24)
            picture.token(chip.x, y, word, width=48)
            at = left + (52 if i == 0 else 0)
            box = picture.matrix(
                at, y + 1, [row], "output", texts=texts, cell=29
            )
            ends.append(box.right if i == 0 else box.left)
    for t in range(len(words)):
        (ax, ay), (bx, by) = ends[t], ends[-1 - t]
        picture.arrow((ax + 3, ay), (bx - 2, by), role="output", width=1)
    return picture


def draw_broken_wishes():
    """Return positions as points in a plane, with a wish broken in each."""
    picture = Picture(
        152,
        "Positions 0 to 3 as points in three squares. Not unique: 3 falls on "
        "0. Not bounded: 3 lies outside the square. Not consistent: the step "
        "from 1 to 2 is longer than the others.",
    )
    panels = {
        "unique": ([(-26, 22), (26, 22), (0, -22)], "3 falls on 0"),
        "bounded": ([(-34, 22), (-4, 4), (26, -14), (56, -32)], "3 is out"),
        "consistent": (
            [(-22, 22), (22, 22), (-22, -22), (22, -22)], "a longer step",
        ),
    }  # fmt: skip
    for i, (wish, (points, fault)) in enumerate(panels.items()):
        x, y = 62 + 128 * i, 56
        picture.frame(Box(x - 46, y - 46, 92, 92))
        at = [(x + dx, y + dy) for dx, dy in points]
        walk = at + at[:1] if wish == "unique" else at
        bad = 1 if wish == "consistent" else 2
        for p, (start, end) in enumerate(zip(walk, walk[1:], strict=False)):
            part = np.subtract(end, start)
            gap = 7 * part / np.hypot(*part)
            role = "wrong" if p == bad else "token"
            picture.arrow(tuple(start + gap), tuple(end - gap), role=role)
        for p, (px, py) in enumerate(at):
            wrong = p == (0 if wish == "unique" else 3 if i == 1 else -1)
            look = f"fill:{colour('wrong' if wrong else 'token')}"
            picture.add(f'<circle cx="{px}" cy="{py}" r="4" style="{look}"/>')
            text = "0, 3" if wish == "unique" and p == 0 else p
            low = wish == "consistent" and p < 2 or wish == "unique" and p < 2
            picture.text(px, py + 18 if low else py - 8, text, size=_SMALL)
        picture.text(x, 122, f"not {wish}", bold=True)
        picture.text(x, 140, fault, role="wrong")
    return picture


def draw_candidates(length):
    """Return three ways to number positions, each with what is wrong."""
    picture = Picture(
        226,
        "The index as bars that grow; the index over the length, in a short "
        "and in a long text, as marks at other places; binary digits, of "
        "which one, two or three flip from one position to the next.",
    )
    left, step = 98, 34
    bars = f"fill:{colour('token')};fill-opacity:.5"
    picture.text(4, 50, "index", at="start")
    for p in range(length):
        bar = Box(left + step * p + 6, 62 - 6 * p, 22, 6 * p + 1)
        picture.rect(bar, bars, radius=0)
    picture.text(left + step * length, 80, "grows", role="wrong", at="end")
    picture.text(4, 112, "index / length", at="start", size=_SMALL)
    for row, n in enumerate((length // 2, length)):
        y = 102 + 22 * row
        picture.line((left + 6, y), (left + 6 + 256, y), role="mask", width=1)
        for p in range(n):
            at = left + 6 + 256 * p / n
            picture.line((at, y - 5), (at, y + 5), role="token", width=2)
    said = "another length, another step"
    picture.text(left + step * length, 146, said, role="wrong", at="end")
    picture.text(4, 176, "binary", at="start")
    for p in range(length):
        for digit in range(3):
            on = p >> digit & 1
            box = Box(left + step * p + 6, 160 + 13 * digit, 22, 13)
            look = f"stroke:{colour('token')};stroke-width:1;fill:"
            look += f"{colour('token')};fill-opacity:{0.5 if on else 0.04}"
            picture.rect(box, look, radius=0)
        if p:
            flips = (p ^ (p - 1)).bit_count()
            x = left + step * p
            picture.text(x, 216, flips, role="wrong", size=_SMALL)
    picture.text(4, 216, "digits that flip", at="start", size=_SMALL)
    return picture


def draw_clocks(positions, turns):
    """Return a clock for each speed at each of some positions.

    turns: by which angle each hand moves in a step, in radians, (C,).
    """
    picture = Picture(
        34 + 62 * len(positions),
        f"{len(turns)} clocks, from fast to slow, at the positions "
        f"{', '.join(map(str, positions))}: the fast hand runs ahead, and "
        "each slower hand moves when the faster one has gone round.",
    )
    picture.text(4, 16, "radians a step", at="start", size=_SMALL)
    for i, turn in enumerate(turns):
        picture.text(130 + 70 * i, 16, f"{turn:g}", size=_SMALL)
    for r, position in enumerate(positions):
        y = 54 + 62 * r
        picture.text(4, y + 5, f"position {position}", at="start")
        for i, turn in enumerate(turns):
            x, angle = 130 + 70 * i, position * turn
            look = f"stroke:{colour('mask')};stroke-width:1.5"
            picture.add(f'<circle cx="{x}" cy="{y}" r="25" style="{look}"/>')
            picture.line((x, y - 25), (x, y - 20), role="mask")
            tip = x + 22 * math.sin(angle), y - 22 * math.cos(angle)
            picture.arrow((x, y), tip, role="key", width=2)
    return picture


def draw_columns(length, d_model, position):
    """Return the columns of the table as waves; a row cuts through all."""
    step = 20
    names = ["sin", "cos"]
    columns = np.arange(d_model)
    speeds = 10000.0 ** (-(columns // 2 * 2) / d_model)  # (D,)
    row = [
        math.sin(position * w) if c % 2 == 0 else math.cos(position * w)
        for c, w in enumerate(speeds)
    ]
    told = ", ".join(f"{value:.2f}" for value in row)
    picture = Picture(
        74 + step * length,
        f"{d_model} columns as waves that run down over {length} positions; "
        f"the row of position {position} cuts through them at {told}.",
    )
    at = [82 + 54 * c for c in columns]
    picture.text(4, 40, "position", at="start", size=_SMALL)
    for p in range(length):
        lit = p == position
        role = "key" if lit else None
        y = 57 + step * p
        picture.text(24, y + 4, p, role=role, bold=lit)
    for c, (x, w) in enumerate(zip(at, speeds, strict=True)):
        role = "query" if c % 2 == 0 else "value"
        under = f"p / {1 / w:.0f}" if w < 1 else "p"
        picture.text(x, 16, names[c % 2], role=role, size=_SMALL)
        picture.text(x, 32, under, role=role, size=_SMALL)
        picture.line((x, 47), (x, 47 + step * length), role="mask", width=1)
        wave = math.sin if c % 2 == 0 else math.cos
        fine = np.arange(0, length - 0.5, 0.25)
        points = [(x + 20 * wave(p * w), 57 + step * p) for p in fine]
        picture.line(*points, role=role, width=2)
    y = 57 + step * position
    picture.line((36, y), (376, y), role="key", width=1)
    for x, value in zip(at, row, strict=True):
        dot = f"fill:{colour('key')}"
        picture.add(
            f'<circle cx="{x + 20 * value:.1f}" cy="{y}" r="4.5" '
            f'style="{dot}"/>'
        )
        text = f"{value:.2f}".replace("-", "−")
        low = 66 + step * length
        picture.text(x, low, text, role="key", bold=True, size=_SMALL)
    return picture


def draw_pairs(position, denominators):
    """Return how a row of the table is made: divide, then sine and cosine."""
    angles = position / np.asarray(denominators)  # (C,)
    row = np.stack([np.sin(angles), np.cos(angles)], 1)  # (C, 2)
    picture = Picture(
        150,
        f"Position {position} is divided by three denominators; each of the "
        "three angles becomes a sine and a cosine, side by side.",
    )
    picture.text(4, 84, "angle", at="start")
    picture.text(4, 25, "position", at="start")
    top = picture.matrix(206, 8, [[position]], "token")
    for i, (angle, pair) in enumerate(zip(angles, row, strict=True)):
        left = 76 + 104 * i
        mid = picture.matrix(
            left + 22, 68, [[angle]], "token", texts=[[f"{angle:.2f}"]],
            cell=44,
        )  # fmt: skip
        text = f"÷ {denominators[i]:.0f}"
        picture.arrow((top.bottom[0], 32), (mid.top[0], 65), width=1)
        x = (top.bottom[0] + mid.top[0]) / 2
        place = ((x - 10, 42), (x + 8, 54), (x + 10, 42))[i]
        picture.text(*place, text, at="start" if i else "end", size=11)
        for c, (name, role) in enumerate((("sin", "query"), ("cos", "value"))):
            box = picture.matrix(
                left + 44 * c, 120, [[pair[c]]], role,
                texts=[[f"{pair[c]:.2f}"]], cell=44,
            )  # fmt: skip
            ends = (mid.bottom[0], 92), (box.top[0], 117)
            picture.arrow(*ends, role=role, width=1)
            side = box.top[0] + (-18 if c == 0 else 18)
            picture.text(side, 110, name, role=role, size=11)
    picture.text(4, 136, "its row", at="start")
    return picture


def _grid(picture, x, y, rows, columns, role, empty=()):
    """Draw a small table without its numbers; return its box.

    empty: the cells, row by row, that dropout has made zero.
    """
    for n in range(rows * columns):
        box = Box(x + 10 * (n % columns), y + 11 * (n // columns), 10, 11)
        share = 0 if n in empty else 0.35
        look = f"stroke:{colour(role)};stroke-width:1;fill:{colour(role)};"
        picture.rect(box, f"{look}fill-opacity:{share:g}", radius=0)
    return Box(x, y, 10 * columns, 11 * rows)


def draw_layer(rows, length, d_model):
    """Return two sequences, each with the first rows of one table added.

    rows: of the table; length: of the sequences.
    """
    picture = Picture(
        286,
        f"Two sequences of {length} rows, and between them a table of {rows} "
        f"rows. Its first {length} rows are added to both; the other "
        f"{rows - length} are left out. Dropout then empties some cells.",
    )
    middle, top = 190, 26
    half = 5 * d_model
    picture.text(middle, 16, "table", role="key")
    used = _grid(picture, middle - half, top, length, d_model, "key")
    y = used.bottom[1] + 3
    for n in range(rows - length):
        box = Box(middle - half, y + 11 * n, 2 * half, 11)
        picture.rect(box, f"stroke:{colour('mask')};stroke-width:1", radius=0)
    left_out = y + 11 * (rows - length) + 16
    picture.text(middle, left_out, "left out", role="mask", size=_SMALL)
    for i, x in enumerate((66, 314)):
        picture.text(x, 16, f"sequence {i}")
        own = _grid(picture, x - half, top, length, d_model, "token")
        plus = picture.plus(x, 134)
        picture.arrow(own.bottom, plus.top)
        side, into = (used.right, plus.left) if i else (used.left, plus.right)
        bend = (x + middle) / 2
        picture.arrow(side, (bend, side[1]), (bend, 134), into, role="key")
        picture.arrow(plus.bottom, (x, 190))
        at = "end" if i else "start"
        picture.text(x + (-8 if i else 8), 170, "dropout", at=at)
        empty = {(7 + 6 * i) * n % (length * d_model) for n in (1, 2, 4, 5)}
        empty |= {3 + 8 * i, 20 + i, 32 + 5 * i}
        _grid(picture, x - half, 194, length, d_model, "output", empty)
    picture.text(middle, 228, "the same rows", role="key")
    picture.text(middle, 245, "for both", role="key")
    return picture


def draw_sum(token, vector, position, row):
    """Return a token's vector, a position's, and their sum, each of D."""
    both = np.asarray(vector, float), np.asarray(row, float)
    picture = Picture(
        150,
        f"The vector of {token}, below it that of position {position}, and "
        "below a line their sum, number by number.",
    )
    largest = max(np.abs(part).max() for part in both)
    names = token, f"position {position}", "sum"
    roles = "token", "key", "output"
    for i, (part, role) in enumerate(
        zip((*both, both[0] + both[1]), roles, strict=True)
    ):
        y = 12 + 46 * i + 8 * (i == 2)
        picture.text(4, y + 16, names[i], at="start", role=role)
        texts = [[f"{value:.2f}" for value in part]]
        picture.matrix(
            92, y, [part / largest], role, texts=texts, cell=46, height=24
        )
    picture.plus(78, 50)
    picture.line((66, 96), (374, 96))
    return picture


def draw_norms(rows, position):
    """Return norms of tokens as bars beside that of a position.

    rows: {what: norm}; a bar that is too long breaks off.
    """
    picture = Picture(
        14 + 40 * (len(rows) + 1),
        f"A position's norm is {position:.0f}. "
        + "; ".join(f"{what}: {norm:.1f}" for what, norm in rows.items()),
    )
    unit, left, room = 3.0, 132, 190
    bars = [("a position", position, "key")]
    bars += [(what, norm, "token") for what, norm in rows.items()]
    for i, (what, norm, role) in enumerate(bars):
        y = 10 + 40 * i
        picture.text(left - 8, y + 17, what, at="end", size=_SMALL)
        width = min(unit * norm, room)
        look = f"fill:{colour(role)};fill-opacity:.5"
        picture.rect(Box(left, y, width, 24), look, radius=2)
        x = left + width
        if unit * norm > room:
            picture.arrow((x + 2, y + 12), (x + 18, y + 12), role=role)
            x += 16
        text = f"{norm:.0f}" if norm > 100 else f"{norm:.1f}"
        picture.text(x + 6, y + 17, text, at="start")
    x = left + unit * position
    picture.line(
        (x, 6), (x, 14 + 40 * len(rows) + 20), role="key", dashed=True
    )
    return picture
