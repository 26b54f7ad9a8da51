"""The picture language: one colour a role, and what is refused."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from cellbycell.figures.arcs import show_arcs
from cellbycell.figures.draw import ROLES, WIDTH, Picture
from cellbycell.figures.legend import legend
from cellbycell.figures.moving import show_break
from tools.settings import BOOK

ALT = "a token and its vector, in one line"


def test_a_role_has_the_colour_of_the_site():
    """Where no site gives the colour, as in Colab, a picture has it itself."""
    style = (BOOK / "_static" / "custom.css").read_text("utf-8")
    for role, (_, colour) in ROLES.items():
        light, dark = re.findall(rf"--role-{role}: (#\w+);", style)
        assert light == colour != dark


def test_a_picture_is_an_image_that_says_what_it_shows():
    picture = Picture(40, ALT)
    picture.vector(20, 8, [1, -0.5], "query")
    picture.text(200, 20, "x < y & z")
    image = ElementTree.fromstring(picture._repr_svg_())
    assert image.get("aria-label") == ALT
    assert image.get("viewBox") == f"0 0 {WIDTH} 40"
    texts = [node.text for node in image.iter() if node.text]
    assert texts == ["q", "1", "−0.5", "x < y & z"]
    assert ElementTree.fromstring(legend()) is not None


def test_darker_is_larger_and_a_blocked_cell_is_hatched():
    picture = Picture(40, ALT)
    picture.matrix(0, 0, [[1, 3, np.nan]])
    shares = re.findall(r"fill-opacity:([\d.]+)", "".join(picture.drawn))
    assert shares == ["0.16", "0.40", ".25"]
    assert "--role-mask" in picture.drawn[-2]


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="20 characters"):
        Picture(40, "a token")
    with pytest.raises(ValueError, match=r"the shape \(2, 3\)"):
        show_arcs("x", ["a", "b"], np.eye(2), columns=["c", "d", "e"])
    right, some = {"sums": True, "loss": True}, {"sums": False, "loss": True}
    with pytest.raises(ValueError, match="same rows and columns"):
        show_break("x", [[1, 2]], [[1]], (right, some), "wrong")
    with pytest.raises(ValueError, match="some checks fail, not all"):
        show_break("x", [[1]], [[2]], (right, right), "wrong")
    with pytest.raises(ValueError, match="mend the check"):
        show_break("x", [[1]], [[2]], (some, right), "wrong")
