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


def draw_way(words, query, keys, values):
    """Return the way of one query to its output, number by number.

    words: of the S keys; query (K,), keys (S, K), values (S, V); the query is
    that of the last word.
    """
    dots = keys @ query  # (S,)
    scores = dots / math.sqrt(len(query))  # (S,)
    weights = np.exp(scores) / np.exp(scores).sum()  # (S,)
    output = weights @ values  # (V,)
    told = ", ".join(
        f"{word} {weight:.1f}"
        for word, weight in zip(words, weights, strict=True)
    )
    picture = Picture(
        244,
        f"The query of {words[-1]} meets three keys; dot products, divided by "
        f"{math.sqrt(len(query)):g}, become the weights {told}, which mix "
        f"three values into the output ({output[0]:.1f}, {output[1]:.1f}).",
    )
    chip = picture.token(4, 8, words[-1], "query", width=44)
    asks = picture.vector(80, 9, query, "query", cell=24)
    picture.arrow(chip.right, (62, 20), role="query")
    x, y = asks.bottom
    picture.arrow((x, y + 3), (x, y + 24), role="query")
    picture.text(x + 10, y + 18, "meets each key", at="start", size=12)
    heads = ((128, "key"), (198, "q · k"), (232, "÷ 2"), (276, "weight"))
    for at, text in (*heads, (352, "value")):
        picture.text(at, 76, text, role=text, size=12)
    for s, word in enumerate(words):
        y = 86 + 34 * s
        picture.token(4, y, word, width=44)
        picture.vector(80, y + 1, keys[s], "key", cell=24)
        picture.text(198, y + 17, f"{dots[s]:g}")
        picture.text(232, y + 17, f"{scores[s]:g}")
        bar = Box(254, y + 4, 40 * weights[s], 16)
        picture.rect(bar, f"fill:{colour('query')};fill-opacity:.55", radius=2)
        picture.text(bar.right[0] + 4, y + 17, f"{weights[s]:.1f}", at="start")
        last = picture.vector(328, y + 1, values[s], "value", cell=24)
    x, y = last.bottom
    picture.arrow((x, y + 4), (x, y + 34), role="output")
    mixed = " + ".join(
        f"{w:.1f} · ({a:g}, {b:g})"
        for w, (a, b) in zip(weights, values, strict=True)
    )
    picture.text(4, y + 50, f"{mixed}  =", at="start")
    texts = [[f"{x:.1f}" for x in output]]
    picture.vector(328, y + 35, output, "output", texts=texts, cell=24)
    return picture


def draw_table(query, keys):
    """Return all dot products, where a query's row and a key's column meet.

    query (T, K), keys (S, K).
    """
    picture = Picture(
        190,
        "Three queries as rows at the left, four keys as columns at the top. "
        "Where a row and a column meet stands their dot product, 0 or 100.",
    )
    queries = picture.matrix(
        48, 92, query, "query", cell=30, rows=["1", "2", "3"]
    )
    top = picture.matrix(176, 10, np.transpose(keys), "key", cell=38)
    crossed = picture.matrix(176, 92, query @ keys.T, "token", cell=38)
    picture.text(queries.top[0], 82, "queries", role="query")
    picture.text(top.x - 8, 46, "keys", role="key", at="end")
    picture.arrow(
        (queries.right[0] + 4, 125), (crossed.x - 3, 125), role="query"
    )
    picture.arrow(
        (top.bottom[0], 79), (top.bottom[0], 90), role="key", width=1
    )
    picture.text(
        crossed.bottom[0], 176, "a softmax in each row makes weights", size=12
    )
    return picture


def draw_roles(word, jobs):
    """Return the three vectors that are made of one token's vector.

    jobs: what the query, the key and the value of the word say, in two lines.
    """
    picture = Picture(
        190,
        f"The vector of {word} is multiplied by three matrices, which gives "
        "its query, its key and its value, each with a job of its own.",
    )
    picture.token(4, 66, word, width=54)
    x = picture.matrix(5, 96, np.ones((1, 4)), texts=[[""] * 4], cell=13)
    picture.text(x.bottom[0], 134, "x", bold=True)
    for i, (role, size) in enumerate((("query", 3), ("key", 3), ("value", 2))):
        y = 14 + 62 * i
        box = picture.layer(108, y, 38, "", role)
        picture.text(box.top[0] - 3, y + 19, "W")
        picture.text(box.top[0] + 10, y + 14, "QKV"[i], size=10)
        start = x.right[0] + 3, x.right[1]
        picture.arrow(start, (105, box.left[1]), role=role)
        picture.arrow(box.right, (168, box.left[1]), role=role)
        made = picture.vector(
            186, y + 3, np.ones(size), role, texts=[[""] * size], cell=16
        )
        for line, text in enumerate(jobs[i]):
            at = made.right[0] + 10, y + 11 + 16 * line
            picture.text(*at, text, at="start")
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
