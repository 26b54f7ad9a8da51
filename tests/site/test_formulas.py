"""The formulas: set without a script, numbered, and right in the source."""

import io
import re

import pytest

from tools.notebooks import Notebook
from tools.settings import BOOK, ROOT, chapters, contents


@pytest.mark.parametrize("name", [*contents(), "search"])
def test_each_formula_is_set(look, name):
    page = look(name)
    formulas = page.locator(".math").count()
    assert page.locator(".math > math").count() == formulas


@pytest.mark.parametrize("chapter", chapters())
def test_numbers_of_equations_stand_on_the_right(look, chapter):
    cells = Notebook.read(ROOT / f"{chapter}.ipynb").markdown
    sources = "".join(cell.source for cell in cells)
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


def test_tex_that_cannot_be_set_stops_the_build(tmp_path, monkeypatch):
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    words = "# A\n\n$x$, $\\worng{x}$ and $\\sqrt{\\frac{x}{2}}$\n"
    (tmp_path / "index.md").write_text(words)
    settings = {
        "extensions": ["myst_nb", "native_math"],
        "html_math_renderer": "native",
        "myst_enable_extensions": ["dollarmath"],
    }
    monkeypatch.syspath_prepend(BOOK / "_ext")
    said, out = io.StringIO(), tmp_path / "out"
    with docutils_namespace():
        places = tmp_path, None, out, out
        Sphinx(*places, "html", settings, None, said).build()
    wrong, high = re.findall("WARNING: (.*)", said.getvalue())
    assert r"\worng{x}" in wrong and "Correct it" in wrong
    assert r"\sqrt{\frac{x}{2}}" in high and "x^{1/2}" in high
    assert "<mi>x</mi>" in (out / "index.html").read_text("utf-8")
