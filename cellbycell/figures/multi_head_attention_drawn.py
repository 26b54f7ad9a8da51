"""The drawings of *Multi-head attention*."""

import numpy as np

from .draw import Box, Picture, colour

FOLLOWED = 1  # the head that is blue, while the others are grey


def _shade(i):
    """Return the role and the share of colour of head i."""
    return ("query", 1) if i == FOLLOWED else ("token", 0)


def _strip(picture, x, y, count, step, height=16):
    """Draw a row that is cut into heads; return their boxes."""
    boxes = []
    for i in range(count):
        role, share = _shade(i)
        boxes.append(
            picture.matrix(
                x + i * step,
                y,
                [share],
                role,
                texts=[[""]],
                cell=step,
                height=height,
            )  # fmt: skip
        )
    return boxes


def draw_split(x, num_heads):
    """Return columns split among heads, which attend, and joined again.

    Parameters
    ----------
    x
        Whole numbers, (T, D), a row for each token.
    num_heads
        How many heads share the columns.
    """
    seq_len, d_model = np.shape(x)
    size = d_model // num_heads
    alt = (
        f"{d_model} columns of {seq_len} tokens are cut into {num_heads} "
        f"heads of {size} columns; each head attends by itself, and their "
        "outputs are joined side by side."
    )
    cell, height, gap = 24, 20, 12
    tall, wide = seq_len * height, size * cell
    lower = 62 + tall + 46
    picture = Picture(lower + 118 + tall, alt)
    whole, apart = 70, 70 - gap
    names = [f"token {t}" for t in range(seq_len)]
    for t, name in enumerate(names):
        picture.text(64, 20 + height * (t + 0.5), name, at="end")
    for i in range(num_heads):
        role, share = _shade(i)
        columns = np.asarray(x)[:, i * size : (i + 1) * size]
        shares = np.full(columns.shape, share)
        left, own = whole + i * wide, apart + i * (wide + gap)
        place = dict(role=role, cell=cell, height=height)
        top = picture.matrix(left, 16, shares, texts=columns, **place)
        head = picture.matrix(own, tall + 58, shares, texts=columns, **place)
        (a, b), (c, d) = top.bottom, head.top
        picture.arrow((a, b + 2), (c, d - 19), role=role)
        picture.text(c, d - 6, f"head {i}", role=role)
        attends = picture.head(own, lower + 34, wide, "attend", role)
        picture.arrow((c, head.bottom[1] + 2), (c, lower + 34), role=role)
        empty = np.full(columns.shape, "")
        joined = picture.matrix(left, lower + 86, shares, texts=empty, **place)
        (a, b), (c, d) = attends.bottom, joined.top
        picture.arrow((a, b + 1), (c, d - 2), role=role)
    middle = whole + d_model * cell / 2
    picture.text(
        middle, lower + 104 + tall, f"joined: {d_model} columns again"
    )
    return picture


def draw_view(by_view, moved):
    """Return what two heads get by view alone, and by view then transpose.

    Parameters
    ----------
    by_view, moved
        The numbers from zero on, wrong and right, (2, T, K).
    """
    heads, seq_len, size = np.shape(moved)
    width = heads * size
    alt = (
        "Twelve numbers in memory, four for each of three tokens. View, then "
        "transpose: head 0 has the first two numbers of each token, head 1 "
        "the last two. View alone: head 0 has numbers 0 to 5, head 1 numbers "
        "6 to 11, and four of the six pairs are in the wrong place."
    )
    picture = Picture(208, alt)
    picture.text(190, 14, "in memory, one number after another")
    for t in range(seq_len):
        for i in range(heads):
            role, share = _shade(i)
            first = width * t + size * i
            numbers = [list(range(first, first + size))]
            x = 18 + 28 * first + 4 * t
            picture.matrix(
                x, 42, np.full((1, size), share), role, texts=numbers, cell=28
            )
        picture.text(18 + (28 * width + 4) * t + 14 * width, 36, f"token {t}")
    for left, title, found in [
        (62, "view, then transpose", moved), (252, "view alone", by_view)
    ]:  # fmt: skip
        picture.text(left + 58, 96, title, bold=True)
        for i in range(heads):
            x = left + i * 64
            picture.text(x + 26, 116, f"head {i}")
            for t in range(seq_len):
                pair = np.asarray(found)[i, t]
                right = pair[0] == width * t + size * i
                role, share = _shade(i) if right else ("wrong", 1)
                y = 124 + 24 * t
                picture.matrix(
                    x, y, np.full((1, size), share), role, texts=[pair],
                    cell=26, height=24,
                )  # fmt: skip
                if i == 0:
                    picture.text(left - 6, y + 16.5, f"token {t}", at="end")
    return picture


def draw_fused(num_heads, d_head, seq_len):
    """Return the matrices of all heads side by side, and one product.

    Parameters
    ----------
    num_heads, d_head, seq_len
        The sizes to which the boxes are drawn.
    """
    d_model, unit = num_heads * d_head, 7
    alt = (
        "A matrix of tokens times three narrow matrices that stand side by "
        "side in one, which gives three narrow results side by side; those "
        "of head 1 are blue."
    )
    picture = Picture(160, alt)
    wide, tall, narrow = d_model * unit, seq_len * unit, d_head * unit
    middle = 30 + wide / 2
    x = picture.matrix(
        16, middle - tall / 2, [[0]], texts=[["x"]], cell=wide, height=tall
    )
    picture.text(x.right[0] + 15, middle + 5, "×")
    left = x.right[0] + 30
    for i in range(num_heads):
        role, share = _shade(i)
        at = left + i * (narrow + 4)
        shown = dict(role=role, texts=[[i]], cell=narrow)
        picture.matrix(at, 30, [[share]], height=wide, **shown)
        at += wide + 8 + 34
        picture.matrix(at, middle - tall / 2, [[share]], height=tall, **shown)
    picture.text(left + wide + 8 + 17, middle + 5, "=")
    for start, name, shape in [
        (16, "tokens", "(T, D)"),
        (left + 4, "fused", "(D, D)"),
        (left + wide + 46, "all heads", "(T, D)"),
    ]:
        picture.text(start + wide / 2, 20, name)
        picture.text(start + wide / 2, 30 + wide + 20, shape, size=12)
    return picture


def draw_layer(num_heads):
    """Return the five steps of multi-head attention, one head's way blue.

    Parameters
    ----------
    num_heads
        How many heads are drawn.
    """
    alt = (
        "Five steps, from top to bottom. Query, key and value pass a linear "
        f"layer each; each result is split into {num_heads}; head 1 takes "
        "the middle part of all three and attends; the heads' outputs are "
        "merged side by side; a last linear layer gives the output."
    )
    picture = Picture(300, alt)
    steps = {"1 project": 55, "2 split": 95, "3 attend": 153, "4 merge": 209}
    for step, y in (steps | {"5 project": 249}).items():
        picture.text(8, y, step, at="start")
    places = [84 + 98 * i for i in range(3)]
    step = 90 / num_heads
    parts = []
    for x, name in zip(places, ["query", "key", "value"], strict=True):
        picture.text(x + 45, 16, name, role=name)
        picture.arrow((x + 45, 22), (x + 45, 36), role=name)
        box = picture.layer(x, 37, 90, f"{name}_proj", name, 26)
        picture.arrow(box.bottom, (x + 45, 82), role=name)
        parts.append(_strip(picture, x, 83, num_heads, step))
    merged = _strip(picture, places[1], 196, num_heads, step)
    heads = []
    for i in range(num_heads):
        width = 294 / num_heads - 8
        x = 84 + i * (294 / num_heads)
        role = _shade(i)[0]
        heads.append(picture.head(x, 134, width, f"head {i}", role))
        (a, b), (c, d) = heads[i].bottom, merged[i].top
        picture.arrow((a, b), (c, d - 1), role=role)
    x, y = heads[FOLLOWED].top
    for part, shift in zip(parts, (-16, 0, 16), strict=True):
        ends = part[FOLLOWED].bottom, (x + shift, y - 1)
        picture.arrow(*ends, role="query")
    picture.arrow((227, 212), (227, 230))
    box = picture.layer(177, 231, 100, "output_proj", "output", 26)
    picture.arrow(box.bottom, (227, 276), role="output")
    picture.text(227, 291, "output", role="output")
    return picture


def draw_cuts(d_model, counts):
    """Return a projection's matrix, cut among few heads and many.

    Parameters
    ----------
    d_model
        Its rows and columns.
    counts
        Three numbers of heads.
    """
    told = ", ".join(map(str, counts))
    alt = (
        f"The same square of {d_model} rows and columns three times, cut "
        f"into strips for {told} heads: more strips are narrower."
    )
    picture = Picture(140, alt)
    for place, count in enumerate(counts):
        x, step = 20 + 124 * place, 96 / count
        for i in range(count):
            role, share = ("query", 1) if i == 0 else ("token", 0)
            picture.matrix(
                x + i * step, 8, [[share]], role, texts=[[""]], cell=step,
                height=96,
            )  # fmt: skip
        picture.rect(Box(x, 8, 96, 96), f"stroke:{colour('ink')}", 0)
        name = f"{count} head" + "s" * (count > 1)
        picture.text(x + 48, 126, name)
    return picture


def draw_pair(row):
    """Return the two letters that a model should name, from the last place.

    Parameters
    ----------
    row
        Some letters, as whole numbers.
    """
    letters = [int(letter) for letter in row]
    near, far = letters[-2], letters[-4]
    alt = (
        f"A row of letters, {', '.join(map(str, letters))}. From the last, "
        f"one arrow goes one position back, to {near}, and another three "
        f"positions back, to {far}; the pair is {10 * near + far}."
    )
    picture = Picture(128, alt)
    last = len(letters) - 1
    boxes = []
    for t, letter in enumerate(letters):
        role = "query" if t in (last - 1, last - 3) else "token"
        step = 360 / len(letters)
        boxes.append(
            picture.token(12 + t * step, 62, letter, role, width=step - 4)
        )
    x, y = boxes[last].top
    for back, high, text in [(1, 44, "1 back"), (3, 22, "3 back")]:
        end = boxes[last - back].top
        picture.arrow(
            (x, y), (x, high), (end[0], high), (end[0], y - 1), role="query"
        )
        picture.text(
            end[0] - 6, high + 4, text, role="query", at="end", size=12
        )
    picture.text(
        x + 20, 112, f"pair {near}, {far}: 10 × {near} + {far} = "
        f"{10 * near + far}", at="end",
    )  # fmt: skip
    return picture
