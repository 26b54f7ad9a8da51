"""What readers ask of their system: dark, calm, or its own colours."""

import io
import re

import numpy as np
from matplotlib.pyplot import imread

from tools.chromium import load, load_pictures, unfold
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


def ground_of(page):
    """Return the colour of the page in [0, 1]."""
    said = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return np.array(re.findall(r"\d+", said)[:3], int) / 255


def test_a_figure_is_dark_in_the_dark_and_keeps_its_hues(visit):
    page = visit(chapters()[1], color_scheme="dark")
    load_pictures(page)
    page.evaluate("""() => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [30, 10];
        const draw = canvas.getContext("2d");
        ["white", "#1f77b4", "#ff7f0e"].forEach((colour, i) => {
            draw.fillStyle = colour; draw.fillRect(10 * i, 0, 10, 10); });
        const image = document.querySelector(".cell_output img");
        image.width = 300; image.height = 100;
        image.src = canvas.toDataURL(); }""")
    picture = page.locator(".cell_output img").first
    pixels = imread(io.BytesIO(picture.screenshot()), "png")  # in [0, 1]
    ground, blue, orange = (pixels[50, x, :3] for x in (50, 150, 250))
    assert np.allclose(ground, ground_of(page), atol=0.01)
    assert blue.argmax() == 2 and blue.max() > 0.3
    assert orange.argmax() == 0 and orange.argmin() == 2
    assert np.ptp(orange) > 0.3


def test_in_the_dark_zero_is_the_page_and_one_is_bright(visit):
    page = visit("book/attention", color_scheme="dark")
    unfold(page)
    figure = page.locator("#query-figure")
    cells = {
        cell.text_content(): cell
        for cell in figure.locator("td[data-part^=weight]").all()
    }
    pixels = {
        share: imread(io.BytesIO(cells[share].screenshot()), "png")[4, 4, :3]
        for share in ("0.02", "0.22", "0.64")
    }
    assert np.allclose(pixels["0.02"], ground_of(page), atol=0.06)
    assert pixels["0.02"].mean() + 0.05 < pixels["0.22"].mean()
    assert pixels["0.22"].mean() + 0.1 < pixels["0.64"].mean()


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
