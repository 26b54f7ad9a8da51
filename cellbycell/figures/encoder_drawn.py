"""The drawings of *The encoder*."""

import numpy as np

from .draw import Box, Picture, colour

STREAM = 4  # how thick the residual stream is


def draw_stream(picture, x, bottom, top, gaps):
    """Draw the residual stream up to an arrow's head; gaps: (low, high)."""
    at = bottom
    for low, high in sorted(gaps, reverse=True):
        picture.line((x, at), (x, high), role="query", width=STREAM)
        at = low
    picture.arrow((x, at), (x, top), role="query", width=STREAM)


def _fill(role, share=0.3):
    """Return the style of a filled box."""
    return f"fill:{colour(role)};fill-opacity:{share};stroke:{colour(role)}"


def draw_branch(picture, stream, low, high, x, parts, wide=98):
    """Draw a branch that leaves the stream, passes parts and is added.

    low and high: where it leaves and returns; parts: (name, role, height).
    """
    picture.line((stream, low), (x, low), (x, low - 4))
    y, above = low - 4, low
    for name, role, height in parts:
        above = y - 10 - height
        picture.arrow((x, y), (x, above + height + 1))
        picture.layer(x - wide / 2, above, wide, name, role, height)
        y = above
    picture.line((x, above), (x, high))
    picture.arrow((x, high), (stream + 9, high))
    picture.plus(stream, high)


def draw_layer():
    """Return a pre-norm layer beside its stream, and what each part is for."""
    alt = (
        "A thick arrow, the residual stream, goes up from x. A branch leaves "
        "it, passes a norm and attention, and returns to a plus; a second "
        "one does so with a norm and feed-forward. Nothing stands on the "
        "stream."
    )
    picture = Picture(330, alt)
    stream = 40
    _draw_order(picture, 0, stream, 142, norm_first=True)
    for y, text in [
        (88, "each token alone"), (124, "a copy, of steady size"),
        (230, "what the others offer"), (266, "a copy, of steady size"),
    ]:  # fmt: skip
        picture.text(202, y, text, at="start", size=12)
    return picture


def draw_orders():
    """Return a layer in both orders, the residual stream at its left."""
    alt = (
        "A layer twice. A thick arrow, the residual stream, goes up; a branch "
        "leaves it, passes attention and returns to a plus, and another does "
        "so with feed-forward. Post-norm: a norm stands on the stream after "
        "each plus. Pre-norm: a norm stands in each branch, before its "
        "sub-layer, and none on the stream."
    )
    picture = Picture(346, alt)
    for left, title in [(0, "post-norm"), (192, "pre-norm")]:
        picture.text(left + 96, 16, title, bold=True)
        _draw_order(picture, 16, left + 34, left + 124, title == "pre-norm")
    return picture


def _draw_order(picture, top, stream, x, norm_first):
    """Draw a layer: its stream at `stream`, its branches at x."""
    gaps = []
    picture.text(stream, top + 320, "x", role="query", bold=True)
    for low, name, role in [
        (top + 288, "attention", "key"), (top + 146, "feed-forward", "value")
    ]:  # fmt: skip
        parts = [(name, role, 28)]
        gaps.append((low - 106, low - 90))
        if norm_first:
            parts.insert(0, ("norm", "output", 24))
        else:
            picture.layer(stream - 26, low - 137, 52, "norm", "output", 24)
            gaps.append((low - 137, low - 113))
        draw_branch(picture, stream, low, low - 98, x, parts)
    draw_stream(picture, stream, top + 304, 8, gaps)


def draw_angles(series):
    """Return how far two vectors are apart, round by round.

    Parameters
    ----------
    series
        {name: cosine similarities, one for each round}, two rows.
    """
    told = "; ".join(
        f"{name}: {', '.join(f'{x:.2f}' for x in row)}"
        for name, row in series.items()
    )
    alt = (
        "Two arrows for each round, as far apart as the two tokens that are "
        f"least alike, by their cosine similarity. {told}."
    )
    picture = Picture(96 * len(series) + 22, alt)
    count = len(next(iter(series.values())))
    step = 304 / count
    for r, (name, row) in enumerate(series.items()):
        floor = 70 + 96 * r
        picture.text(4, floor - 14, name, at="start")
        for i, share in enumerate(row):
            x = 76 + (i + 0.5) * step
            half = np.arccos(min(1, round(float(share), 2))) / 2
            role = "wrong" if share > 0.995 else "query"
            for side in (-1, 1):
                end = x + side * 31 * np.sin(half), floor - 42 * np.cos(half)
                picture.arrow((x, floor), end, role=role, width=2)
            text = f"{share:.2f}"
            picture.text(x, floor + 18, text, role=role, size=12)
    for i in range(count):
        x = 76 + (i + 0.5) * step
        picture.text(x, 96 * len(series) + 14, str(i), size=12)
    picture.text(4, 96 * len(series) + 14, "round", at="start", size=12)
    return picture


def draw_norm(row):
    """Return what a norm does to a row, step by step.

    Parameters
    ----------
    row
        A few numbers.
    """
    row = np.asarray(row, float)
    centred = row - row.mean()
    root = np.sqrt((centred**2).mean())
    steps = [
        ("the row", row, "token"),
        (f"minus the mean, {row.mean():g}", centred, "query"),
        (f"divided by {root:g}", centred / root, "output"),
    ]
    told = "; ".join(
        f"{name}: {', '.join(f'{x:g}' for x in numbers)}"
        for name, numbers, _ in steps
    )
    picture = Picture(214, f"Bars above and below a line of zero. {told}.")
    unit, step = 13, 30
    zero = 92
    for place, (name, numbers, role) in enumerate(steps):
        x = 8 + 126 * place
        picture.line((x - 4, zero), (x + 4 * step, zero), role="mask")
        for i, number in enumerate(numbers):
            high = abs(number) * unit
            top = zero - high if number > 0 else zero
            box = Box(x + i * step + 4, top, 20, high)
            picture.rect(box, _fill(role), 0)
        picture.matrix(x, 140, [numbers], role, cell=29, height=24)
        picture.text(x + 58, 184, name, size=12)
    for place, (_, numbers, _) in enumerate(steps):
        spread = ((numbers - numbers.mean()) ** 2).mean()
        text = f"mean {numbers.mean():g}, variance {spread:g}"
        picture.text(66 + 126 * place, 206, text, size=12)
    return picture


def draw_network(d_model, d_ff, tokens):
    """Return the feed-forward network at each position alone.

    Parameters
    ----------
    d_model, d_ff
        The sizes to which it is drawn.
    tokens
        Three of them.
    """
    alt = (
        f"Three positions side by side, without a line between them. At each "
        f"a vector of {d_model} numbers is widened to {d_ff}, passes a ReLU "
        f"and is narrowed to {d_model} again, by the same two matrices."
    )
    picture = Picture(212, alt)
    unit = 4.5
    for place, token in enumerate(tokens):
        x = 118 + 104 * place
        small, large = d_model * unit / 2, d_ff * unit / 2
        picture.text(x, 16, token)
        rows = [(26, small, "token"), (94, large, "value")]
        rows.append((184, small, "token"))
        for y, half, role in rows:
            box = Box(x - half, y, 2 * half, 18)
            picture.rect(box, _fill(role, 0.2), 2)
        for (y, a, _), (z, b, _) in zip(rows, rows[1:], strict=False):
            for side in (-1, 1):
                picture.line(
                    (x + side * a, y + 18), (x + side * b, z), role="mask"
                )
        picture.text(x, 140, "ReLU", size=12)
    for y, text in [
        (40, f"{d_model}"), (74, "widen"), (108, f"{d_ff}"),
        (162, "narrow"), (198, f"{d_model}"),
    ]:  # fmt: skip
        picture.text(4, y, text, at="start", bold=text in "widen narrow")
    return picture


def draw_add_and_norm(x, change):
    """Return a norm, a sub-layer and a sum, in numbers.

    Parameters
    ----------
    x, change
        A row, and what a sub-layer returns for its norm.
    """
    x, change = np.asarray(x, float), np.asarray(change, float)
    centred = x - x.mean()
    normed = centred / np.sqrt((centred**2).mean())
    rows = x, normed, change, x + change
    told = [" ".join(f"{n:g}" for n in row) for row in rows]
    alt = (
        f"The row x, {told[0]}, goes straight up to a plus. A branch of it is "
        f"normalised, {told[1]}, and goes through the sub-layer, which "
        f"returns {told[2]}. The sum is {told[3]}."
    )
    picture = Picture(258, alt)
    stream, x_branch = 94, 298
    for x_left, y, numbers, role in [
        (30, 224, x, "token"), (30, 16, rows[3], "token"),
        (234, 150, normed, "output"), (234, 64, change, "key"),
    ]:  # fmt: skip
        picture.matrix(x_left, y, [numbers], role, cell=32, height=26)
    picture.text(22, 242, "x", at="end", bold=True)
    picture.line((158, 237), (x_branch, 237))
    norm = picture.layer(x_branch - 32, 192, 64, "norm", "output", 24)
    picture.arrow((x_branch, 237), (x_branch, 217))
    picture.arrow(norm.top, (x_branch, 177))
    box = picture.layer(x_branch - 58, 106, 116, "sub-layer f", "key", 26)
    picture.arrow((x_branch, 149), (x_branch, 133))
    picture.arrow(box.top, (x_branch, 91))
    picture.arrow((233, 77), (stream + 9, 77))
    picture.arrow((stream, 223), (stream, 86), role="query", width=STREAM)
    picture.plus(stream, 77)
    picture.arrow((stream, 68), (stream, 43), role="query", width=STREAM)
    picture.text(170, 34, "x + f(LN(x))", at="start")
    return picture


def draw_stack(num_layers):
    """Return a stack of layers beside the residual stream.

    Parameters
    ----------
    num_layers
        How many are drawn.
    """
    height = 40 * num_layers + 124
    alt = (
        f"The embedded tokens enter a thick arrow, the residual stream, which "
        f"goes up past {num_layers} layers; each reads it and adds to it. A "
        "norm at the top gives the memory."
    )
    picture = Picture(height, alt)
    stream, gaps = 96, []
    picture.text(stream, height - 12, "tokens and positions")
    for i in range(num_layers):
        y = height - 72 - 40 * i
        box = picture.layer(190, y - 14, 150, f"layer {i}", "key")
        picture.arrow((stream, y + 8), (box.x - 1, y + 8))
        picture.arrow((box.x, y - 8), (stream + 9, y - 8))
        picture.plus(stream, y - 8)
        gaps.append((y - 16, y))
    draw_stream(picture, stream, height - 28, 61, gaps)
    picture.layer(stream - 40, 34, 80, "norm", "output", 26)
    picture.arrow((stream, 33), (stream, 22), role="output")
    picture.text(stream + 12, 16, "memory", role="output")
    return picture


def draw_parameters(parts):
    """Return the numbers that a layer learns, as areas.

    Parameters
    ----------
    parts
        {name: how many}, in millions.
    """
    total = sum(parts.values())
    told = ", ".join(f"{name} {n:.2f}" for name, n in parts.items())
    picture = Picture(
        96, f"A bar of {total:.2f} million numbers, cut in parts: {told}."
    )
    x, roles = 6, ["key", "value", "output"]
    for (name, number), role in zip(parts.items(), roles, strict=True):
        wide = max(3, 366 * number / total)
        box = Box(x, 30, wide, 40)
        picture.rect(box, _fill(role), 0)
        if wide > 40:
            picture.text(x + wide / 2, 22, name, role=role)
            picture.text(x + wide / 2, 55, f"{number:.2f} million")
        else:
            picture.text(x + wide, 90, f"{name}: {number:.3f}", at="end",
                         role=role, size=12)  # fmt: skip
        x += wide
    return picture


def draw_losses(losses, floor):
    """Return losses on a line, one for each model.

    Parameters
    ----------
    losses
        {model: its loss}.
    floor
        A loss that a model reaches without reading, which is marked.
    """
    # Where a loss is drawn does not hang on digits that nobody reads.
    losses = {name: round(float(loss), 2) for name, loss in losses.items()}
    floor = round(float(floor), 2)
    told = "; ".join(f"{name}: {loss:.2f}" for name, loss in losses.items())
    picture = Picture(50 + 34 * len(losses), f"Losses on a line. {told}.")
    low, unit = 2.55, 400  # where the line begins, and what 1 takes on it
    at = 150 + unit * (floor - low)
    bottom = 14 + 34 * len(losses)
    picture.line((at, 6), (at, bottom), role="wrong", dashed=True)
    picture.text(at, bottom + 18, "frequencies", role="wrong", size=12)
    for r, (name, loss) in enumerate(losses.items()):
        y, x = 26 + 34 * r, 150 + unit * (loss - low)
        picture.text(4, y + 4.5, name, at="start")
        picture.line((150, y), (x, y), role="query")
        box = Box(x - 5.5, y - 5.5, 11, 11)
        picture.rect(box, f"fill:{colour('query')}", 5.5)
        picture.text(x - 10, y - 7, f"{loss:.2f}", at="end", size=12)
    return picture
