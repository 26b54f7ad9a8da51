"""The formulas: set without a script, and numbered as in the source."""

import re

import pytest

from tools.settings import chapters, contents


@pytest.mark.parametrize("name", [*contents(), "search"])
def test_each_formula_is_set(look, name):
    page = look(name)
    formulas = page.locator(".math").count()
    assert page.locator(".math > math").count() == formulas


@pytest.mark.parametrize("chapter", chapters())
def test_numbers_of_equations_stand_on_the_right(look, notebook, chapter):
    sources = "".join(cell.source for cell in notebook(chapter).markdown)
    numbers = re.findall(r"\\tag\{(\d+)\}", sources)
    distances = look(chapter).evaluate("""() =>
        [...document.querySelectorAll("div.math")]
        .map(box => [box, box.querySelector("math > mtable > mtr > "
            + "mtd:last-child > mtext:last-child")])
        .filter(([_, number]) => /^[(]\\d+[)]$/.test(number?.textContent))
        .map(([box, number]) => [number.textContent,
            box.getBoundingClientRect().left + box.scrollWidth
            - number.getBoundingClientRect().right])""")
    assert [text for text, _ in distances] == [f"({n})" for n in numbers]
    assert all(abs(distance) < 8 for _, distance in distances)
