"""What a later version of a package may break, something says so at once.

Each test puts the change in the place of the version that will bring it.
"""

import io
import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook, writes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import docutils_namespace

from tools import chromium
from tools.commands.outputs import execute
from tools.notebooks import Notebook
from tools.settings import BOOK, ROOT


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Return a function: extensions, a page -> what Sphinx warns of it."""
    monkeypatch.syspath_prepend(BOOK / "_ext")

    def build(extensions, name, text, builder="html", transforms=()):
        (tmp_path / name).write_text(text)
        settings = {"extensions": extensions, "nb_execution_mode": "off"}
        settings["html_theme"] = "sphinx_book_theme"
        said, out = io.StringIO(), tmp_path / "out"
        with docutils_namespace():
            app = Sphinx(
                *(tmp_path, None, out, tmp_path / "trees", builder),
                *(settings, None, said),
            )
            for transform in transforms:
                app.add_transform(transform)
            app.build()
        return said.getvalue()

    return build


class OtherMarks(SphinxTransform):
    """Mark the cells in another way than MyST-NB does."""

    default_priority = 499

    def apply(self):
        for node in self.document.findall():
            if getattr(node, "attributes", {}).pop("nb_element", None):
                node["element"] = "cell_code"


@pytest.mark.parametrize("transforms", [[], [OtherMarks]])
def test_tabs_miss_no_tagged_cell(build, transforms):
    cells = [
        new_code_cell("1", metadata={"tags": [tag]})
        for tag in ("pytorch", "tensorflow")
    ]
    text = writes(new_notebook(cells=cells))
    extensions = ["framework_tabs", "myst_nb", "sphinx_design"]
    said = build(extensions, "index.ipynb", text, "dummy", transforms)
    assert ("no cell tagged 'pytorch' is found" in said) == bool(transforms)


def test_a_sheet_that_the_theme_adds_is_not_left_out(build, tmp_path):
    extensions = ["lean_styles", "sphinx_book_theme"]
    build(extensions, "index.rst", "A\n=\n")
    sheet = tmp_path / "out/_static/styles/new.css"
    sheet.write_text("a { color: red }")
    with pytest.raises(ExtensionError, match="_static/styles/new.css: add"):
        build(extensions, "index.rst", "B\n=\n")


NATIVE = "import os\nos.write(1, b'native')\nos.write(2, b'native')\nprint(1)"


def test_native_lines_are_not_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # which has the same effect
    cell = new_code_cell(NATIVE)
    notebook = Notebook(tmp_path / "x.ipynb", new_notebook(cells=[cell]))
    (output,) = execute(notebook).code[0].outputs
    assert output.text == "1\n"


@pytest.mark.parametrize("fault", ["exit 1", "sleep 0.1; echo 'No such'"])
def test_a_browser_that_cannot_be_driven_is_named_with_the_remedy(
    tmp_path, fault
):
    from playwright.sync_api import sync_playwright

    path = tmp_path / "chromium"
    path.write_text(f"#!/bin/sh\n{fault}\n")
    path.chmod(0o755)
    with sync_playwright() as playwright:
        with pytest.raises(chromium.UnfitError) as unfit:
            chromium.launch(playwright, path)
    said = str(unfit.value)
    assert "Install that Chromium, or raise Playwright" in said
    # The versions that go together are those of this book.
    pin = re.search(
        r"playwright==(\S+)", (ROOT / "requirements.txt").read_text()
    )
    assert f"Playwright {pin[1]} works with Chromium" in said
