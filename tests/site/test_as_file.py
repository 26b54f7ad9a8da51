"""The site without a server: its pages opened as files."""

import pytest

from tools.chromium import load_pictures
from tools.settings import contents


@pytest.mark.parametrize("name", [*contents(), "search", "genindex"])
def test_a_page_works_as_a_file(visit_file, name):
    page = visit_file(name, color_scheme="dark")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.locator(".theme-switch-button:visible").click()
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert page.evaluate("document.styleSheets.length") > 0
    load_pictures(page)
    label = ".sd-tab-label:text-is('TensorFlow'):visible"
    if page.locator(label).count():
        # No mouse: a live model that arrives late moves what is below it.
        page.locator(label).first.evaluate("label => label.click()")
        assert page.locator(f"{label} + *").first.is_visible()


def test_search_works_as_a_file(visit_file):
    page = visit_file(contents()[0])
    page.keyboard.press("Control+k")
    page.keyboard.type("embedding")
    page.keyboard.press("Enter")
    first = page.locator("#search-results li a").first
    first.wait_for()
    assert "embedding.html#" in first.get_attribute("href")
