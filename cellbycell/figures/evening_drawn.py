"""The drawings of *One evening*."""

import numpy as np

from ..names import LETTERS
from .draw import Picture

_SHOWN = 6  # letters, and the rest


def show_row(rows, letter="a"):
    """Draw what follows a letter in the names, which its row has to learn.

    Parameters
    ----------
    rows
        (B, T), ids of letters.
    letter
        The letter whose row it is.

    Returns
    -------
    Picture
        The letter, its row, and the likeliest next letters as bars.
    """
    rows = np.asarray(rows)
    followed = rows[:, :-1] == LETTERS.index(letter)
    counts = np.bincount(rows[:, 1:][followed], minlength=len(LETTERS))
    best = np.argsort(-counts, kind="stable")[:_SHOWN]
    shares = counts[best] / counts.sum()
    names = [LETTERS[n].replace(" ", "␣") for n in best] + ["others"]
    shares = [*shares, 1 - shares.sum()]
    picture = Picture(
        168, f"the letter {letter} picks its row, a score for each next letter"
    )
    chip = picture.token(8, 24, letter)
    row = picture.matrix(
        90, 25, [shares], "value", cell=40, columns=names,
        texts=[[f"{share:.2f}" for share in shares]],
    )  # fmt: skip
    picture.arrow(chip.right, row.left, text="its row")
    for i, share in enumerate(shares):
        x = 90 + 40 * i
        picture.add(
            f'<path d="M{x + 8} 150v-{200 * share:.0f}h24v{200 * share:.0f}z" '
            'style="fill:var(--role-value,#1b7a43);fill-opacity:.6"/>'
        )
    picture.line((90, 150), (370, 150))
    picture.text(8, 146, "next letter", at="start", size=12)
    return picture


def show_sizes(names, smol):
    """Draw the model of names beside SmolLM2, block upon block.

    Parameters
    ----------
    names, smol
        What `Model` is given for each: vocabulary, blocks, columns, heads,
        heads of keys, hidden columns, base.

    Returns
    -------
    Picture
        Two towers to one scale of blocks.
    """
    picture = Picture(
        286,
        f"the model of names, {names[1]} blocks, beside SmolLM2, {smol[1]}",
    )
    towers = (40, 50, "names", names), (214, 120, "SmolLM2", smol)
    for left, width, title, (_, blocks, columns, heads, *_) in towers:
        floor = 236
        for block in range(blocks):
            y = floor - 7 * (block + 1)
            box = picture.layer(left, y, width, "", "output", height=6)
        middle = left + width / 2
        picture.text(middle, box.top[1] - 8, title, bold=True)
        picture.layer(left, floor + 4, width, "", "token", height=8)
        facts = f"{blocks} blocks", f"{columns} columns, {heads} heads"
        for line, text in enumerate(facts):
            y = floor + 30 + 15 * line
            picture.text(max(middle, 92), y, text, size=12)
    picture.text(150, 244, "table", size=12)
    return picture


def show_stream(blocks=2):
    """Draw how a row goes through the model: parts add to it.

    Parameters
    ----------
    blocks
        How many blocks are drawn.

    Returns
    -------
    Picture
        The row as an arrow upwards, and beside it what each block adds.
    """
    height = 96 + 96 * blocks
    picture = Picture(
        height, "a row goes straight up; attention and gated network add to it"
    )
    floor = height - 34
    picture.layer(60, floor, 120, "row of the table", height=26)
    y = floor
    for _ in range(blocks):
        for name, role in (("attention", "query"), ("gate", "value")):
            y -= 48
            box = picture.layer(210, y + 14, 110, f"norm, {name}", role, 26)
            picture.line((120, y + 44), (265, y + 44), box.bottom)
            picture.arrow(box.top, (265, y + 4), (128, y + 4))
    picture.arrow((120, floor), (120, 34), width=4, role="output")
    for plus in range(2 * blocks):
        picture.plus(120, floor - 44 - 48 * plus, role="output")
    picture.layer(60, 8, 120, "norm, logits", "output", height=26)
    return picture


def show_breaks():
    """Draw the four changes of *One switch at a time*.

    Returns
    -------
    Picture
        Mask, speed, positions and key heads, as they are and changed.
    """
    picture = Picture(
        238, "mask, speed of turning, positions and key heads, right and wrong"
    )
    picture.text(190, 16, "as it is", bold=True)
    picture.text(310, 16, "changed", bold=True)
    rows = "no mask", "another base", "positions halved", "key heads in turn"
    for i, name in enumerate(rows):
        picture.text(4, 50 + 56 * i, name, at="start")
    low = np.where(np.tri(3) > 0, 1, np.nan)
    blank = [["", "", ""]] * 3
    for x, mask in ((163, low), (283, np.ones((3, 3)))):
        picture.matrix(x, 26, mask, "query", texts=blank, cell=18, height=14)
    for x, ends in ((190, (12, -13)), (310, (18, 2))):
        picture.add(
            f'<circle cx="{x}" cy="102" r="18" '
            'style="stroke:var(--role-mask,#8a94a3)"/>'
        )
        tip = x + ends[0], 102 + ends[1]
        picture.arrow((x, 102), tip, role="key", width=2)
    for x, places in ((146, "0 1 2 3"), (266, "0 .5 1 1.5")):
        for j, place in enumerate(places.split()):
            picture.token(x + 22 * j, 148, place, width=22)
    for x, heads in ((136, "1 1 1 2 2 2 3 3 3"), (256, "1 2 3 1 2 3 1 2 3")):
        numbers = [int(head) for head in heads.split()]
        picture.matrix(x, 204, [numbers], "key", cell=12)
    return picture
