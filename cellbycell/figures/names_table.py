"""What the model of names writes so far, chapter by chapter."""

from html import escape
from typing import Any

from ..ribbon import points

__all__ = ["show_names"]
# Dark letters on a dark theme's ground would be lost: it brings its paper.
STYLE = "background:var(--picture-paper,#fff);color:var(--book-text,#1d2433)"
HEAD = "the model", "steps", "loss", "five names from the same beginnings"


def show_names(chapter: str) -> Any:
    """Return a table: each part so far, the loss with it, and five names.

    Parameters
    ----------
    chapter
        The chapter whose part is the last row, as in "attention".

    Returns
    -------
    IPython.display.HTML

    Raises
    ------
    ValueError
        No row of `points` is of this chapter.
    """
    from IPython.display import HTML

    found = points()
    last = max(
        (i for i, p in enumerate(found) if p["chapter"] == chapter), default=-1
    )
    if last < 0:
        known = ", ".join(dict.fromkeys(p["chapter"] for p in found))
        raise ValueError(f"{chapter!r} adds no part; these do: {known}.")
    rows = [
        (
            p["part"],
            str(p["steps"]),
            f"{p['loss']:.2f}",
            escape(", ".join(p["names"])),
        )
        for p in found[: last + 1]
    ]
    head = "".join(f"<th>{word}</th>" for word in HEAD)
    lines = ("".join(f"<td>{word}</td>" for word in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return HTML(f'<table style="{STYLE}"><tr>{head}</tr>{body}</table>')
