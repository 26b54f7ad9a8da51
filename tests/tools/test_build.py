"""What the book's own extensions refuse, in builds of one small page."""

import io
import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook, writes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace

from tools.settings import BOOK

TABS = ["framework_tabs", "myst_nb", "sphinx_design"]


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Return a function: extensions, a page -> what Sphinx warns of it."""
    monkeypatch.syspath_prepend(BOOK / "_ext")

    def build(extensions, name, text, builder="html", **more):
        (tmp_path / name).write_text(text)
        settings = {"extensions": extensions, "nb_execution_mode": "off"}
        settings |= {"html_theme": "sphinx_book_theme", **more}
        said, out = io.StringIO(), tmp_path / "out"
        places = tmp_path, None, out, tmp_path / "trees"
        with docutils_namespace():
            app = Sphinx(*places, builder, settings, None, said)
            app.build()
        return said.getvalue()

    return build


def tagged(tags):
    """Return the text of a notebook with a cell for each tag."""
    cells = [
        new_code_cell(f"x = {place}", metadata={"tags": [tag]})
        for place, tag in enumerate(tags.split(), 1)
    ]
    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    return writes(new_notebook(cells=cells, metadata=python))


@pytest.mark.parametrize(
    ("tags", "alone"),
    [
        ("pytorch pytorch tensorflow tensorflow plain", []),
        ("pytorch plain tensorflow", ["x = 1", "x = 3"]),
        ("tensorflow pytorch", ["x = 1", "x = 2"]),
        ("pytorch pytorch tensorflow", ["x = 1", "x = 3"]),
    ],
)
def test_a_cell_without_its_partner_is_named(build, tags, alone):
    said = build(TABS, "index.ipynb", tagged(tags), "dummy")
    warning = r"index.ipynb: WARNING: cell \d \((x = \d)\): a cell tagged"
    assert re.findall(warning, said) == alone


def test_tex_that_cannot_be_set_is_named(build, tmp_path):
    words = "# A\n\n$x$, $\\worng{x}$ and $\\sqrt{\\frac{x}{2}}$\n"
    more = {"html_math_renderer": "native"}
    more["myst_enable_extensions"] = ["dollarmath"]
    said = build(["myst_nb", "native_math"], "index.md", words, **more)
    wrong, high = re.findall("WARNING: (.*)", said)
    assert r"\worng{x}" in wrong and "Correct it" in wrong
    assert r"\sqrt{\frac{x}{2}}" in high and "x^{1/2}" in high
    assert "<mi>x</mi>" in (tmp_path / "out/index.html").read_text("utf-8")


def test_a_sheet_that_the_theme_adds_is_not_left_out(build, tmp_path):
    extensions = ["lean_styles", "sphinx_book_theme"]
    build(extensions, "index.rst", "A\n=\n")
    sheet = tmp_path / "out/_static/styles/new.css"
    sheet.write_text("a { color: red }")
    with pytest.raises(ExtensionError, match="_static/styles/new.css: add"):
        build(extensions, "index.rst", "B\n=\n")
