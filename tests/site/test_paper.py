"""A page on paper: light, and with what the reader has chosen to see."""

import pytest

from tools.settings import chapters


@pytest.mark.parametrize("chapter", chapters())
def test_paper_is_light_and_shows_what_is_chosen(look, chapter):
    # 660 pixels are what 18 mm on each side of A4 paper leave.
    page = look(chapter, width=660, media="print", color_scheme="dark")
    colours = page.evaluate("""() => {
        const style = getComputedStyle(document.body);
        return [style.backgroundColor, style.color];
    }""")
    assert colours == ["rgb(255, 255, 255)", "rgb(29, 36, 51)"]
    around = page.locator(
        ".bd-sidebar, .bd-header-article, .bd-footer, .prev-next-footer,"
        "article button"
    )
    shown = "all => all.filter(e => e.checkVisibility()).map(e => e.outerHTML)"
    assert around.count() > 0 and around.evaluate_all(shown) == []
    inside = page.locator("article details > :last-child:not(summary)")
    seen = "all => all.filter(e => e.checkVisibility()).length"
    assert inside.count() > 0 and inside.evaluate_all(seen) == 0
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.locator("article :is(pre, img)").evaluate_all(cut) == 0
    assert page.locator("article h1").is_visible()
    sets = page.locator(".sd-tab-set").evaluate_all(
        """all => all.map(set => [".sd-tab-label", ".sd-tab-content"].map(
            part => [...set.querySelectorAll(part)].filter(
                e => getComputedStyle(e).display !== "none").length))"""
    )
    assert sets and all(shown == [1, 1] for shown in sets)
