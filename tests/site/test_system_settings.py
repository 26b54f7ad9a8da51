"""What readers ask of their system: dark, calm, or its own colours."""

from tools.chromium import load
from tools.settings import chapters, contents

HOME, CHAPTER = contents()[0], chapters()[0]


def test_dark_mode_is_kept(visit):
    page = visit(HOME)

    def background():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    theme, light = page.locator("html"), background()
    # The button goes round: as the system has it, light, dark.
    for _ in range(3):
        if theme.get_attribute("data-theme") == "dark":
            break
        page.locator(".theme-switch-button:visible").click()
    dark = background()
    assert dark != light
    load(page)
    assert theme.get_attribute("data-theme") == "dark"
    assert background() == dark


def test_nothing_moves_for_those_who_ask_for_calm(look):
    page = look(CHAPTER, unfolded=True, reduced_motion="reduce")
    moving = """all => all.map(e => [e.outerHTML.slice(0, 80),
        getComputedStyle(e)]).filter(([name, style]) =>
        /[1-9]/.test(style.transitionDuration + style.animationDuration) ||
        style.scrollBehavior === 'smooth').map(([name]) => name)"""
    assert page.locator("*").evaluate_all(moving) == []


def test_the_choice_shows_in_the_colours_of_the_system(look):
    page = look(CHAPTER, forced_colors="active")
    lines = page.locator(".sd-tab-set").first.locator(".sd-tab-label")
    assert lines.evaluate_all(
        "all => all.map(e => getComputedStyle(e).textDecorationLine)"
    ) == ["underline", "none"]
