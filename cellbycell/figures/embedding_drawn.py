"""The drawings of *From words to vectors*: ids, rows, and who learns."""

import numpy as np

from .draw import Box, Picture

_SIDE = 13  # of a cell in a one-hot row


def draw_line(entries, shown):
    """Return tokens on a line, each at its id, the last twice the first.

    entries: the vocabulary, in the order of its ids; shown: two of them.
    """
    small, large = (entries.index(token) for token in shown)
    picture = Picture(
        104,
        f"A line of ids from 0 to {len(entries) - 1}: {shown[0]} stands at "
        f"{small} and {shown[1]} at {large}, {large // small} times as far.",
    )
    unit, floor = 352 / (len(entries) - 1), 62

    def at(token_id):
        return 14 + unit * token_id

    picture.line((at(0), floor), (at(len(entries) - 1), floor))
    for token_id in range(len(entries)):
        x = at(token_id)
        picture.line((x, floor - 4), (x, floor + 4))
        lit = token_id in (small, large)
        picture.text(x, floor + 20, token_id, bold=lit)
    for token_id, token in ((small, shown[0]), (large, shown[1])):
        box = picture.token(at(token_id) - 24, 16, token, width=48)
        picture.arrow(box.bottom, (at(token_id), floor - 5), width=1)
    said = f"{shown[1]} = {large // small} · {shown[0]} ?"
    picture.text(at((small + large) / 2), 100, said, role="wrong")
    return picture


def draw_round_trip(tokens, ids, back):
    """Return tokens, their ids, and what the ids are decoded to."""
    picture = Picture(
        152,
        f"{' '.join(tokens)} is encoded as {', '.join(map(str, ids))}, which "
        f"is decoded to {' '.join(back)}.",
    )
    for i, (token, token_id, again) in enumerate(
        zip(tokens, ids, back, strict=True)
    ):
        x = 112 + 90 * i
        look = "token" if token == again else "wrong"
        upper = picture.token(x, 6, token, look, width=82)
        cell = picture.matrix(x + 26, 64, [[token_id]], "token")
        lower = picture.token(x, 122, again, look, width=82)
        picture.arrow((upper.bottom[0], 33), (upper.bottom[0], 61), role=look)
        picture.arrow((cell.bottom[0], 89), (lower.top[0], 119), role=look)
    for y, text in ((52, "encode"), (108, "decode")):
        picture.text(4, y, text, at="start")
    return picture


def draw_padded(sentences, ids, pad_id):
    """Return sentences as rows of ids of one length, pads hatched."""
    cell = 52
    picture = Picture(
        34 + 52 * len(ids),
        f"{len(ids)} rows of {len(ids[0])} cells. Each holds a token and its "
        "id; the cells behind the last token are hatched: padding.",
    )
    for r, (tokens, row) in enumerate(zip(sentences, ids, strict=True)):
        y = 26 + 52 * r
        for c, token in enumerate(tokens):
            picture.text(8 + cell * (c + 0.5), y - 7, token, size=12)
        shown = [[x if x != pad_id else np.nan for x in row]]
        box = picture.matrix(
            8, y, np.where(np.isnan(shown), np.nan, 1), "token", cell=cell,
            texts=[[str(x) for x in row]],
        )  # fmt: skip
        for c in range(len(tokens), len(row)):
            place = Box(box.x + cell * c, y, cell, 22)
            picture.text(place.top[0], y + 16, pad_id, size=12)
    y = 10 + 52 * len(ids)
    picture.text(8, y + 16, "token: True", at="start")
    text = "hatched, the pads: False"
    picture.text(8 + 7 * cell, y + 16, text, at="end")
    return picture


def draw_product(token, token_id, table, back=False):
    """Return a one-hot row times a table, which picks a row.

    table (N, D), of whole numbers; back: the same way backwards, on which
    the row brings the vector's gradient, and the others get nothing.
    """
    N, D = table.shape
    what = f"The one-hot row of {token}, with its 1 in column {token_id}, "
    picture = Picture(
        68 + 17 * N,
        what + f"sends the gradient to row {token_id} alone of the table's."
        if back
        else what + f"picks row {token_id} of the table: the token's vector.",
    )
    one = (np.arange(N) == token_id).astype(int)
    texts = [[str(x) for x in one]]
    row = picture.matrix(
        6, 64, [one], "token", texts=texts, cell=_SIDE, height=20
    )
    picture.token(6, 14, token, width=48)
    picture.text(60, 31, f"id {token_id}", at="start")
    left, side, top, high = 200, 27, 20, 17
    name = "gradient of the table" if back else "table"
    picture.text(left + side * D / 2, 14, name, size=12)
    role = "output" if back else "token"
    for n in range(N):
        lit = n == token_id
        shown = table[n] if lit or not back else np.zeros(D)
        texts = [[f"{x:g}" for x in shown]]
        box = picture.matrix(
            left, top + high * n, [np.ones(D) * lit], role if lit else "mask",
            texts=texts, cell=side, height=high, rows=[str(n)],
        )  # fmt: skip
        if lit:
            hit = box
    x = row.x + _SIDE * (token_id + 0.5)
    low = top + high * N + 22
    end = picture.matrix(
        left, low, [np.ones(D)], role, cell=side,
        texts=[[f"{x:g}" for x in table[token_id]]],
    )  # fmt: skip
    said = "its gradient" if back else "its vector"
    picture.text(left - 8, low + 15, said, at="end")
    bend = hit.left[0] - 22, hit.left[1]
    picture.arrow((x, 87), (x, bend[1]), bend, role=role)
    far = left + side * D + 13
    ends = (far - 11, hit.right[1]), (far, hit.right[1])
    down = [*ends, (far, end.right[1]), (far - 11, end.right[1])]
    picture.arrow(*(down[::-1] if back else down), role=role)
    return picture


def draw_repeated(tokens, sent, sums):
    """Return gradients that go from positions to the rows of their tokens.

    sent: the gradient of each position; sums: {token: what its row gets}.
    """
    told = ", ".join(f"{token} {total:g}" for token, total in sums.items())
    picture = Picture(
        176,
        f"The gradients {', '.join(f'{x:g}' for x in sent)} of "
        f"{len(tokens)} positions go down to the rows of their tokens, where "
        f"they add up: {told}.",
    )
    rows = {}
    for i, (token, total) in enumerate(sums.items()):
        x = 20 + 120 * i
        box = picture.matrix(x, 120, [[total]], "output", cell=100)
        picture.text(box.bottom[0], 160, f"row of {token}")
        rows[token] = box
    for i, (token, gradient) in enumerate(zip(tokens, sent, strict=True)):
        box = picture.token(4 + 94 * i, 6, token, width=88)
        x = box.bottom[0]
        picture.text(x, 48, f"{gradient:g}", role="output", bold=True)
        end = rows[token].top[0] + 0.2 * (x - rows[token].top[0])
        picture.arrow((x, 55), (end, 117), role="output")
    return picture


def draw_shifted(name):
    """Return the letters of a name, each of which predicts the next."""
    given, targets = f".{name}", f"{name}."
    picture = Picture(
        124,
        f"The letters of {given} in a row, and below them those of "
        f"{targets}: each letter is to predict the one below it.",
    )
    step = 300 / len(given)
    for y, word, role in ((8, given, "token"), (88, targets, "output")):
        for i, letter in enumerate(word):
            picture.token(76 + step * i, y, letter, role, width=step - 5)
    for i in range(len(given)):
        x = 76 + step * i + (step - 5) / 2
        picture.arrow((x, 35), (x, 85), role="output", width=1)
    for y, text in ((25, "letter"), (105, "target")):
        picture.text(4, y, text, at="start")
    return picture
