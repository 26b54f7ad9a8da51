"""The drawings of *Teach an old model*: rows, masks, a change, a loss."""

import numpy as np

from .draw import Box, Picture, colour

TEXTS = "query", "key", "value"  # a colour for each text of a row


def _filled(role, share):
    """Return the style of a box of a role, filled in part."""
    return (
        f"stroke:{colour(role)};fill:{colour(role)};fill-opacity:{share:.2f}"
    )


def draw_row(pairs):
    """Return three texts of prompt and answer, and the row that they share.

    pairs: (prompt, answer), the answer with its dot.
    """
    told = ", ".join(prompt + answer for prompt, answer in pairs)
    picture = Picture(
        196,
        f"The texts {told}, each a prompt in a light and an answer in a dark "
        "colour. Below, all of them but their dots stand in one row.",
    )
    cell, left = 23, 40
    picture.text(62, 14, "prompt", size=12)
    picture.text(156, 14, "answer", size=12)
    at, y = 6, 148
    for r, (prompt, answer) in enumerate(pairs):
        role, top = TEXTS[r], 24 + 36 * r
        picture.text(30, top + 17, r + 1, role=role, at="end", bold=True)
        whole = prompt + answer
        for i, sign in enumerate(whole):
            dark = 0.5 if i >= len(prompt) else 0.12
            box = Box(left + cell * i, top, cell, 24)
            picture.rect(box, _filled(role, dark), 0)
            picture.text(box.top[0], top + 17, sign)
            if i == len(whole) - 1:
                break
            box = Box(at, y, cell, 24)
            picture.rect(box, _filled(role, dark), 0)
            picture.text(box.top[0], y + 17, sign)
            at += cell
        x = left + cell * len(whole) + 6
        middle = at - cell * (len(whole) - 1) / 2
        low = (middle, y - 4)
        if r == 2:
            picture.arrow((x, top + 12), (middle, top + 12), low, role=role)
    picture.text(190, 188, "one row, 3 texts: who may see whom?", size=12)
    return picture


def draw_chat(tokenizer, turns):
    """Return which tokens of a chat are trained on, a turn a line.

    turns: for each its parts, (text, whether it is trained on), which the
    tokenizer cuts; · is a space and ↵ a new line.
    """
    shown = [
        [
            (token.replace("Ġ", "·").replace("Ċ", "↵"), yes)
            for text, yes in parts
            for token in tokenizer.encode(text).tokens
        ]
        for parts in turns
    ]
    told = " ".join(t for turn in shown for t, yes in turn if yes)
    picture = Picture(
        36 + 32 * len(shown),
        f"A chat of {len(shown)} turns, a line each. Counted are {told}; "
        "every other token is hatched.",
    )
    for i, turn in enumerate(shown):
        widths = [max(12, 4.95 * len(token) + 4) for token, _ in turn]
        scale = min(1, 372 / sum(widths))
        x, y = 4, 6 + 32 * i
        for (token, yes), width in zip(turn, widths, strict=True):
            box = Box(x, y, width * scale - 1.5, 24)
            style = _filled("output", 0.45) if yes else _filled("mask", 0.12)
            picture.rect(box, style, 3)
            if not yes:
                low, high = (box.x, y + 24), (box.right[0], y)
                picture.line(low, high, role="mask", width=0.7)
            picture.text(box.top[0], y + 16, token, size=9)
            x += width * scale
    y = 26 + 32 * len(shown)
    picture.text(6, y, "given: not counted", role="mask", at="start", size=12)
    picture.text(374, y, "the loss", role="output", at="end", size=12)
    return picture


def draw_mask(signs, texts):
    """Return the mask of a packed row: blocks along the diagonal.

    signs: of T tokens; texts (T,): the number of each token's text.
    """
    count, cell, left, top = len(signs), 22, 116, 44
    picture = Picture(
        top + cell * count + 8,
        f"A square of {count} queries and {count} keys, {signs}. Two "
        "triangles of different colours: each token sees its own text up to "
        "itself; between the texts all is blocked.",
    )
    picture.text(left - 34, top - 12, "query", at="end", size=12)
    picture.text(left + cell * count + 6, top - 12, "key", at="start", size=12)
    for t in range(count):
        for s in range(count):
            box = Box(left + cell * s, top + cell * t, cell, cell)
            if texts[t] == texts[s] and s <= t:
                role = TEXTS[int(texts[t]) - 1]
                picture.rect(box, _filled(role, 0.45), 0)
            else:
                look = f"fill:{colour('mask')};fill-opacity:"
                picture.rect(box, look + (".06" if s > t else ".25"), 0)
        role, y = TEXTS[int(texts[t]) - 1], top + cell * t + 16
        picture.text(left - 12, y, signs[t], role=role, bold=True)
        x = left + cell * (t + 0.5)
        picture.text(x, top - 12, signs[t], role=role, bold=True)
    edge = Box(left, top, cell * count, cell * count)
    picture.rect(edge, f"stroke:{colour('mask')}", 0)
    own = int((texts == 1).sum())
    x, y = left + cell * own / 2, top + cell * (own + (count - own) / 2)
    picture.text(x, y - 2, "the other text:", size=12)
    picture.text(x, y + 14, "blocked", size=12)
    picture.text(
        left + cell * (own + 2), top + 2.2 * cell, "the future", size=12
    )
    return picture


def draw_low_rank(width, rank):
    """Return a matrix, and beside it the two narrow ones of its change.

    width: of a square matrix; rank: of the change.
    """
    side = 128
    thin = max(side * rank / width, 5)
    whole, few = width * width, 2 * rank * width
    picture = Picture(
        200,
        f"A square W of {width} by {width}, {whole} numbers, which are "
        f"frozen. Beside it a tall, narrow B of {width} by {rank} and a flat "
        f"A of {rank} by {width}: {few} numbers, which are trained.",
    )
    top = 26
    picture.rect(Box(8, top, side, side), _filled("token", 0.14), 0)
    picture.text(72, top + 62, "W", bold=True, size=17)
    picture.text(72, top + 84, "frozen", size=12)
    picture.text(72, 16, f"{width} × {width}", size=12)
    picture.text(72, top + side + 18, f"{whole:,} numbers", size=12)
    picture.plus(158, top + side / 2)
    picture.rect(Box(196, top, thin, side), _filled("output", 0.4), 0)
    picture.text(196 + thin / 2, 16, f"{width} × {rank}", size=12)
    picture.text(
        196 + thin + 8,
        top + 68,
        "B",
        role="output",
        bold=True,
        at="start",
        size=17,
    )
    flat = Box(246, top + side / 2 - thin / 2, side, thin)
    picture.rect(flat, _filled("key", 0.4), 0)
    picture.text(310, flat.y - 8, f"{rank} × {width}", size=12)
    picture.text(310, flat.y + thin + 18, "A", role="key", bold=True, size=17)
    picture.text(290, top + side + 18, f"{few:,} numbers, trained", size=12)
    picture.text(190, 192, "B A has the shape of W", size=12)
    return picture


def draw_change(x, down, up, scale):
    """Return a Lora by hand: the way through W, and the way through A and B.

    x (D,); down (C, D) and up (D, C) with a rank C of 1; W is the identity.
    """
    x, down, up = (np.asarray(y, float) for y in (x, down, up))
    narrow = down @ x  # (C,)
    change = scale * up @ narrow  # (D,)
    total = x + change
    picture = Picture(
        172,
        f"x is ({x[0]:g}, {x[1]:g}). Above, W leaves it as it is. Below, A "
        f"adds it up to {narrow[0]:g}, B writes this into the second place, "
        f"times {scale:g}. The sum is ({total[0]:g}, {total[1]:g}).",
    )
    given = picture.matrix(14, 62, x[:, None], name="x")
    w = picture.matrix(116, 14, np.eye(2), name="W, frozen")
    kept = picture.matrix(256, 14, x[:, None])
    a = picture.matrix(84, 121, down, "key", name="A")
    middle = picture.matrix(172, 121, narrow[:, None], "key")
    b = picture.matrix(228, 110, up, "output", name="B")
    added = picture.matrix(300, 110, change[:, None], "output")
    plus = picture.plus(315, 76)
    out = picture.matrix(344, 54, total[:, None], cell=34, name="y")
    x0 = given.right
    picture.arrow((x0[0] + 3, 78), (60, 78), (60, 36), (w.x - 3, 36))
    picture.arrow((w.right[0] + 3, 36), (kept.x - 3, 36))
    picture.arrow(
        (x0[0] + 3, 90), (60, 90), (60, 132), (a.x - 3, 132), role="key"
    )
    picture.arrow((a.right[0] + 2, 132), (middle.x - 2, 132), role="key")
    picture.arrow((middle.right[0] + 2, 132), (b.x - 2, 132), role="key")
    picture.arrow(
        (b.right[0] + 2, 132), (added.x - 2, 132), role="output",
        text=f"· {scale:g}",
    )  # fmt: skip
    picture.arrow((kept.right[0] + 3, 36), (315, 36), plus.top)
    picture.arrow((315, 108), plus.bottom, role="output")
    picture.arrow(plus.right, (out.x - 2, 76))
    return picture


def draw_places():
    """Return an adapter beside a weight, merged into it, and taken out."""
    picture = Picture(
        132,
        "Three times a weight W: with an adapter beside it; with the adapter "
        "added into it; and alone, as it was before.",
    )
    titles = "beside", "merged", "taken out"
    for i, title in enumerate(titles):
        left = 8 + 128 * i
        picture.text(left + (57, 32, 32)[i], 16, title, bold=True)
        picture.rect(Box(left, 32, 64, 64), _filled("token", 0.14), 0)
        name = "W + B A" if i == 1 else "W"
        if i == 1:
            picture.rect(Box(left, 32, 64, 64), _filled("output", 0.25), 0)
        picture.text(left + 32, 69, name)
        if i == 0:
            picture.rect(Box(left + 72, 32, 8, 64), _filled("output", 0.45), 0)
            picture.text(left + 76, 110, "B", role="output", size=12)
            picture.rect(Box(left + 86, 60, 28, 8), _filled("key", 0.45), 0)
            picture.text(left + 100, 84, "A", role="key", size=12)
        notes = "changed", "changed, as fast", "the base again"
        picture.text(left + (57, 32, 32)[i], 126, notes[i], size=12)
    return picture


def draw_memory(gigabytes):
    """Return bars of the memory that trainings take.

    gigabytes: {training: (of what is frozen, of what is trained)}.
    """
    told = "; ".join(
        f"{name}: {frozen:.1f} and {trained:.1f}"
        for name, (frozen, trained) in gigabytes.items()
    )
    picture = Picture(
        34 + 30 * len(gigabytes),
        f"Bars of gigabytes, for what is frozen and what is trained. {told}.",
    )
    unit = 230 / max(map(sum, gigabytes.values()))
    picture.text(98, 14, "frozen", role="token", at="start", size=12)
    picture.text(146, 14, "trained", role="output", at="start", size=12)
    for i, (name, parts) in enumerate(gigabytes.items()):
        x, y = 98, 24 + 30 * i
        picture.text(90, y + 16, name, at="end")
        for part, role in zip(parts, ("token", "output"), strict=True):
            box = Box(x, y, unit * part, 22)
            if part:
                picture.rect(box, _filled(role, 0.4), 1)
            x = box.right[0]
        picture.text(x + 6, y + 16, f"{sum(parts):.1f}", at="start", size=12)
    return picture
