"""The drawings of *The key-value cache*."""

import numpy as np

from .draw import Box, Picture, colour


def _filled(picture, box, role, share=0.16):
    """Fill a token with its role's colour."""
    style = f"fill:{colour(role)};fill-opacity:{share}"
    picture.rect(box, style, radius=12)


def draw_repeats(words):
    """Return all that a decoder reads to write a text, step by step.

    words: of the text; a step reads those so far.
    """
    count = len(words)
    total = count * (count + 1) // 2
    picture = Picture(
        42 + 30 * count,
        f"A row for each of {count} steps. Step n reads n words; only its "
        "last word is new, and all before it are read again: together "
        f"{total} words, {total - count} of them again.",
    )
    step = 348 / count
    for r in range(count):
        y = 6 + 30 * r
        picture.text(6, y + 17, r + 1, at="start", size=12)
        for i, word in enumerate(words[: r + 1]):
            role = "query" if i == r else "wrong"
            width = step - 3
            box = picture.token(28 + i * step, y, word, role, width=width)
            _filled(picture, box, role)
    y = 24 + 30 * count
    picture.text(28, y, f"{count} new", role="query", at="start", bold=True)
    text = f"{total - count} again"
    picture.text(96, y, text, role="wrong", at="start", bold=True)
    return picture


def draw_keep(words):
    """Return one step: the new token's key and value join those kept.

    words: of the text so far, the last of them new.
    """
    count = len(words)
    picture = Picture(
        252,
        f"The new word {words[-1]} gives a query, a key and a value. Key and "
        f"value are appended to the {count - 1} that are kept; the query "
        "meets all keys, and mixes all values into one output.",
    )
    step, whole = 312 / count, 56 + 156
    for i, word in enumerate(words):
        x, new = 56 + i * step, i == count - 1
        role = "query" if new else "mask"
        box = picture.token(x - 1, 6, word, role, width=step - 1)
        for y, kind in ((106, "key"), (138, "value")):
            made = picture.layer(x + 4, y, step - 11, "", kind, 24)
            text = f"{kind[0]}{i}"
            picture.text(made.top[0], y + 17, text, role=kind)
        if new:
            _filled(picture, box, role)
            middle = box.bottom[0]
            side = made.right[0] + 6
            picture.arrow(box.bottom, (middle, 104), role="key", width=1.2)
            for y, role in ((150, "value"),):
                points = (middle, 40), (side, 40), (side, y), (side - 6, y)
                picture.arrow(*points, role=role, width=1.2)
            asks = picture.layer(8, 52, 44, f"q{i}", "query", 24)
            points = (middle, 64), asks.right
            picture.arrow(*points, role="query", width=1.2)
    cache = Box(52, 98, step * (count - 1) + 2, 72)
    picture.frame(cache)
    picture.text(
        cache.x + 4,
        92,
        "keys and values in the cache",
        role="mask",
        at="start",
        size=12,
    )
    x = asks.bottom[0] - 14
    bottom = 214
    picture.line((x, 76), (x, bottom), role="query", width=1.2)
    out = picture.layer(whole - 56, 200, 112, "output", "output")
    picture.arrow((x, bottom), out.left, role="query", width=1.2)
    picture.arrow((whole, 172), (whole, 198), role="value", width=1.2)
    text = f"one row, over {count} keys"
    picture.text(out.bottom[0], 246, text, size=12)
    return picture


def draw_corners(length, new):
    """Return the two corners in which a chunk's causal mask may lie.

    length: of the keys; new: how many queries the chunk has, the last ones.
    """
    whole = np.where(np.tri(length), 1, np.nan)
    corner = np.where(np.tri(new, length), 1, np.nan)
    picture = Picture(
        220,
        f"Left a causal mask of {length} by {length}, whose last {new} rows "
        f"are framed: the first of them sees {length - new + 1} keys, the "
        f"last {length}. Right what is_causal gives these {new} queries: the "
        "first sees 1 key, the next 2.",
    )
    cell = 24
    names = [str(i) for i in range(length)]
    texts = [[""] * length] * length
    kept = picture.matrix(
        22, 24, whole, "value", texts=texts, cell=cell, height=cell,
        rows=names, columns=names,
    )  # fmt: skip
    top = kept.y + cell * (length - new)
    style = f"stroke:{colour('value')};stroke-width:3"
    picture.rect(Box(kept.x, top, kept.width, cell * new), style, radius=2)
    wrong = picture.matrix(
        218, top, corner, "wrong", texts=texts[:new], cell=22, height=cell,
    )  # fmt: skip
    style = f"stroke:{colour('wrong')};stroke-width:3"
    picture.rect(Box(wrong.x, top, wrong.width, wrong.height), style, radius=2)
    y = kept.y + kept.height + 18
    picture.text(kept.bottom[0], y, "bottom rows", role="value", bold=True)
    picture.text(wrong.bottom[0], y, "is_causal", role="wrong", bold=True)
    return picture


def draw_costs(costs):
    """Return what each step costs, with a cache and without.

    costs: {name: operations of each step}, two names, the cheaper first.
    """
    (low, few), (high, many) = costs.items()
    length, top = len(few), max(many)
    picture = Picture(
        216,
        f"Operations over {length} steps. {high} they rise to "
        f"{max(many) / 1e6:,.0f} million in a step; {low} they stay at "
        f"the bottom, at {max(few) / 1e6:.1f} million at most.",
    )
    left, right, floor, tall = 46, 366, 176, 150

    def curve(costs):
        chosen = range(0, length, max(1, length // 32))
        return [
            (
                left + (right - left) * n / (length - 1),
                floor - tall * costs[n] / top,
            )
            for n in [*chosen, length - 1]
        ]

    picture.line((left, 20), (left, floor), (right, floor), width=1)
    picture.line(*curve(many), role="wrong", width=2.5)
    picture.line(*curve(few), role="query", width=2.5)
    picture.text(left - 6, floor - tall + 5, f"{top / 1e6:,.0f}", at="end")
    picture.text(left - 6, floor + 4, "0", at="end")
    picture.text(left, 14, "million operations in a step", at="start", size=12)
    picture.text(286, 70, high, role="wrong", at="end", bold=True)
    picture.text(right, floor - 8, low, role="query", at="end", bold=True)
    picture.text(left, floor + 18, "1", size=12)
    picture.text(right, floor + 18, f"{length:,}", at="end", size=12)
    picture.text((left + right) / 2, floor + 34, "step", size=12)
    return picture


def draw_bill(num_layers, heads, width, length):
    """Return the bytes of a cache, factor by factor.

    The sizes of a model, and the tokens of a text; two bytes a number.
    """
    one = 2 * width
    vector, layer = heads * one, 2 * heads * one
    token = layer * num_layers
    rows = [
        ("", "a head's key", one, 1, "bytes"),
        (f"× {heads} heads", "a token's keys", vector, 2**10, "KiB"),
        ("× 2", "keys and values", layer, 2**10, "KiB"),
        (f"× {num_layers} layers", "a token", token, 2**20, "MiB"),
        (f"× {length:,} tokens", "a text", token * length, 2**30, "GiB"),
    ]
    said = [f"{name} {size / unit:g} {of}" for _, name, size, unit, of in rows]
    picture = Picture(
        10 + 36 * len(rows),
        f"A bill: {', '.join(said)}; each line multiplies the one before.",
    )
    for i, (times, name, size, unit, of) in enumerate(rows):
        y = 8 + 36 * i
        picture.text(4, y + 18, times, at="start", role="key")
        part = 130 + 6 * i
        box = picture.layer(124, y, part, name, "key", 26)
        picture.text(
            374, y + 18, f"{size / unit:g} {of}", at="end",
            bold=i == len(rows) - 1,
        )  # fmt: skip
        if i:
            x = 148
            picture.arrow((x, y - 10), (x, y), role="key", width=1.2)
    picture.line((box.right[0] + 4, box.y - 5), (374, box.y - 5), width=1)
    return picture


def draw_groups(heads, kept):
    """Return which key head each head reads, for some counts of key heads.

    heads: how many; kept: the counts of key heads, each a part of heads.
    """
    said = [f"{count} key heads, groups of {heads // count}" for count in kept]
    picture = Picture(
        84 * len(kept) + 4,
        f"{heads} heads of queries over their key heads: {'; '.join(said)}.",
    )
    names = {heads: "one each", 1: "all share"}
    step = 42
    for r, count in enumerate(kept):
        y, share = 6 + 84 * r, heads // count
        text = names.get(count, f"groups of {share}")
        picture.text(4, y + 17, text, at="start")
        picture.text(4, y + 65, f"{count} kept", role="key", at="start")
        for c in range(count):
            middle = 116 + step * (c * share + share / 2)
            key = picture.layer(
                middle - 17, y + 47, 34, f"k{c + 1}", "key", 24
            )
            for i in range(share):
                h = c * share + i
                box = picture.token(
                    118 + step * h, y, f"q{h + 1}", "query", width=38
                )
                picture.line(box.bottom, key.top, role="key")
    return picture


def draw_turns(prompt, written):
    """Return what each call reads of a text, and the letter that it gives.

    prompt: letters, read by the first call; written: one letter a call.
    """
    letters = [*prompt, *written]
    picture = Picture(
        30 + 34 * len(written),
        f"The first call reads {prompt} and gives {written[0]}. Each later "
        "call reads the one letter that the call before it gave; all others "
        "are in the cache.",
    )
    step = 292 / len(letters)
    for r, letter in enumerate(written):
        y, end = 8 + 34 * r, len(prompt) + r
        text = "prefill" if r == 0 else "decode"
        picture.text(4, y + 17, text, at="start")
        for i in range(end):
            new = r == 0 or i == end - 1
            role = "query" if new else "mask"
            at = 62 + i * step
            box = picture.token(at, y, letters[i], role, width=step - 2)
            if new:
                _filled(picture, box, role)
        right = 62 + end * step
        picture.arrow((right + 2, y + 12), (right + 18, y + 12), role="output")
        picture.text(
            right + 22, y + 17, letter, role="output", at="start", bold=True
        )
    y = 22 + 34 * len(written)
    picture.text(62, y, "blue: read in this call", role="query", at="start")
    return picture


def draw_sizes(sizes):
    """Return what the cache takes with fewer and fewer key heads, as bars.

    sizes: {key heads: gibibytes}, the largest first.
    """
    told = ", ".join(f"{n} key heads {size:g}" for n, size in sizes.items())
    picture = Picture(
        8 + 34 * len(sizes), f"Bars of the cache's gibibytes: {told}."
    )
    largest = max(sizes.values())
    for i, (count, size) in enumerate(sizes.items()):
        y = 8 + 34 * i
        text = f"{count} key head" + "s" * (count > 1)
        picture.text(96, y + 17, text, at="end", role="key")
        box = Box(104, y, 200 * size / largest, 24)
        style = f"stroke:{colour('key')};fill:{colour('key')}"
        picture.rect(box, style + ";fill-opacity:.3", radius=0)
        text = f"{size:g} GiB"
        picture.text(box.right[0] + 8, y + 17, text, at="start")
    return picture
