"""The drawings of *Attention without softmax*: the layers, and their task."""

import numpy as np

from .draw import Box, Picture, colour


def draw_stack(kinds):
    """Return the layers of a Qwen 3.5, and what each keeps of a text.

    kinds: the kind of each layer, the first at the bottom.
    """
    picture = Picture(
        60 * len(kinds) + 86,
        "A stack of layers, three with a state and above them one with a "
        "cache, each followed by a gated network. The first three keep a "
        "square and 3 rows, however long the text is; the fourth keeps a key "
        "and a value for each token.",
    )
    floor = 60 * len(kinds) + 42
    picture.text(80, floor + 34, "token")
    picture.arrow((80, floor + 20), (80, floor))
    for i, kind in enumerate(kinds):
        y = floor - 60 * (i + 1) + 4
        linear = kind == "linear_attention"
        text, role = (
            ("delta rule", "output") if linear else ("attention", "key")
        )
        box = picture.layer(4, y + 26, 152, text, role, 26)
        picture.layer(4, y, 152, "gated network", "mask", 22)
        picture.arrow((162, box.left[1]), (196, box.left[1]), role=role)
        middle, size = box.left[1], dict(cell=9, height=9)
        if linear:
            for x, rows, width in ((204, 4, 4), (262, 3, 6)):
                top = middle - 4.5 * rows
                blank = [[""] * width] * rows
                picture.matrix(
                    x, top, np.ones((rows, width)), role, texts=blank, **size
                )
            picture.text(250, middle + 5, "+")
        else:
            for s in range(5):
                for x, kept in ((204, "key"), (246, "value")):
                    picture.matrix(
                        x, middle + 12 - 11 * s, np.ones((1, 4)), kept,
                        texts=[[""] * 4], **size,
                    )  # fmt: skip
            picture.arrow((294, middle + 18), (294, middle - 36), role=role)
            picture.text(302, middle - 14, "a row for", at="start", size=12)
            picture.text(302, middle + 2, "each token", at="start", size=12)
    picture.arrow((80, floor - 60 * len(kinds) - 2), (80, 22))
    picture.text(80, 14, "logits")
    picture.text(222, floor + 18, "state", role="output", size=12)
    picture.text(290, floor + 18, "last 3 rows", role="output", size=12)
    picture.text(350, floor - 82, "one size", role="output", size=12)
    return picture


def draw_window(column, kernel):
    """Return a column of numbers, mixed over the last four tokens.

    column: of the tokens, as many as the kernel has weights; kernel: its
    weights, the oldest first. Before the first token stand zeros.
    """
    wide, seen = len(kernel), len(column)
    rows = [0] * (wide - 1) + list(column)
    mixed = [
        sum(w * x for w, x in zip(kernel, rows[t : t + wide], strict=True))
        for t in range(seen)
    ]
    told = ", ".join(f"{x:.1f}" for x in mixed)
    picture = Picture(
        168,
        f"Three zeros of the past and the column {list(column)}; the weights "
        f"{list(kernel)} over the last four give {told}.",
    )
    cell, x = 38, 76
    texts = [[str(y) for y in rows]]
    for text, y in (("column", 51), ("weights", 95), ("mixed", 149)):
        picture.text(4, y, text, at="start")
    picture.matrix(x, 36, [rows], "token", texts=texts, cell=cell)
    past = Box(x - 4, 10, cell * (wide - 1) + 6, 54)
    picture.frame(past, "the past")
    start = x + cell * (wide - 1)
    picture.text(start + cell * seen / 2, 26, "tokens 1 to 4", size=12)
    window = picture.matrix(start, 80, [kernel], "key", cell=cell)
    texts = [[f"{y:.1f}" for y in mixed]]
    out = picture.matrix(start, 134, [mixed], "output", texts=texts, cell=cell)
    end = out.x + cell * (seen - 0.5)
    for c in range(wide):
        above = window.x + cell * (c + 0.5)
        picture.line((above, 60), (above, 79), role="key", width=1)
        picture.arrow((above, 103), (end, 132), role="output", width=1)
    return picture


def draw_gates():
    """Return the parts of a layer with a state, from a row to its output."""
    picture = Picture(
        268,
        "A token's row goes three ways: through the convolution to query, key "
        "and value; to a decay and a beta, which fade and correct the state; "
        "and to a gate, which multiplies what the query has read.",
    )
    row = picture.token(160, 236, "x", width=60)
    conv = picture.layer(4, 176, 150, "convolution")
    small = [
        picture.layer(x, 176, 56, text, "mask")
        for x, text in ((182, "decay"), (246, "β"))
    ]
    gate = picture.layer(316, 176, 60, "gate")
    for box in (conv, *small, gate):
        x, y = box.bottom
        picture.line(row.top, (190, 222), (x, 222))
        picture.arrow((x, 222), (x, y + 2))
    state = picture.layer(
        4, 76, 298, "state: fade, correct, read", "output", 34
    )
    for x, letter, role in (
        (24, "q", "query"), (78, "k", "key"), (132, "v", "value"),
    ):  # fmt: skip
        picture.arrow((x, 174), (x, 112), role=role)
        picture.text(x + 8, 148, letter, role=role, at="start", bold=True)
    for box in small:
        x, _ = box.top
        picture.arrow((x, 174), (x, 112), role="mask")
    style = f"stroke:{colour('token')};stroke-width:1.5"
    times = Box(145, 32, 16, 16)
    picture.rect(times, style, radius=8)
    picture.text(153, 45, "×", bold=True)
    picture.arrow(state.top, (153, 50), role="output")
    picture.text(163, 67, "norm", at="start", size=12)
    x, y = gate.top
    picture.arrow((x, y), (x, 40), (times.right[0] + 2, 40))
    picture.arrow((153, 30), (153, 20))
    picture.text(153, 14, "the layer's output")
    return picture


def draw_recall(writes, asked):
    """Return a text of writings and a question, and who answers it.

    writes: (thing, colour) of each token; asked: the thing in question.
    """
    found = [i for i, (thing, _) in enumerate(writes) if thing == asked]
    share = 1 / len(found)
    picture = Picture(
        236,
        f"Two copies of a text in which {asked} is written twice. Above, "
        "without an order, the question looks at both writings alike; below, "
        "the delta rule has only the later one left.",
    )
    texts = [f"{thing} {colour}" for thing, colour in writes] + [f"{asked} ?"]
    for y, title, of in (
        (104, "softmax without positions, or sum", found),
        (206, "delta rule", found[-1:]),
    ):
        boxes = picture.tokens(y, texts)
        for i in of:
            weight = share if len(of) > 1 else 1
            picture.arc(boxes[-1].top, boxes[i].top, 0.8 * weight)
        for i in set(found) - set(of):
            x, z = boxes[i].right
            picture.line((x - 66, z), (x - 8, z), role="wrong")
        picture.text(
            4, y - 88 + 30 * (len(of) < 2), title, at="start", bold=True
        )
    return picture


def draw_parts():
    """Draw a text read whole, and in two parts that hand over what is kept.

    Returns
    -------
    Picture
        Eight tokens in one pass; five and three with states and keys between.
    """
    picture = Picture(
        168, "a text in one pass, and in two that hand over states and keys: "
        "the logits have to be equal",
    )  # fmt: skip
    letters = "abcdefgh"
    for left, top, some in ((8, 8, letters), (8, 118, letters[:5])):
        for i, letter in enumerate(some):
            picture.token(left + 27 * i, top, letter, width=25)
    for i, letter in enumerate(letters[5:]):
        picture.token(232 + 27 * i, 118, letter, width=25)
    whole = picture.layer(8, 46, 214, "one pass", "query", 28)
    first = picture.layer(8, 82, 133, "first part", "query", 28)
    second = picture.layer(232, 82, 79, "the rest", "query", 28)
    picture.arrow(first.right, second.left, role="key", text="states, keys")
    picture.layer(326, 46, 50, "logits", "output", 64)
    picture.arrow(whole.right, (326, 60), role="output")
    picture.arrow(second.right, (326, 96), role="output")
    return picture


def draw_gated():
    """Return gated attention: what a head finds, times its gate."""
    picture = Picture(
        176,
        "A token's row goes to attention with a cache, and past it through a "
        "matrix and a sigmoid to a gate for each number; what the heads found "
        "is multiplied by the gate, then mixed by the last matrix.",
    )
    row = picture.token(4, 76, "x", width=40)
    attention = picture.layer(84, 24, 132, "attention, cached", "query")
    gate = picture.layer(84, 124, 132, "σ of a matrix", "key")
    for box in (attention, gate):
        x, y = box.left
        picture.arrow(row.right, (60, 88), (60, y), (x, y))
    style = f"stroke:{colour('token')};stroke-width:1.5"
    times = Box(248, 80, 16, 16)
    picture.rect(times, style, radius=8)
    picture.text(256, 93, "×", bold=True)
    _, y = attention.right
    picture.arrow(attention.right, (256, y), times.top, role="query")
    picture.text(262, y + 4, "what it found", at="start", size=12)
    _, y = gate.right
    picture.arrow(gate.right, (256, y), times.bottom, role="key")
    picture.text(262, y + 4, "0 closed, 1 open", at="start", size=12)
    last = picture.layer(290, 74, 36, "W", "output")
    picture.arrow(times.right, last.left)
    picture.arrow(last.right, (372, 88))
    return picture
