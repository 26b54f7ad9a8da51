"""The drawings and the plot of *A thousand requests*."""

import json
from pathlib import Path

from .draw import Box, Picture, colour

# What SmolLM2 takes on one machine: `python -m benchmarks.serving`.
FILE = Path(__file__).parent.parent / "data" / "serving.json"
ROLES = ("query", "key", "value", "output")
EMPTY = "fill:none;stroke:var(--book-text,#1d2433);stroke-opacity:0.25"


def plot_ratios():
    """Plot the tokens a second of several texts, as times those of one.

    Returns
    -------
    dict
        {how many at once: how many times the tokens a second of one}.
    """
    import matplotlib.pyplot as plt

    stored = json.loads(FILE.read_text("utf-8"))["ratios"]
    ratios = {int(count): ratio for count, ratio in stored.items()}
    _, ax = plt.subplots(figsize=(3.6, 2.4), layout="constrained")
    bars = ax.bar([str(count) for count in ratios], [*ratios.values()])
    ax.bar_label(bars, fmt="%.1f")
    ax.set(xlabel="texts at once", ylabel="times the tokens of one")
    ax.margins(y=0.15)
    return ratios


def _tint(role, share=0.25):
    return f"fill:{colour(role)};fill-opacity:{share};stroke:{colour(role)}"


def draw_flat(texts):
    """Draw several texts in one flat row, and what each token may see.

    Parameters
    ----------
    texts
        Their letters; each begins with a dot, which is not given.

    Returns
    -------
    Picture
        The row, and the mask below it.
    """
    tokens = [
        (n, i, x) for n, t in enumerate(texts) for i, x in enumerate("." + t)
    ]
    cell = 330 / len(tokens)
    picture = Picture(
        104 + 12 * len(tokens),
        f"{len(texts)} texts in one row of {len(tokens)} tokens, with their "
        "positions, each text from 0 on. Below it the mask: each token sees "
        "its own text up to itself, so there is a triangle for each text.",
    )
    picture.text(190, 16, "one row, positions of their own")
    for place, (n, i, x) in enumerate(tokens):
        box = Box(25 + place * cell, 26, cell, 24)
        picture.rect(box, _tint(ROLES[n]), radius=2)
        picture.text(box.x + cell / 2, 43, x if x != " " else "␣")
        picture.text(box.x + cell / 2, 66, i, size=11)
    top, high = 96, 12
    picture.text(190, 88, "what each may see")
    for row, (n, i, _) in enumerate(tokens):
        for column, (m, j, _) in enumerate(tokens):
            box = Box(25 + column * cell, top + row * high, cell, high)
            style = _tint(ROLES[n], 0.45) if n == m and j <= i else EMPTY
            picture.rect(box, style, radius=0)
    return picture


def draw_pages():
    """Draw three texts, their tables, and the pages of the memory.

    Returns
    -------
    Picture
        Pages of four slots; two are free.
    """
    tables = {"A": (2, 5), "B": (0,), "C": (6, 1, 3)}
    fills = {"A": 6, "B": 3, "C": 9}
    picture = Picture(
        250,
        "Three texts with 6, 3 and 9 tokens. Their tables name pages 2 and 5, "
        "page 0, and pages 6, 1 and 3 of the memory, which has 8 pages of 4 "
        "slots; pages 4 and 7 are free.",
    )
    owner, start = {}, {}
    for row, (name, table) in enumerate(tables.items()):
        y = 14 + 34 * row
        picture.text(20, y + 17, name, bold=True)
        picture.text(92, y + 17, f"{fills[name]} tokens", size=12)
        picture.text(165, y + 17, "pages", size=12, at="end")
        for n, page in enumerate(table):
            box = Box(175 + 34 * n, y, 28, 24)
            picture.rect(box, _tint(ROLES[row]))
            picture.text(box.x + 14, y + 17, page)
            owner[page] = row
            start[page] = fills[name] - 4 * n
    for page in range(8):
        x, y = 14 + 90 * (page % 4), 128 + 62 * (page // 4)
        picture.text(x + 40, y + 12, f"page {page}", size=12)
        for slot in range(4):
            box = Box(x + 20 * slot, y + 20, 20, 24)
            used = page in owner and slot < start[page]
            role = ROLES[owner[page]] if page in owner else None
            style = _tint(role, 0.5 if used else 0.08) if role else EMPTY
            picture.rect(box, style, radius=2)
    return picture


def draw_prefix():
    """Draw two texts whose first pages are the same.

    Returns
    -------
    Picture
        Two tables that name two pages together, and one of their own each.
    """
    picture = Picture(
        190,
        "Two questions after one system prompt. The tables of both name the "
        "same two pages, which hold the prompt, and then a page of their own.",
    )
    for row, (name, own) in enumerate({"first": 7, "second": 4}.items()):
        y = 20 + 110 * row
        picture.text(10, y + 17, f"{name} question", at="start")
        for n, page in enumerate((2, 5, own)):
            box = Box(130 + 60 * n, y, 44, 26)
            picture.rect(box, _tint("key" if n < 2 else ROLES[2 * row]))
            picture.text(box.x + 22, y + 18, page)
    for n, text in enumerate(("system", "prompt")):
        box = Box(130 + 60 * n, 75, 44, 26)
        picture.rect(box, _tint("key", 0.5))
        picture.text(box.x + 22, 93, text, size=10)
        picture.arrow((box.x + 22, 46), (box.x + 22, 74), role="key")
        picture.arrow((box.x + 22, 130), (box.x + 22, 102), role="key")
    for row, text in enumerate(("the first", "the second")):
        box = Box(243 + 68 * row, 75, 62, 26)
        picture.rect(box, _tint(ROLES[2 * row], 0.5))
        picture.text(box.x + 31, 92, text, size=10)
    picture.arrow((272, 46), (272, 74), role=ROLES[0])
    picture.arrow((276, 130), (334, 102), role=ROLES[2])
    return picture


def draw_request():
    """Draw one request in three steps: its ids, and which are read.

    Returns
    -------
    Picture
        A prompt of six ids, read in two chunks, and then a newest one.
    """
    picture = Picture(
        176,
        "A prompt of six ids in three steps. First four are read; then the "
        "other two, and a seventh is written; then only the seventh is read, "
        "and an eighth is written.",
    )
    ids, step = ".irela", 34
    for row, (name, read, stop, new) in enumerate(
        (("a chunk", 0, 4, ""), ("the rest", 4, 6, "n"), ("newest", 6, 7, "d"))
    ):
        y = 10 + 46 * row
        picture.text(70, y + 18, name, at="end", size=12)
        known = ids + "n" * (row == 2)
        for i, letter in enumerate(known):
            box = Box(80 + step * i, y, step - 4, 26)
            role = "key" if i < read else "output" if i < stop else "token"
            style = _tint(role, 0.35) if i < stop else EMPTY
            picture.rect(box, style, radius=2)
            picture.text(box.x + (step - 4) / 2, y + 18, letter)
        if new:
            x = 80 + step * len(known)
            picture.frame(Box(x, y, step - 4, 26), role="value")
            picture.text(x + (step - 4) / 2, y + 18, new, role="value")
    for x, role, name in (
        (40, "key", "keys in memory"), (160, "output", "read now"),
        (246, "value", "written"),
    ):  # fmt: skip
        picture.rect(Box(x, 150, 12, 12), _tint(role, 0.35), radius=2)
        picture.text(x + 18, 161, name, at="start", size=12)
    return picture


def draw_room():
    """Draw six pages before and after the youngest makes room.

    Returns
    -------
    Picture
        The third text loses its pages, the first gets one, and it waits.
    """
    picture = Picture(
        124,
        "Six pages, two for each of the texts A, B and C. A needs a third "
        "and none is free, so C, the youngest, gives its two back: A has "
        "three, one is free, and C waits with all its ids.",
    )
    for y, name, pages in ((14, "before", "AABBCC"), (72, "after", "AABBA ")):
        picture.text(52, y + 18, name, at="end", size=12)
        for i, text in enumerate(pages):
            box = Box(60 + 40 * i, y, 36, 26)
            style = EMPTY if text == " " else _tint(ROLES["ABC".index(text)])
            picture.rect(box, style, radius=2)
            picture.text(box.x + 18, y + 18, text)
    picture.arrow((238, 40), (238, 70), role="query")
    picture.token(318, 73, "C", "value", width=36)
    picture.arrow((278, 40), (300, 58), (336, 58), (336, 71), role="value")
    picture.text(336, 114, "waits", role="value", size=12)
    return picture


def draw_own_ids(users, size):
    """Draw texts whose pages are found by their own ids alone.

    Parameters
    ----------
    users
        What the first, the second and the third have asked.
    size
        The slots of a page.

    Returns
    -------
    Picture
        The third takes its first page from the second, and its second page
        from the first.
    """
    first, second, third = (
        [("." + t)[i : i + size] for i in (0, size)] for t in users
    )
    picture = Picture(
        182,
        f"Pages of {size} ids. The third user's, {third[0]} and {third[1]}, "
        f"are found as {second[0]} of the second user and as {first[1]} of "
        "the first.",
    )
    for row, pages in enumerate((first, second, third)):
        y = 10 + 60 * row
        name = ("first", "second", "third")[row]
        picture.text(70, y + 18, name, role=ROLES[row], at="end")
        for i, text in enumerate(pages):
            box = Box(90 + 140 * i, y, 90, 26)
            role = ROLES[row] if row < 2 else ROLES[1 - i]
            picture.rect(box, _tint(role, 0.3), radius=2)
            picture.text(box.x + 45, y + 18, text)
    picture.arrow((135, 96), (135, 128), role=ROLES[1])
    around = (320, 23), (350, 23), (350, 143), (322, 143)
    picture.arrow(*around, role="wrong")
    text = f"was read after {first[0]}"
    picture.text(275, 172, text, role="wrong", size=12)
    return picture


def draw_schedule(asks, settings, prompts):
    """Draw who asks a server when, and how.

    Parameters
    ----------
    asks
        For each request when it comes, its ids, settings of its draws or
        None, and when its user hangs up or None; in steps.
    settings
        The server's: count, size, budget and most.
    prompts
        The requests' prompts, as texts.

    Returns
    -------
    Picture
        A line for each request, over the steps.
    """
    told = ", ".join(
        f"{prompt} at step {comes}"
        + (" drawn" if drawn else "")
        + (f", gone at {leaves}" if leaves is not None else "")
        for (comes, _, drawn, leaves), prompt in zip(
            asks, prompts, strict=True
        )
    )
    picture = Picture(
        74 + 24 * len(asks),
        "Requests below each other, steps to the right: "
        f"{told}. The server has {settings['count']} pages of "
        f"{settings['size']} slots.",
    )
    text = f"{settings['count']} pages of {settings['size']} slots, "
    text += f"{settings['budget']} tokens a step, {settings['most']} at a time"
    picture.text(190, 16, text, size=12)
    for row, ((comes, _, drawn, leaves), prompt) in enumerate(
        zip(asks, prompts, strict=True)
    ):
        y = 40 + 24 * row
        role = "output" if drawn else "query"
        picture.text(134, y + 5, prompt.replace(" ", "␣"), at="end", size=12)
        start = 146 + 5.5 * comes
        picture.rect(Box(start - 4, y - 4, 8, 8), _tint(role, 0.6), radius=4)
        if leaves is None:
            picture.arrow((start + 4, y), (374, y), role=role)
        else:
            end = 146 + 5.5 * leaves
            picture.line((start + 4, y), (end, y), role=role)
            for side in (-5, 5):
                ends = (end - 5, y - side), (end + 5, y + side)
                picture.line(*ends, role="wrong", width=2)
    y = 62 + 24 * len(asks)
    for x, role, name in (
        (40, "query", "greedy"), (120, "output", "drawn"),
        (200, "wrong", "hangs up"),
    ):  # fmt: skip
        picture.rect(Box(x, y - 10, 12, 12), _tint(role, 0.6), radius=2)
        picture.text(x + 18, y + 1, name, at="start", size=12)
    return picture


def draw_batches(lengths, places):
    """Draw texts in fixed batches, and where each takes the next free place.

    Parameters
    ----------
    lengths
        How many tokens each text writes.
    places
        How many texts are written at a time.

    Returns
    -------
    Picture
        Steps to the right, a line for each place, twice.
    """
    fixed, joined, ends, start = [], [], [0] * places, 0
    for first in range(0, len(lengths), places):
        batch = lengths[first : first + places]
        fixed += [(row, start, first + row) for row in range(len(batch))]
        start += max(batch)
    for text, length in enumerate(lengths):
        row = ends.index(min(ends))
        joined.append((row, ends[row], text))
        ends[row] += length
    picture = Picture(
        62 + 48 * places,
        f"{len(lengths)} texts, {places} at a time. In fixed batches they "
        f"take {start} steps, as each batch waits for its longest; if each "
        f"takes the first free place, {max(ends)}.",
    )
    step = 300 / start
    for top, name, blocks, steps in (
        (24, "fixed batches", fixed, start),
        (56 + 24 * places, "join and leave", joined, max(ends)),
    ):
        picture.text(4, top - 8, f"{name}: {steps} steps", at="start", size=12)
        for row in range(places):
            box = Box(4, top + 24 * row, step * steps, 20)
            picture.rect(box, f"fill:{colour('mask')};fill-opacity:.15", 0)
        for row, at, text in blocks:
            box = Box(4 + step * at, top + 24 * row, step * lengths[text], 20)
            picture.rect(box, _tint(ROLES[text % 4], 0.35), radius=2)
            picture.text(box.top[0], box.y + 15, text + 1, size=12)
    return picture
