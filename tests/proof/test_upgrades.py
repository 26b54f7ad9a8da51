"""What a later version of a package may break, something says so at once.

Each test puts the change in the place of the version that will bring it.
"""

import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import chromium
from tools.commands.outputs import execute
from tools.notebooks import Notebook
from tools.settings import ROOT

NATIVE = "import os\nos.write(1, b'native')\nos.write(2, b'native')\nprint(1)"


def test_native_lines_are_not_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # which has the same effect
    cell = new_code_cell(NATIVE)
    notebook = Notebook(tmp_path / "x.ipynb", new_notebook(cells=[cell]))
    (output,) = execute(notebook).code[0].outputs
    assert output.text == "1\n"


def test_a_browser_that_cannot_be_driven_is_named_with_the_remedy(tmp_path):
    from playwright.sync_api import sync_playwright

    path = tmp_path / "chromium"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    with sync_playwright() as playwright:
        with pytest.raises(chromium.UnfitError) as unfit:
            chromium.launch(playwright, path)
    said = str(unfit.value)
    assert "Install that Chromium, or raise Playwright" in said
    # The versions that go together are those of this book.
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    pin = re.search(r"playwright==(\S+)", pins)
    assert f"Playwright {pin[1]} works with Chromium" in said
