"""The book's picture language, shown once, on the page *Notation*."""

import numpy as np

from .draw import Picture


def legend() -> str:
    """Return the signs of the book's drawings with their names.

    Returns
    -------
    str
        SVG.
    """
    picture = Picture(
        318,
        "the signs of the drawings: tokens, vectors of query, key, value and "
        "output, a matrix with a blocked cell, layer, head, sum, machine",
    )
    a, b = picture.tokens(34, ["life", "is"], left=8, right=150)
    picture.text(190, 50, "tokens; an arc is a weight", at="start")
    picture.arc(b.top, a.top, 0.5)
    for row, role in enumerate(("query", "key", "value", "output")):
        y = 74 + 30 * row
        picture.vector(32, y, [1, -2, 0.5], role)
        picture.text(190, y + 16, role, role=role, at="start", bold=True)
    picture.text(250, 90, "vectors: a letter", at="start")
    picture.text(250, 120, "and a colour each;", at="start")
    picture.text(250, 150, "darker is larger", at="start")
    weights = np.array([[1, np.nan], [0.4, 0.6]])
    picture.matrix(
        52, 222, weights, "query", rows=["life", "is"], columns=["life", "is"]
    )
    picture.text(8, 288, "a row a query, a column", at="start", size=12)
    picture.text(8, 303, "a key; hatched: blocked", at="start", size=12)
    layer = picture.layer(200, 214, 80, "layer")
    plus = picture.plus(330, 228)
    picture.arrow(layer.right, plus.left)
    picture.head(200, 260, 80, "head")
    picture.machine(296, 260, 70, "machine")
    return picture._repr_svg_() + "\n"
