"""Taking code along: the copy buttons, and the download of a chapter."""

import json

import pytest

from tools.notebooks import Notebook
from tools.settings import ROOT, chapters


def code(chapter):
    return Notebook.read(ROOT / f"{chapter}.ipynb").code


def copied(page):
    return page.evaluate("navigator.clipboard.readText()").strip()


@pytest.mark.parametrize("chapter", chapters())
def test_copy_buttons_stand_on_input_only(visit, chapter):
    page = visit(chapter)
    buttons = page.locator(".cell_input .copybtn")
    assert buttons.count() == len(code(chapter))
    assert page.locator(".cell_output .copybtn").count() == 0
    buttons.first.click()
    assert copied(page) == code(chapter)[0].source


def test_code_is_copied_by_keyboard(visit):
    chapter = chapters()[0]
    page = visit(chapter, reduced_motion="reduce")
    button = page.locator(".cell_input .copybtn").first
    button.focus()
    assert button.evaluate("b => getComputedStyle(b).opacity") == "1"
    page.evaluate("navigator.clipboard.writeText('')")
    page.keyboard.press("Enter")
    assert copied(page) == code(chapter)[0].source


@pytest.mark.parametrize("chapter", chapters())
def test_download_button_gives_the_notebook(look, chapter):
    page = look(chapter)
    button = page.locator(".article-header-buttons a[href*='_sources']")
    target = button.evaluate("a => a.href")
    stored = json.loads((ROOT / f"{chapter}.ipynb").read_text("utf-8"))
    assert page.request.get(target).json() == stored
