"""Bars: one number a line, and words behind or below it."""

from .draw import Box, Picture, colour


def draw_bars(rows, told, width=90):
    """Return numbers as bars, one below the other.

    rows: (name, number, role of its colour, words below it or ""); told:
    what the numbers are, in a sentence's beginning; width: of the longest.
    """
    said = "; ".join(
        f"{name}: {number:g}" + f", {words}" * bool(words)
        for name, number, _, words in rows
    )
    heights = [42 if words else 25 for *_, words in rows]
    picture = Picture(8 + sum(heights), f"{told}: {said}.")
    unit = width / max(number for _, number, *_ in rows)
    y = 6
    for (name, number, role, words), height in zip(rows, heights, strict=True):
        picture.text(180, y + 14, name, at="end", size=12)
        box = Box(188, y, max(1, unit * number), 18)
        style = f"fill:{colour(role)};fill-opacity:.45"
        picture.rect(box, style, radius=0)
        end = box.right[0] + 6
        picture.text(end, y + 14, f"{number:g}", at="start", size=12)
        if words:
            picture.text(188, y + 33, words, at="start", role=role, size=12)
        y += height
    return picture
