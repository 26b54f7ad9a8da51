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
    _, ax = plt.subplots(figsize=(5, 2.4), layout="constrained")
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
