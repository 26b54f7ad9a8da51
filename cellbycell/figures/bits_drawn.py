"""The drawings of *Fewer bits*: steps, groups, blocks and a file."""

import numpy as np

from .bars import draw_bars
from .draw import WIDTH, Box, Picture, colour


def _filled(role, share):
    """Return the style of a box of a role, filled in part."""
    edge = f"stroke:{colour(role)};fill:{colour(role)};"
    return f"{edge}fill-opacity:{share:.2f}"


def draw_steps(weights):
    """Return weights of four bits above the levels that they go to.

    weights: a few numbers, the largest of them a whole number of steps.
    """
    step = max(map(abs, weights)) / 7
    wholes = [round(w / step) for w in weights]
    told = ", ".join(
        f"{w:g} to {q}" for w, q in zip(weights, wholes, strict=True)
    )
    picture = Picture(
        150,
        f"A line with the levels from -7 to 7, a step of {step:g} apart. "
        f"Each weight goes to the nearest level: {told}.",
    )

    def place(w):
        return 190 + 24.5 * w / step

    band = Box(place(-3.5 * step), 72, 24.5, 34)
    picture.rect(band, _filled("key", 0.18), radius=0)
    picture.line((place(-7 * step), 96), (place(7 * step), 96), role="key")
    for q in range(-7, 8):
        x = place(q * step)
        picture.line((x, 88), (x, 104), role="key")
        text = str(q).replace("-", "−")
        picture.text(x, 120, text, role="key", size=12)
    picture.text(place(-7 * step), 142, "q", role="key", bold=True)
    text = f"this band: half a step of {step:g} to each side"
    picture.text(
        place(-3.5 * step), 142, text, role="key", at="start", size=12
    )
    for w, q in zip(weights, wholes, strict=True):
        x = place(w)
        picture.text(x, 18, f"{w:g}".replace("-", "−"), role="query")
        picture.arrow((x, 24), (place(q * step), 86), role="query")
        look = f"fill:{colour('query')}"
        end = f"{place(q * step):.1f}"
        picture.add(f'<circle cx="{end}" cy="96" r="4.5" style="{look}"/>')
    return picture


def draw_groups(weights, sizes):
    """Return a row of weights in four bits, in groups of several sizes.

    weights (D,); sizes: of the groups.
    """
    weights = np.asarray(weights, float)
    count, left = len(weights), 6
    wide = 300 / count
    drawn, told = [], []
    for size in sizes:
        parts = weights.reshape(-1, size)
        steps = np.abs(parts).max(1) / 7
        wholes = np.round(parts / steps[:, None]).astype(int)
        drawn.append((size, steps, wholes.ravel()))
        told.append(f"{(wholes == 0).sum()} in groups of {size}")
    picture = Picture(
        22 + 54 * len(sizes),
        f"{count} weights as strips, one of them an outlier; those that "
        f"become zero are marked: {', '.join(told)}. Each group has a step "
        "of its own, and only the outlier's is long.",
    )
    picture.text(left, 14, "each group and its step", at="start", size=12)
    picture.text(WIDTH - 4, 14, "zeros", role="wrong", at="end", size=12)
    for i, (size, steps, wholes) in enumerate(drawn):
        y = 24 + 54 * i
        for d, whole in enumerate(wholes):
            box = Box(left + wide * d, y, wide, 26)
            if whole:
                look = f"fill:{colour('query')};fill-opacity:"
                picture.rect(box, f"{look}{abs(whole) / 9:.2f}", 0)
            else:
                look = f"fill:{colour('wrong')}"
                picture.rect(Box(box.x, y + 9, wide, 8), look, 0)
        for g, step in enumerate(steps):
            box = Box(left + wide * size * g, y, wide * size, 26)
            picture.rect(box, f"stroke:{colour(None)};stroke-width:1.5", 0)
            picture.text(box.bottom[0], y + 41, f"{step:.2f}", size=12)
        zeros = (wholes == 0).sum()
        picture.text(WIDTH - 4, y + 18, zeros, role="wrong", at="end")
    return picture


def draw_product(x, w, x_scale, w_scale):
    """Return the product of two rows of whole numbers, scales outside.

    x, w: whole numbers, as many as each other; x_scale, w_scale: theirs.
    """
    products = [a * b for a, b in zip(x, w, strict=True)]
    total = sum(products)
    scale = x_scale * w_scale
    picture = Picture(
        178,
        f"Two rows of whole numbers are multiplied place by place and added "
        f"up to {total:,}; only then come the two scales, {x_scale:g} and "
        f"{w_scale:g}, which make it {total * scale:.2f}.",
    )
    rows = (
        ("q of x", "query", x, x_scale), ("q of W", "key", w, w_scale),
        ("products", "token", products, None),
    )  # fmt: skip
    for i, (name, role, numbers, own) in enumerate(rows):
        y = 8 + 36 * i
        box = picture.matrix(78, y, [numbers], role, cell=62)
        picture.text(70, y + 16, name, role=role, at="end")
        if own:
            picture.text(
                box.right[0] + 12, y + 16, f"· {own:g}", role=role, at="start"
            )
    for i in range(len(x)):
        middle = 78 + 62 * (i + 0.5)
        picture.text(middle, 40, "×", size=11)
        picture.arrow((middle, 66), (middle, 78), width=1)
        picture.line((middle, 104), (middle, 112), width=1)
    ends = 78 + 31, 78 + 62 * len(x) - 31
    picture.line((ends[0], 112), (ends[1], 112), width=1)
    middle = sum(ends) / 2
    picture.arrow((middle, 112), (middle, 126), width=1)
    picture.text(middle, 142, f"{total:,}", bold=True)
    picture.text(middle - 40, 142, "int32", at="end", size=12)
    for at, own, role in ((-42, x_scale, "query"), (2, w_scale, "key")):
        picture.text(middle + at, 170, f"{own:g} ·", role=role, at="end")
    picture.text(middle + 8, 170, f"{total:,}", at="start")
    answer = f"= {total * scale:.2f}"
    picture.text(middle + 54, 170, answer, at="start", bold=True)
    return picture


def draw_block(block):
    """Return a block of Q4_1: scale, minimum, and two weights in a byte.

    block (20,): bytes.
    """
    scale, least = (float(x) for x in block[:4].view("<f2"))
    first = int(block[4])
    low, high = first & 15, first >> 4
    picture = Picture(
        196,
        "20 bytes: two for the scale, two for the minimum, and sixteen with "
        f"two weights each. The first of these, {first:02x}, has {low} for "
        f"weight 1 in its low nibble, and {high} for weight 17 in its high "
        "one.",
    )
    for i, byte in enumerate(block):
        role = "key" if i < 2 else "value" if i < 4 else "query"
        box = Box(4 + 18.6 * i, 30, 18.6, 24)
        picture.rect(box, _filled(role, 0.35 if i == 4 else 0.12), 0)
        picture.text(box.top[0], 46, f"{int(byte):02x}", size=12)
    picture.text(4, 18, "s", role="key", at="start", bold=True)
    picture.text(41, 18, "m", role="value", at="start", bold=True)
    picture.text(220, 18, "16 bytes, 32 weights", role="query")
    x = 4 + 18.6 * 4.5
    picture.line((x, 54), (x, 64), (275, 64), role="query")
    for end in (95, 275):
        picture.arrow((end, 64), (end, 72), role="query")
    for name, whole, left, at in (
        ("high", high, 4, 17), ("low", low, 192, 1)
    ):  # fmt: skip
        box = Box(left, 72, 182 if name == "high" else 180, 46)
        picture.rect(box, _filled("query", 0.2), 3)
        picture.text(box.top[0], 90, f"{name} nibble: q = {whole}", size=12)
        found = f"{scale:.5f} · {whole} + {least:.4f}"
        text = found.replace("+ -", "− ").replace("-", "−")
        picture.text(box.top[0], 109, text, size=12)
        picture.arrow((box.bottom[0], 118), (box.bottom[0], 142), role="query")
        value = f"{scale * whole + least:.4f}".replace("-", "−")
        text = f"weight {at}: {value}"
        picture.text(box.bottom[0], 158, text, bold=True)
    bits = 8 * len(block) / 32
    picture.text(
        190, 186, f"20 bytes × 8 / 32 weights = {bits:g} bits a weight",
        size=12,
    )  # fmt: skip
    return picture


def draw_file():
    """Return a GGUF file from its first byte to its last."""
    picture = Picture(
        178,
        "A file as a column: the word GGUF, counts, settings with names, a "
        "list of tensors with shape, type and place, and then the bytes of "
        "the tensors, to which the places point.",
    )
    rows = (
        ("GGUF, version, two counts", "token", 26),
        ("metadata: llama.block_count = 30", "token", 26),
        ("blk.0.attn_q   576, 576   Q4_1", "key", 26),
        ("blk.0.attn_k   576, 192   Q4_1", "value", 26),
    )
    y = 4
    boxes = []
    for text, role, tall in rows:
        boxes.append(picture.layer(4, y, 300, "", role, tall))
        picture.text(14, y + 18, text, at="start", size=12)
        if role in ("key", "value"):
            picture.text(296, y + 18, "place", role=role, at="end", size=12)
        y += tall + 3
    y += 12
    for role, count in (("key", 8), ("value", 4)):
        for c in range(count):
            x = (
                4
                + 24 * (c + (8 if role == "value" else 0))
                + (12 if role == "value" else 0)
            )
            picture.rect(Box(x, y, 24, 24), _filled(role, 0.25), 0)
    picture.text(316, y + 17, "...", at="start")
    picture.text(4, y + 42, "blocks of 32 weights", at="start", size=12)
    for box, x, out in ((boxes[3], 220, 330), (boxes[2], 16, 350)):
        role = "value" if x == 220 else "key"
        level = y - 4 if role == "value" else y - 9
        picture.arrow(
            box.right, (out, box.right[1]),
            (out, level), (x, level), (x, y), role=role,
        )  # fmt: skip
    return picture


def draw_losses(measured):
    """Return what SmolLM2 loses on a text, by bits and what shares a scale.

    measured: what `rounded_smol` returns.
    """
    stored = {
        "groups": measured["weights"]["32"],
        "rows": measured["weights"]["row"],
    }
    bars = [("as published", round(measured["exact"], 2), "value", "")]
    for bits, name in (8, "groups"), (4, "groups"), (4, "rows"), (2, "groups"):
        loss = round(stored[name][str(bits)], 2)
        role = "wrong" if loss > 5 else "key"
        bars.append((f"{bits} bits, {name}", loss, role, ""))
    return draw_bars(bars, "The loss on the text, by what shares a scale")
