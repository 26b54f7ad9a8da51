"""Narrow windows and large letters: nothing is cut off, nothing too wide."""

import pytest

from tools.settings import contents

EVERY = [*contents(), "search"]
WIDTH = "document.documentElement.scrollWidth"
# A display (div) scrolls to the right, a formula in a line (span) does not.
CUT_OFF = """() => [...document.querySelectorAll(".math")]
    .filter(math => math.offsetParent)
    .filter(math => {
        const box = math.getBoundingClientRect();
        const ink = Array.from(math.querySelectorAll("math *"))
            .map(sign => sign.getBoundingClientRect());
        return ink.some(sign => sign.left < box.left - 1) ||
            math.matches("span") &&
            ink.some(sign => sign.right > box.right + 1);
    })
    .map(math => math.textContent)"""


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_wider_than_a_phone(look, name):
    for width in (320, 360, 640):
        page = look(name, unfolded=True, width=width)
        wide = page.evaluate(WIDTH)
        assert wide <= width, f"at {width} pixels the page is {wide} wide"
        cut = page.evaluate(CUT_OFF)
        assert not cut, f"at {width} pixels nobody can read all of {cut}"


@pytest.mark.parametrize("name", EVERY)
def test_letters_of_twice_the_size_fit(look, name):
    page = look(name, unfolded=True)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    wide = page.evaluate(WIDTH)
    page.evaluate("document.documentElement.style.fontSize = ''")
    assert wide <= 1280, f"the page is {wide} wide"


@pytest.mark.parametrize("name", EVERY)
def test_a_table_is_read_without_scrolling(look, name):
    page = look(name, unfolded=True)
    wide = page.locator("article table.table").evaluate_all(
        """all => all.map(table => table.parentElement)
        .filter(box => box.scrollWidth > box.clientWidth + 1)
        .map(box => box.closest("section").id)"""
    )
    assert not wide
