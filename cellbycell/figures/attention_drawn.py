"""The drawings of *Attention*: one token's way, and what a product is."""

import math

import numpy as np

from .draw import Box, Picture, colour


def draw_question(words):
    """Return the sentence with the question that one word asks.

    words: the six of *Life is short eat dessert first*.
    """
    picture = Picture(
        120,
        "The six words of Life is short, eat dessert first. From short an arc "
        "goes to Life and an equal arc to dessert, with a question mark each.",
    )
    boxes = picture.tokens(84, words)
    for to, x in ((0, 95), (4, 222)):
        picture.arc(boxes[2].top, boxes[to].top, 0.45)
        picture.text(x, 36, "?", role="query", bold=True, size=17)
    lit = boxes[2]
    picture.rect(
        Box(lit.x, lit.y, lit.width, lit.height),
        f"stroke:{colour('query')};stroke-width:2;fill:{colour('query')};"
        "fill-opacity:.12",
        radius=12,
    )
    picture.text(158, 18, "what is short?", role="query")
    return picture


def draw_way(words, asks, query, keys, values):
    """Return the way of one query to its output, number by number.

    words: of the S keys; asks: which of them has the query, by its place;
    query (K,), keys (S, K), values (S, V).
    """
    dots = keys @ query  # (S,)
    scores = dots / math.sqrt(len(query))  # (S,)
    weights = np.exp(scores) / np.exp(scores).sum()  # (S,)
    output = weights @ values  # (V,)
    told = ", ".join(
        f"{word} {weight:.2f}"
        for word, weight in zip(words, weights, strict=True)
    )
    picture = Picture(
        96 + 30 * len(words) + 54,
        f"The query of {words[asks]} meets {len(words)} keys; dot products, "
        f"divided by {math.sqrt(len(query)):g}, become the weights {told}, "
        f"which mix the values into the output ({output[0]:.2f}, "
        f"{output[1]:.2f}).",
    )
    chip = picture.token(4, 8, words[asks], "query", width=58)
    wanted = picture.vector(92, 9, query, "query", cell=22)
    picture.arrow(chip.right, (74, 20), role="query")
    x, y = wanted.bottom
    picture.arrow((x, y + 3), (x, y + 24), role="query")
    picture.text(x + 10, y + 18, "meets each key", at="start", size=12)
    heads = ((136, "key"), (204, "q · k"), (236, "÷ 2"), (282, "weight"))
    for at, text in (*heads, (356, "value")):
        picture.text(at, 76, text, role=text, size=12)
    for s, word in enumerate(words):
        y = 86 + 30 * s
        picture.token(4, y, word, "query" if s == asks else "token", width=58)
        picture.vector(92, y + 1, keys[s], "key", cell=22)
        picture.text(204, y + 17, f"{dots[s]:g}")
        picture.text(236, y + 17, f"{scores[s]:g}")
        bar = Box(256, y + 4, 40 * weights[s], 16)
        picture.rect(bar, f"fill:{colour('query')};fill-opacity:.55", radius=2)
        text = f"{weights[s]:.2f}"
        picture.text(bar.right[0] + 4, y + 17, text, at="start", size=12)
        last = picture.vector(334, y + 1, values[s], "value", cell=22)
    x, y = last.bottom
    picture.arrow((x, y + 4), (x, y + 32), role="output")
    picture.text(290, y + 48, "each value times its weight, summed", at="end")
    texts = [[f"{x:.2f}" for x in output]]
    picture.vector(314, y + 33, output, "output", texts=texts, cell=32)
    return picture


def draw_table(names, query, keys):
    """Return all dot products, where a query's row and a key's column meet.

    names: of the T queries; query (T, K), keys (S, K).
    """
    dots = query @ keys.T  # (T, S)
    picture = Picture(
        206,
        f"{len(query)} queries as rows at the left, {len(keys)} keys as "
        "columns at the top. Where a row and a column meet stands their dot "
        f"product, {dots.min():g} or {dots.max():g}.",
    )
    queries = picture.matrix(48, 112, query, "query", cell=26, rows=names)
    top = picture.matrix(186, 10, np.transpose(keys), "key", cell=30)
    crossed = picture.matrix(186, 112, dots, "token", cell=30)
    picture.text(queries.top[0], 104, "queries", role="query")
    picture.text(top.x - 8, 58, "keys", role="key", at="end")
    picture.arrow(
        (queries.right[0] + 4, 145), (crossed.x - 3, 145), role="query"
    )
    picture.arrow(
        (top.bottom[0], 99), (top.bottom[0], 110), role="key", width=1
    )
    said = "a softmax in each row makes weights"
    picture.text(crossed.right[0], 196, said, at="end", size=12)
    return picture


def draw_roles(word, x, projections, jobs):
    """Return the three vectors that are made of one token's vector.

    x (D,); projections: of query, key and value, (D, ...) each; jobs: what
    the query, the key and the value of the word say.
    """
    made = [x @ projection for projection in projections]
    told = ", ".join(
        f"{role} ({', '.join(f'{n:g}' for n in vector)})"
        for role, vector in zip(("query", "key", "value"), made, strict=True)
    )
    picture = Picture(
        282,
        f"The vector of {word} is multiplied by three matrices, which gives "
        f"its {told}, each with a job of its own.",
    )
    picture.token(4, 104, word, width=62)
    drawn = picture.matrix(4, 134, [x], cell=16, name="x")
    parts = zip(("query", "key", "value"), projections, made, strict=True)
    for i, (role, projection, vector) in enumerate(parts):
        y = 10 + 92 * i
        box = picture.matrix(102, y, projection, role, cell=16, height=18)
        picture.text(box.bottom[0] - 4, y + 86, "W", role=role)
        picture.text(box.bottom[0] + 8, y + 81, "QKV"[i], role=role, size=10)
        (one,) = np.flatnonzero(x)
        row = Box(box.x, y + 18 * one, box.width, 18)
        picture.rect(
            row, f"stroke:{colour(role)};stroke-width:2.5;fill:none", 0
        )
        start = drawn.right[0] + 3, drawn.right[1]
        picture.arrow(start, (box.x - 3, row.left[1]), role=role)
        picture.arrow(
            (box.right[0] + 2, row.left[1]), (186, row.left[1]), role=role
        )
        end = picture.vector(202, row.y - 2, vector, role, cell=16)
        at = end.right[0] + 8, row.y + 14
        picture.text(*at, jobs[i], at="start")
    return picture


def draw_saturation(scores, factors):
    """Return the weights of some scores that are made larger and larger.

    scores (S,); factors: three numbers.
    """
    picture = Picture(
        172,
        "Four bars of softmax weights, three times: the larger the scores, "
        "the more the first bar takes, until nothing is left for the others.",
    )
    for i, factor in enumerate(factors):
        p = np.exp(factor * np.asarray(scores))  # (S,)
        p /= p.sum()
        left = 14 + 126 * i
        picture.text(left + 50, 16, f"scores × {factor}")
        picture.line((left, 130), (left + 100, 130), role="mask", width=1)
        for s, weight in enumerate(p):
            bar = Box(left + 4 + 24 * s, 130 - 92 * weight, 20, 92 * weight)
            look = f"fill:{colour('query')};fill-opacity:.55"
            picture.rect(bar, look, radius=1)
        picture.text(left + 14, 124 - 92 * p[0], f"{p[0]:.2f}", size=12)
        moves = (p * (1 - p)).sum()
        picture.text(left + 50, 150, "can still move:", size=12)
        picture.text(left + 50, 166, f"{moves:.2f}", bold=True)
    return picture


def draw_batch(sizes):
    """Return attention for a batch: the same products, sequence by sequence.

    sizes: those of B, T, S, K and V.
    """
    B, T, S, K, V = sizes
    cell, gap = 11, 20
    picture = Picture(
        14 + B * 86,
        f"For each of {B} sequences, a grid of {T} by {K} times a grid of "
        f"{K} by {S} gives {T} by {S} weights, which times a grid of {S} by "
        f"{V} give {T} by {V} outputs.",
    )
    for b in range(B):
        x, middle = 24, 48 + b * 86
        picture.text(8, middle + 4, b, bold=True)
        for rows, columns, role, name, sign in (
            (T, K, "query", "query", "·"), (K, S, "key", "key, turned", "→"),
            (T, S, "token", "weights", "·"), (S, V, "value", "value", "="),
            (T, V, "output", "output", ""),
        ):  # fmt: skip
            box = picture.matrix(
                x, middle - rows * cell / 2, np.ones((rows, columns)), role,
                texts=[[""] * columns] * rows, cell=cell, height=cell,
            )  # fmt: skip
            if b == 0:
                picture.text(box.top[0], 10, name, role=role, size=11)
            x = box.right[0] + gap
            picture.text(x - gap / 2, middle + 4, sign)
    return picture


def draw_shares(lengths, d_model):
    """Return who takes the operations of attention, for some lengths."""
    picture = Picture(
        24 + 44 * len(lengths),
        "Bars of how the operations are divided: short texts spend them on "
        "projections, long texts on scores and outputs.",
    )
    picture.text(76, 14, "tokens", at="end")
    picture.text(84, 14, "projections", role="value", at="start")
    picture.text(374, 14, "scores and outputs", role="query", at="end")
    for i, n in enumerate(lengths):
        parts = 6 * n * d_model**2, 4 * n**2 * d_model
        share, y = parts[0] / sum(parts), 26 + 44 * i
        picture.text(76, y + 20, f"{n:,}", at="end")
        left = Box(84, y, 290 * share, 30)
        right = Box(left.right[0], y, 290 * (1 - share), 30)
        for box, role, part in (
            (left, "value", share), (right, "query", 1 - share),
        ):  # fmt: skip
            look = f"fill:{colour(role)};fill-opacity:.3;stroke:"
            picture.rect(box, look + colour(role), radius=0)
            text = f"{100 * part:.0f} %"
            picture.text(box.top[0], y + 20, text, size=11)
    return picture
