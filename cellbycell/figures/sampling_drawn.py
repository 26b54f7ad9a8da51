"""The drawings of *Which token next?*: the same five bars, and what cuts."""

from fractions import Fraction

import numpy as np

from .draw import Box, Picture, colour

ROLES_OF = ("query", "key", "value", "output", "token")


def _fill(role, share):
    return f"fill:{colour(role)};fill-opacity:{share}"


def draw_strip(words, probs, throws):
    """Return the probabilities as a strip that numbers are thrown at.

    probs (N,), of the words; throws: numbers from 0 to 1.
    """
    edges = np.concatenate([[0], np.cumsum(probs)])
    hit = [words[np.searchsorted(edges, u, side="right") - 1] for u in throws]
    told = ", ".join(
        f"{word} {prob:g}" for word, prob in zip(words, probs, strict=True)
    )
    picture = Picture(
        166,
        f"A strip from 0 to 1, cut into {told}. Greedy decoding takes the "
        f"widest, {words[0]}, each time; three throws fall on "
        f"{', '.join(hit)}.",
    )
    picture.text(4, 18, "Life is short, eat dessert …", at="start", bold=True)
    left, wide, y = 4, 372, 62
    places = left + wide * edges
    for i, word in enumerate(words):
        box = Box(places[i], y, places[i + 1] - places[i], 40)
        edge = f"stroke:{colour(ROLES_OF[i])};"
        picture.rect(box, edge + _fill(ROLES_OF[i], 0.16), radius=0)
        if probs[i] > 0.1:
            picture.text(box.top[0], y + 17, word)
            text = f"{probs[i]:g}"
            picture.text(box.top[0], y + 34, text, size=12)
    picture.text(376, y - 8, f"{words[-2]}, {words[-1]}", at="end", size=12)
    x = left + wide * probs[0] / 2
    picture.arrow((x, 38), (x, y - 2), role="query")
    picture.text(x + 8, 52, "greedy", role="query", at="start")
    for u in throws:
        x = left + wide * u
        picture.arrow((x, y + 66), (x, y + 43))
        picture.text(min(max(x, 18), 362), y + 81, f"{u:g}")
    picture.text(190, 162, "throws, each a number from 0 to 1", size=12)
    return picture


def _share(x):
    """Return a number as a fraction that can be checked by hand."""
    return str(Fraction(float(x)).limit_denominator(32))


def _bars(
    picture, probs, kept, left, floor, tall, *, step=34, texts=None, above=999
):
    """Draw bars; what is dropped has a dashed edge. Return their boxes.

    above: a height on the page that no text over a bar is below.
    """
    boxes = []
    for i, (prob, stays) in enumerate(zip(probs, kept, strict=True)):
        size = tall * prob
        box = Box(left + i * step, floor - size, step - 6, size)
        role = "query" if stays else "wrong"
        style = f"stroke:{colour(role)};"
        if stays:
            picture.rect(box, style + _fill(role, 0.3), radius=0)
        else:
            picture.rect(box, style + "stroke-dasharray:4 3", radius=0)
        if texts:
            y = min(box.y, above) - 5
            picture.text(box.top[0], y, texts[i], size=12)
        boxes.append(box)
    return boxes


def draw_rules(words, probs, rules):
    """Return where three rules cut the same bars.

    probs (N,), sorted downwards; rules: the settings of "k", "p", "min-p".
    """
    probs = np.asarray(probs, float)
    before = np.cumsum(probs) - probs
    ranks = np.arange(len(probs)) + 1
    rows = [
        ("k", "the rank", ranks <= rules["k"], ranks),
        ("p", "the sum before it", before < rules["p"], before),
        (
            "min-p",
            "its share of the best",
            probs >= rules["min-p"] * probs[0],
            probs / probs[0],
        ),
    ]
    told = "; ".join(
        f"{rule} = {rules[rule]:g} keeps {kept.sum()}"
        for rule, _, kept, _ in rows
    )
    picture = Picture(
        112 * len(rows) + 26,
        f"The same five bars, {', '.join(words)}, three times: {told}.",
    )
    left, step, tall = 134, 49, 124
    for r, (rule, text, kept, over) in enumerate(rows):
        floor = 104 + 112 * r
        limit = floor - tall * rules["min-p"] * probs[0]
        line = limit if rule == "min-p" else floor
        picture.text(
            4, floor - 44, f"{rule} = {rules[rule]:g}", at="start", bold=True
        )
        picture.text(4, floor - 26, text, at="start", size=12)
        _bars(
            picture, probs, kept, left, floor, tall, step=step,
            texts=[_share(x) for x in over], above=line,
        )  # fmt: skip
        picture.line((left - 4, floor), (left + 5 * step, floor), width=1)
        x = left + int(kept.sum()) * step - 3
        cut = ((x, floor - 74), (x, floor))
        if rule == "min-p":
            cut = ((left - 4, line), (left + 5 * step, line))
        picture.line(*cut, role="wrong", width=2, dashed=True)
    for i, word in enumerate(words):
        picture.text(left + i * step + (step - 6) / 2, floor + 18, word)
    return picture


def draw_order(words, probs, temperature, p):
    """Return one cut by p with the temperature before it, and after it.

    probs (N,), sorted downwards, at temperature 1.
    """
    probs = np.asarray(probs, float)
    flat = probs ** (1 / temperature)
    flat = flat / flat.sum()
    first = np.cumsum(flat) - flat < p
    last = np.cumsum(probs) - probs < p
    picture = Picture(
        176,
        f"Five bars and p = {p:g}. With the temperature {temperature:g} "
        f"first, the bars are flat and {first.sum()} are needed; with the cut "
        f"first, {last.sum()} are enough.",
    )
    floor, step = 132, 34
    for start, bars, kept, name in (
        (6, flat, first, "temperature, then p"),
        (206, probs, last, "p, then temperature"),
    ):
        sums = [f"{x:.2f}" for x in np.cumsum(bars) - bars]
        _bars(picture, bars, kept, start, floor, 150, texts=sums)
        picture.line((start - 3, floor), (start + 167, floor), width=1)
        picture.text(start + 82, 18, name, bold=True)
        x = start + int(kept.sum()) * step - 3
        picture.line((x, 34), (x, floor), role="wrong", width=2, dashed=True)
        for i, word in enumerate(words):
            picture.text(start + i * step + 14, floor + 16, word, size=11)
    text = f"the sum before a bar is below {p:g}: it stays"
    picture.text(190, 168, text, size=12)
    return picture


def draw_loop():
    """Return a text's way around: logits, filter, noise, the largest."""
    picture = Picture(
        158,
        "A loop: the text goes through the model, which gives logits; they "
        "are divided by the temperature, the tail is cut, noise is added, "
        "the largest is taken, and its token is appended to the text.",
    )
    text = picture.token(4, 24, "text", width=58)
    model = picture.layer(80, 22, 60, "model")
    heat = picture.layer(196, 22, 60, "÷ τ", "query")
    cut = picture.layer(292, 22, 84, "cut", "wrong")
    noise = picture.layer(292, 104, 84, "+ noise", "value")
    best = picture.layer(196, 104, 72, "largest", "output")
    new = picture.token(78, 106, "new token", "output", width=84)
    picture.arrow(text.right, model.left)
    picture.arrow(model.right, heat.left)
    picture.text(162, 30, "logits", size=12)
    picture.arrow(heat.right, cut.left)
    picture.arrow(cut.bottom, noise.top)
    picture.arrow(noise.left, best.right)
    picture.arrow(best.left, new.right)
    x = text.bottom[0]
    picture.arrow(new.left, (x, new.left[1]), text.bottom)
    picture.text(x + 8, 84, "append", at="start", size=12)
    picture.frame(Box(184, 8, 195, 136))
    picture.text(250, 84, "sampler", role="mask")
    return picture


def draw_counts(counts):
    """Return how many names are copies, odd, or neither, as bars.

    counts: {name of a setting: copies, odd, different}, of 200 names.
    """
    told = "; ".join(
        f"{k}: {c} and {odd}" for k, (c, odd, _) in counts.items()
    )
    picture = Picture(
        32 + 28 * len(counts),
        f"For each setting a bar of 200 names, with copies and odd: {told}.",
    )
    for x, role, text in ((176, "key", "copies"), (256, "wrong", "odd")):
        picture.rect(Box(x, 6, 12, 12), _fill(role, 0.5), radius=2)
        picture.text(x + 18, 17, text, at="start", size=12)
    left, wide = 176, 200
    for i, (name, (copies, odd, _)) in enumerate(counts.items()):
        y = 30 + 28 * i
        picture.text(left - 6, y + 15, name, at="end", size=12)
        style = f"stroke:{colour('mask')}"
        picture.rect(Box(left, y, wide, 20), style, radius=0)
        for at, number, role in (
            (left, copies, "key"),
            (left + wide * (200 - odd) / 200, odd, "wrong"),
        ):
            box = Box(at, y, wide * number / 200, 20)
            if number:
                picture.rect(box, _fill(role, 0.5), radius=0)
            if number > 20:
                picture.text(box.top[0], y + 15, number, size=12)
    return picture


def draw_unsorted(words, probs, p):
    """Return what is kept by top-p, sorted back and not sorted back.

    probs (N,), of the words, in the vocabulary's order.
    """
    probs = np.asarray(probs, float)
    order = np.argsort(-probs, kind="stable")
    ranked = probs[order]
    kept = np.cumsum(ranked) - ranked < p
    back = kept[np.argsort(order)]
    right, wrong = (
        ", ".join(words[i] for i in np.flatnonzero(mask))
        for mask in (back, kept)
    )
    picture = Picture(
        186,
        f"Five tokens, sorted by probability; at p = {p:g} the first "
        f"{kept.sum()} places stay. Sorted back that is {right}; not sorted "
        f"back it falls on {wrong}.",
    )
    everyone = np.arange(len(words))
    for r, (name, row, mask, role) in enumerate(
        (
            ("the row", everyone, None, "token"),
            ("sorted", order, kept, "query"),
            ("sorted back", everyone, back, "query"),
            ("not sorted", everyone, kept, "wrong"),
        )
    ):
        y = 6 + 46 * r
        picture.text(4, y + 17, name, at="start", role=role, size=12)
        for i, word in enumerate(row):
            stays = mask is not None and mask[i]
            at = 84 + 59 * i
            box = picture.token(
                at, y, words[word], role if stays else "mask", width=56
            )
            if stays:
                picture.rect(box, _fill(role, 0.25), radius=12)
            if mask is None or r == 1:
                text = _share(probs[word])
                picture.text(box.top[0], y + 38, text, size=11)
    return picture
