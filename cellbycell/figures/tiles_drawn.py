"""The drawings of *Attention in tiles*: squares, and boxes that merge."""

import math

import numpy as np

from .draw import Box, Picture, colour


def _fill(role, share):
    return f"fill:{colour(role)};fill-opacity:{share}"


def draw_square(length, width):
    """Return the square of the weights beside the output, to scale.

    length: of the text; width: of the output's rows.
    """
    weights = 4 * length**2 / 10**9
    output = 4 * length * width / 10**6
    picture = Picture(
        246,
        f"A large square, the weights of one head for {length:,} tokens, "
        f"{weights:g} gigabytes, with one small tile in it; and beside it a "
        f"line as high as the square, the output, {output:.0f} megabytes; to "
        "scale it would be thinner still.",
    )
    side = 200
    square = Box(30, 24, side, side)
    edge = f"stroke:{colour('wrong')};stroke-width:1.5;"
    picture.rect(square, edge + _fill("wrong", 0.12), radius=0)
    picture.text(square.top[0], 16, f"{length:,} keys", size=12)
    picture.text(square.top[0], 104, "weights", role="wrong")
    text = f"{weights:g} GB"
    picture.text(square.top[0], 128, text, role="wrong", bold=True, size=17)
    tile = Box(60, 176, 14, 14)
    edge = f"stroke:{colour('query')};"
    picture.rect(tile, edge + _fill("query", 0.5), radius=0)
    picture.text(82, 188, "a tile", role="query", at="start")
    line = (262, 24), (262, 24 + side)
    picture.line(*line, role="output", width=1)
    picture.text(274, 104, "output", role="output", at="start")
    text = f"{output:.0f} MB"
    picture.text(274, 128, text, role="output", at="start", bold=True, size=17)
    wide = 1 / (side * width / length)
    text = f"to scale, but the line is {wide:.0f} times too thick"
    picture.text(4, 242, text, at="start", size=12)
    return picture


def draw_sums(exponentials, values):
    """Return the two sums of a row in two parts, and as a whole.

    exponentials (S,) of the scores, values (S,); S is even.
    """
    half = len(values) // 2
    above, below = exponentials * values, exponentials
    parts = [slice(0, half), slice(half, None)]
    sums = [(above[p].sum(), below[p].sum()) for p in parts]
    whole = above.sum(), below.sum()
    told = " and ".join(f"{a:g} over {b:g}" for a, b in sums)
    picture = Picture(
        232,
        f"Four keys in two parts. Their numerators and denominators, {told}, "
        f"add up to {whole[0]:g} over {whole[1]:g}, which is "
        f"{whole[0] / whole[1]:g}.",
    )
    cell = 52
    picture.text(72, 28, "exponential", role="query", at="end", size=12)
    picture.text(72, 58, "value", role="value", at="end", size=12)
    for i, part in enumerate(parts):
        x = 84 + 150 * i
        picture.matrix(x, 12, [below[part]], "query", cell=cell)
        made = picture.matrix(x, 42, [values[part]], "value", cell=cell)
        picture.frame(Box(x - 6, 6, 2 * cell + 12, 64))
        products = "+".join(
            f"{b:g}·{v:g}"
            for b, v in zip(below[part], values[part], strict=True)
        )
        middle = made.bottom[0]
        picture.arrow((middle, 72), (middle, 88), width=1.2)
        picture.text(middle, 104, products, size=12)
        picture.text(middle, 122, f"= {sums[i][0]:g}", bold=True)
        picture.line((middle - 34, 129), (middle + 34, 129), width=1)
        picture.text(middle, 146, f"{sums[i][1]:g}", bold=True)
    picture.text(211, 134, "+", size=17)
    picture.arrow((211, 150), (211, 174), width=1.2)
    picture.text(190, 194, f"{whole[0]:g}", bold=True)
    picture.line((170, 201), (212, 201), width=1)
    picture.text(190, 218, f"{whole[1]:g}", bold=True)
    text = f"= {whole[0] / whole[1]:g}"
    picture.text(222, 206, text, role="output", at="start", bold=True)
    return picture


def _pair(picture, x, y, name, output, below):
    """Draw a box with an output and a log-sum; return it."""
    box = picture.layer(x, y, 132, "", "output", 62)
    picture.text(box.top[0], y + 17, name, size=12)
    picture.text(x + 8, y + 36, "output", at="start", size=12)
    picture.text(x + 8, y + 54, "log-sum", at="start", size=12)
    picture.text(x + 124, y + 36, f"{output:.4g}", at="end", bold=True)
    picture.text(x + 124, y + 54, f"ln {below:g}", at="end", bold=True)
    return box


def draw_join(exponentials, values):
    """Return two pairs, output and log-sum, that merge into one.

    exponentials (S,) of the scores, values (S,); S is even.
    """
    half = len(values) // 2
    pairs = []
    for part in (slice(0, half), slice(half, None), slice(None)):
        below = exponentials[part].sum()
        pairs.append(
            ((exponentials[part] * values[part]).sum() / below, below)
        )
    (one, low), (two, high), (both, total) = pairs
    picture = Picture(
        206,
        f"Two boxes merge: output {one:.4g} with log-sum ln {low:g}, and "
        f"output {two:.4g} with ln {high:g}. Weighted {low:g} and {high:g} "
        f"tenths they become output {both:g} with ln {total:g}.",
    )
    boxes = [
        _pair(picture, 20, 8, "first two keys", one, low),
        _pair(picture, 228, 8, "last two keys", two, high),
    ]
    last = _pair(picture, 124, 136, "all four keys", both, total)
    for box, share, side in zip(boxes, (low, high), (-1, 1), strict=True):
        x, y = box.bottom
        end = last.top[0] + side * 30, last.y
        picture.arrow((x, y), (x, 104), (end[0], 104), end, role="output")
        at = x - side * 6, y + 22
        text = f"× {share:g}/{total:g}"
        picture.text(
            *at, text, role="query", at="end" if side > 0 else "start"
        )
    return picture


def draw_walk(length, size):
    """Return a causal mask in tiles, numbered in the order of their turn.

    length: of the text; size: of a tile, which need not divide it.
    """
    mask = np.tri(length)
    starts = range(0, length, size)
    cell, left, top = 28, 30, 26
    open_tiles = sum(s <= t for t in starts for s in starts)
    picture = Picture(
        top + cell * length + 32,
        f"A causal mask of {length} by {length} in tiles of {size}. "
        f"{open_tiles} tiles are numbered, row of tiles by row of tiles; "
        "those above the diagonal are blocked throughout and left out. "
        "Beside each row of tiles is the pair that it leaves.",
    )
    picture.matrix(
        left, top, np.where(mask, 1, np.nan), "query", cell=cell,
        height=cell, texts=[[""] * length] * length,
    )  # fmt: skip
    turn = 0
    for t in starts:
        high = min(size, length - t)
        for s in starts:
            wide = min(size, length - s)
            box = Box(
                left + s * cell, top + t * cell, wide * cell, high * cell
            )
            style = f"stroke:{colour(None)};stroke-width:2.5"
            picture.rect(box, style, radius=0)
            if s <= t:
                turn += 1
                x, y = box.x + cell / 2, box.y + box.height - cell / 2
                picture.text(x, y + 6, turn, bold=True, size=17)
        y = top + (t + high / 2) * cell
        x = left + length * cell
        picture.arrow((x + 4, y), (x + 28, y), role="output")
        pair = picture.layer(x + 30, y - 22, 96, "output", "output", 22)
        picture.layer(pair.x, y, 96, "log-sum", "output", 22)
    picture.text(left + length * cell / 2, 18, "keys")
    picture.text(4, 18, "queries", at="start", size=12)
    y = top + cell * length + 20
    picture.text(left, y, "hatched: not in sight", at="start", size=12)
    return picture


def draw_peaks(lengths, size):
    """Return the weights of two texts, each with one tile, to scale.

    lengths: the two texts', the second twice as long; size: of a tile.
    """
    short, long = lengths
    picture = Picture(
        236,
        f"Two squares of weights, {short} and {long} on a side: the second "
        f"has four times the area. In each one tile of {size} by {size}, "
        "which has the same size in both.",
    )
    scale, floor = 180 / long, 206
    for x, length, name in ((34, short, "1"), (168, long, "4")):
        side = length * scale
        square = Box(x, floor - side, side, side)
        edge = f"stroke:{colour('wrong')};stroke-width:1.5;"
        picture.rect(square, edge + _fill("wrong", 0.12), radius=0)
        tile = Box(x, square.y, size * scale, size * scale)
        edge = f"stroke:{colour('query')};"
        picture.rect(tile, edge + _fill("query", 0.6), radius=0)
        place = square.top[0], square.y + side / 2 + 12
        picture.text(*place, f"× {name}", role="wrong", bold=True, size=17)
        picture.text(square.top[0], floor + 20, f"{length} tokens")
    picture.text(34, 92, f"tile of {size}", role="query", at="start")
    return picture


def draw_backward():
    """Return what the backward pass has, and what it computes again."""
    picture = Picture(
        222,
        "From a tile's queries and keys come its scores, and with the kept "
        "log-sum its weights, computed again. The weights and the gradient "
        "from above give the gradients of the tile's keys and values at "
        "once, and a part of the queries' gradient, which is added up.",
    )
    query = picture.layer(8, 10, 76, "queries", "query")
    key = picture.layer(98, 10, 76, "keys", "key")
    kept = picture.layer(270, 10, 102, "log-sum", "output")
    picture.text(222, 28, "kept:", role="output")
    weights = picture.layer(66, 76, 196, "weights, computed again", "token")
    grad = picture.layer(284, 132, 88, "gradient", "output", 40)
    picture.text(grad.top[0], 126, "from above", size=12)
    for box, x in ((query, 90), (key, 136)):
        points = box.bottom, (box.bottom[0], 56), (x, 56), (x, 76)
        picture.arrow(*points, width=1.2)
    x = kept.bottom[0]
    points = (x, 38), (x, 90), weights.right
    picture.arrow(*points, role="output", width=1.2)
    meet = picture.layer(66, 138, 196, "equation (4)", "token")
    picture.arrow(weights.bottom, meet.top, width=1.2)
    picture.arrow((284, 152), meet.right, role="output", width=1.2)
    for x, role, text in (
        (4, "query", "queries, added up"), (146, "key", "keys, at once"),
        (264, "value", "values, at once"),
    ):  # fmt: skip
        wide = 134 if role == "query" else 110
        box = picture.layer(x, 190, wide, text, role, 26)
        at = min(max(box.top[0], 80), 250)
        points = (at, 166), (at, 178), (box.top[0], 178), box.top
        picture.arrow(*points, role=role, width=1.2)
    return picture


def draw_first_tile(length, size):
    """Return a causal mask in tiles of keys, right and counted from zero.

    length: of the text; size: of a tile.
    """
    right = np.tri(length, dtype=bool)
    wrong = np.arange(length) % size <= np.arange(length)[:, None]
    count = int((wrong & ~right).sum())
    cell = 22
    picture = Picture(
        218,
        f"Two masks of {length} by {length}, cut into tiles of {size} keys. "
        "Left a causal mask, a triangle. Right each tile has the mask of the "
        f"first: {count} cells above the diagonal are open, and red.",
    )
    for x, mask, name in (
        (14, right, "where the tile begins"), (214, wrong, "from zero"),
    ):  # fmt: skip
        texts = [[""] * length] * length
        made = picture.matrix(
            x, 30, np.where(mask, 1, np.nan), "query", cell=cell,
            height=cell, texts=texts,
        )  # fmt: skip
        for t, s in np.argwhere(mask & ~right):
            box = Box(x + s * cell, 30 + t * cell, cell, cell)
            picture.rect(box, _fill("wrong", 0.75), radius=0)
        for s in range(0, length, size):
            wide = min(size, length - s) * cell
            box = Box(x + s * cell, 30, wide, length * cell)
            style = f"stroke:{colour(None)};stroke-width:2"
            picture.rect(box, style, radius=0)
        picture.text(made.top[0], 20, name, bold=True)
    text = f"red: {count} keys of the future, in sight"
    picture.text(190, 208, text, role="wrong")
    return picture


def draw_stream(exponentials):
    """Return a sum in two tiles, rescaled when a larger score comes.

    exponentials (S,) of the scores; S is even.
    """
    half = len(exponentials) // 2
    first, last = exponentials[:half], exponentials[half:]
    one, two = first.max(), exponentials.max()
    low = (first / one).sum()
    moved, more = low * one / two, (last / two).sum()
    if not math.isclose((moved + more) * two, exponentials.sum()):
        raise ValueError("the rescaled parts have to be the whole sum")
    picture = Picture(
        150,
        f"After the first tile the largest exponential is {one:g} and the "
        f"sum over it {low:g}. The second tile brings {two:g}: the old sum "
        f"is multiplied by {one:g}/{two:g}, and {more:g} is added, which "
        f"makes {moved + more:g}.",
    )
    for y, name, part, most, text in (
        (8, "tile 1", first, one, f"sum {low:g}"),
        (92, "tile 2", last, two, f"{moved:g} + {more:g} = {moved + more:g}"),
    ):
        picture.text(4, y + 16, name, at="start")
        picture.matrix(58, y, [part], "query", cell=34, height=26)
        picture.text(146, y + 18, f"m = ln {most:g}", at="start")
        box = picture.layer(238, y, 138, text, "output", 26)
    x = box.top[0]
    picture.arrow((x, 34), (x, 92), role="output", text="")
    text = f"× {one:g}/{two:g}, rescaled"
    picture.text(x - 8, 68, text, role="output", at="end")
    picture.text(58, 142, "exponentials", at="start", size=12, role="query")
    return picture
