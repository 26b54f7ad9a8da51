"""Narrow windows and large letters: nothing is cut off, nothing too wide."""

import pytest

from tools.settings import chapters, contents

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
# A shape such as (B, T, S) stays on one line.
BROKEN = """() => [...document.querySelectorAll(".shape")]
    .filter(shape => new Set([...shape.getClientRects()]
        .map(box => box.top)).size > 1)
    .map(shape => shape.textContent)"""


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_wider_than_a_phone(look, name):
    for width in (320, 360, 640):
        page = look(name, unfolded=True, width=width)
        wide = page.evaluate(WIDTH)
        assert wide <= width, f"at {width} pixels the page is {wide} wide"
        cut = page.evaluate(CUT_OFF) + page.evaluate(BROKEN)
        assert not cut, f"at {width} pixels nobody can read all of {cut}"


@pytest.mark.parametrize("name", EVERY)
def test_large_letters_and_tables_fit(look, name):
    page = look(name, unfolded=True)
    wide = page.locator("article table.table").evaluate_all(
        """all => all.map(table => table.parentElement)
        .filter(box => box.scrollWidth > box.clientWidth + 1)
        .map(box => box.closest("section").id)"""
    )
    assert not wide
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    wide = page.evaluate(WIDTH)
    page.evaluate("document.documentElement.style.fontSize = ''")
    assert wide <= 1280, f"with letters twice as large it is {wide} wide"


@pytest.mark.parametrize("name", chapters())
def test_crosses_and_figures_fit_a_phone(look, name):
    page = look(name, unfolded=True, width=390)
    tables = page.locator("table.crosses").evaluate_all("""all => all.map(
        table => [table.parentElement.scrollWidth,
            table.parentElement.clientWidth,
            parseFloat(getComputedStyle(table).fontSize)])""")
    # Of the mistakes and what notices them, in most chapters.
    assert tables or name in chapters()[9:]
    for wide, room, letters in tables:
        assert wide <= room and letters >= 11
    # A figure's letters have ten points, of a hundred pixels an inch.
    scales = page.locator(".cell_output > img").evaluate_all(
        "all => all.map(image => image.getBoundingClientRect().width"
        " / image.getAttribute('width'))"
    )
    assert all(scale * 1000 / 72 > 10.9 for scale in scales)


def test_shapes_are_marked_in_code_and_in_text(look):
    texts = look("book/notation").locator("td .shape").all_text_contents()
    assert "(B, T, S)" in texts and "(…, T, S)" in texts
