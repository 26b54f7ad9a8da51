"""The pictures and icons: there, described, and drawn where they should."""

import re

import pytest

from tools.chromium import load_pictures
from tools.settings import HTML, chapters, contents


@pytest.mark.parametrize("name", [*contents(), "search"])
def test_pictures_are_described_and_keep_their_room(look, name):
    page = look(name)
    load_pictures(page)  # which fails if one is broken
    alts = page.locator("article img").evaluate_all(
        "all => all.map(image => image.getAttribute('alt') ?? '')"
    )
    assert [alt for alt in alts if len(alt) < 20 or "<!--" in alt] == []
    wrong = page.locator("img[src*=_images]").evaluate_all("""all =>
        all.filter(image =>
            image.getAttribute("width") != image.naturalWidth ||
            image.getAttribute("height") != image.naturalHeight
        ).map(image => image.outerHTML)""")
    assert wrong == []
    text = (HTML / f"{name}.html").read_text("utf-8")
    pictures = re.findall(r"<img[^>]*_images[^>]*>", text)
    assert all('loading="lazy"' in picture for picture in pictures)


@pytest.mark.parametrize("name", [contents()[0], chapters()[0], "search"])
def test_each_icon_is_drawn(look, name):
    icons = look(name).locator("[class*='fa-']")
    assert icons.count() > 5
    bare = icons.evaluate_all("""all => all
        .filter(icon => !getComputedStyle(icon).maskImage.includes("data:"))
        .map(icon => icon.outerHTML)""")
    assert bare == [], "draw these in book/_static/icons.css"
