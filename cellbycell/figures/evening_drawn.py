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
