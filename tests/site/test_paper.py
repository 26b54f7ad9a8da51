"""A page on paper: light, and with all that is folded or behind a tab."""

import pytest

from tools.settings import chapters


@pytest.mark.parametrize("chapter", chapters())
def test_paper_is_light_and_shows_all(look, chapter):
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
    inside = page.locator("article details > :last-child")
    hidden = "all => all.filter(e => !e.checkVisibility()).length"
    assert inside.count() > 0 and inside.evaluate_all(hidden) == 0
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.locator("article :is(pre, img)").evaluate_all(cut) == 0
    assert page.locator("article h1").is_visible()
    # Label, content, label, content, ...: each visible and below the last.
    tops = page.locator(".sd-tab-label, .sd-tab-content").evaluate_all(
        "all => all.map(e => e.offsetParent && e.getBoundingClientRect().top)"
    )
    assert len(tops) > 0 and None not in tops
    assert tops == sorted(tops)
