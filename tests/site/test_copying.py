"""Taking code along: the copy buttons, and the download of a chapter."""

import json

import pytest

from tools.settings import ROOT, chapters


def copied(page):
    return page.evaluate("navigator.clipboard.readText()").strip()


@pytest.mark.parametrize("chapter", chapters())
def test_copy_buttons_stand_on_input_only(visit, notebook, chapter):
    page, code = visit(chapter), notebook(chapter).code
    buttons = page.locator(".cell_input .copybtn")
    assert buttons.count() == len(code)
    assert page.locator(".cell_output .copybtn").count() == 0
    first = next(n for n, b in enumerate(buttons.all()) if b.is_visible())
    buttons.nth(first).click()
    assert copied(page) == code[first].source
    page.evaluate("navigator.clipboard.writeText('')")
    buttons.nth(first).focus()
    page.keyboard.press("Enter")
    assert copied(page) == code[first].source


@pytest.mark.parametrize("chapter", chapters())
def test_download_button_gives_the_notebook(look, chapter):
    page = look(chapter)
    button = page.locator(".article-header-buttons a[href*='_sources']")
    target = button.evaluate("a => a.href")
    stored = json.loads((ROOT / f"{chapter}.ipynb").read_text("utf-8"))
    assert page.request.get(target).json() == stored
