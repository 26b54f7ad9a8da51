"""PyTorch or TensorFlow: the tabs, and the choice that the site keeps."""

import io
import json
import re
from itertools import groupby

import pytest

from tools.chromium import load
from tools.notebooks import Notebook, tags
from tools.settings import BOOK, ROOT, chapters

CHAPTER = chapters()[0]
FRAMEWORKS = ["PyTorch", "TensorFlow"]


def assert_all_show(page, framework):
    shown = page.locator(".sd-tab-label").evaluate_all("""all => all.map(e =>
        [e.textContent.trim(), !!e.nextElementSibling.offsetParent])""")
    assert shown == [[name, name == framework] for name, _ in shown] != []


@pytest.mark.parametrize("chapter", chapters())
def test_each_pair_of_cells_is_a_set_of_tabs(look, chapter):
    page = look(chapter)
    cells = Notebook.read(ROOT / f"{chapter}.ipynb").cells
    runs = groupby(cells, lambda cell: "pytorch" in tags(cell))
    pairs = sum(is_pytorch for is_pytorch, _ in runs)
    assert page.locator(".sd-tab-set").count() == pairs > 0
    labels = page.locator(".sd-tab-label").all_text_contents()
    assert [label.strip() for label in labels] == FRAMEWORKS * pairs
    assert_all_show(page, "PyTorch")


def test_choice_holds_on_every_page_and_is_kept(visit, site):
    page = visit(CHAPTER)
    page.locator(".sd-tab-label:text-is('TensorFlow'):visible").last.click()
    assert_all_show(page, "TensorFlow")
    load(page)
    assert_all_show(page, "TensorFlow")
    for chapter in chapters():
        load(page, f"{site}{chapter}.html")
        assert_all_show(page, "TensorFlow")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_address_chooses_the_framework(visit, framework):
    page = visit(CHAPTER, f"?framework={framework.lower()}")
    assert_all_show(page, framework)


def test_keyboard_chooses_the_framework(visit):
    page = visit(CHAPTER)
    first = page.locator(".sd-tab-set > input").first
    while not first.evaluate("e => e === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert_all_show(page, "TensorFlow")
    page.keyboard.press("ArrowLeft")
    assert_all_show(page, "PyTorch")


# What the build says of cells that are no pair

UNPAIRED = {
    "no-tensorflow": ["pytorch", "plain", "tensorflow"],
    "no-pytorch": ["plain", "tensorflow"],
    "wrong-order": ["tensorflow", "pytorch"],
    "one-too-many": ["pytorch", "pytorch", "tensorflow"],
}
PAIRED = {
    "pair": ["pytorch", "tensorflow"],
    "two-pairs": ["pytorch", "tensorflow", "pytorch", "tensorflow"],
    "runs": ["pytorch", "pytorch", "tensorflow", "tensorflow", "plain"],
}


def test_a_cell_without_its_partner_stops_the_build(tmp_path, monkeypatch):
    from nbformat import v4
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    for name, sequence in (UNPAIRED | PAIRED).items():
        cells = [
            v4.new_code_cell(f"x = {place}", metadata={"tags": [tag]})
            for place, tag in enumerate(sequence, 1)
        ]
        notebook = v4.new_notebook(cells=cells, metadata=python)
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(notebook))
    settings = {
        "extensions": ["myst_nb", "sphinx_design", "framework_tabs"],
        "nb_execution_mode": "off",
        "root_doc": "pair",
    }
    monkeypatch.syspath_prepend(BOOK / "_ext")
    said, out = io.StringIO(), tmp_path / "out"
    with docutils_namespace():
        places = tmp_path, None, out, out
        Sphinx(*places, "dummy", settings, None, said).build()
    warning = r"/([\w-]+)\.ipynb: WARNING: cell \d \((x = \d)\): a cell tagged"
    assert re.findall(warning, said.getvalue()) == [
        ("no-pytorch", "x = 2"),
        ("no-tensorflow", "x = 1"),
        ("no-tensorflow", "x = 3"),
        ("one-too-many", "x = 1"),
        ("one-too-many", "x = 3"),
        ("wrong-order", "x = 1"),
        ("wrong-order", "x = 2"),
    ]
