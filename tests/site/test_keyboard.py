"""The site by keyboard alone: where the focus goes, and that it shows."""

import pytest

from tools.settings import chapters, contents

HOME, CHAPTER = contents()[0], chapters()[0]
# The radio buttons of tabs are invisible; their labels show the focus.
FOCUS = """() => {
    const part = document.activeElement;
    const seen = part.matches(".sd-tab-set > input")
        ? part.nextElementSibling : part;
    const style = getComputedStyle(seen);
    const box = seen.getBoundingClientRect();
    return [part.outerHTML.slice(0, 120), part === document.body,
        style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
        && box.width > 0 && box.height > 0];
}"""


def test_skip_link_leads_to_the_text(visit):
    page = visit(CHAPTER)
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator("main :focus").count() == 1


@pytest.mark.parametrize("name", [HOME, CHAPTER])
def test_focus_is_always_seen(visit, name):
    page = visit(name)
    stops = []
    while True:
        page.keyboard.press("Tab")
        stop, is_end, is_seen = page.evaluate(FOCUS)
        if is_end:
            break
        assert is_seen, f"the focus does not show on {stop}"
        stops.append(stop)
    assert len(stops) > 20


def test_code_is_copied_by_mouse_and_keyboard(visit, notebook):
    page, code = visit(CHAPTER), notebook(CHAPTER).code
    buttons = page.locator(".cell_input .copybtn")
    first = next(n for n, b in enumerate(buttons.all()) if b.is_visible())
    for press in (
        lambda: buttons.nth(first).click(),
        lambda: buttons.nth(first).press("Enter"),
    ):
        page.evaluate("navigator.clipboard.writeText('')")
        press()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == code[first].source
