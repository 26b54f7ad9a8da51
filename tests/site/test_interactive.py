"""The moving pictures show the numbers of their chapters.

Each is put into several states outside the site, as in Colab, with the network
cut; what it then shows is computed with the functions of the chapter. Each is
also tested by keyboard, on the site, and without scripts.
"""

import math

import pytest
from playwright.sync_api import expect

from tests.site import shown_models, shown_names, shown_parts  # noqa: F401
from tests.site.moving import PICTURES, Figure, drive
from tests.site.shown_parts import query
from tools.chromium import load_pictures, unfold, wait_for_layout
from tools.notebooks import Notebook
from tools.settings import BOOK, chapters

# In the process in which the chapters run.
pytestmark = pytest.mark.xdist_group("frameworks")

EACH = [(name, picture.chapter) for name, picture in PICTURES.items()]


@pytest.fixture
def outside(empty_page):
    """Return a function: name -> the Figure alone on a page, as in Colab."""

    def show(name):
        notebook = Notebook.read(BOOK / f"{PICTURES[name].chapter}.ipynb")
        outputs = [out for cell in notebook.code for out in cell.outputs]
        texts = [out.get("data", {}).get("text/html", "") for out in outputs]
        (html,) = [text for text in texts if f'id="{name}-figure"' in text]
        empty_page.set_content(html)
        return Figure(empty_page, name)

    return show


@pytest.mark.parametrize(("name", "stem"), EACH)
def test_shows_the_numbers_of_the_chapter(outside, chapter, name, stem):
    drive(outside(name), chapter(stem), PICTURES[name].states)


# The size of the smallest letters, in pixels; those of a drawing are scaled.
SMALLEST = """root => Math.min(...[...root.querySelectorAll("*")]
    .filter(part => part.checkVisibility() && [...part.childNodes].some(
        node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
    .filter(part => !part.matches("style, script"))
    .map(part => parseFloat(getComputedStyle(part).fontSize)
        * (part.closest("svg")?.getScreenCTM().a ?? 1)))"""


KEYS = {"text": "x", "range": "ArrowRight", "radio": "ArrowDown"}


@pytest.mark.parametrize("name", PICTURES)
def test_each_control_is_reached_and_moved_by_keyboard(outside, name):
    figure = outside(name)
    press, controls = figure.page.keyboard.press, {}
    state = "e => [e.name, e.type, e.value, e.checked]"
    figure.root.locator("input").first.focus()
    while (at := figure.page.locator("input:focus")).count():
        control, kind, *before = at.evaluate(state)
        press(KEYS.get(kind, "Space"))
        now = figure.page.locator("input:focus").evaluate(state)[2:]
        if now == before:  # a range that stands at its end
            press("ArrowLeft")
            now = figure.page.locator("input:focus").evaluate(state)[2:]
        controls[control] = now != before
        press("Tab")
    assert controls == dict.fromkeys(PICTURES[name].states[0], True)


@pytest.mark.parametrize(("name", "stem"), EACH)
def test_works_on_the_site(visit, chapter, name, stem):
    # A long page answers slowly: some states are enough beside the above.
    page, book = visit(f"book/{stem}"), chapter(stem)
    unfold(page, True)
    load_pictures(page)
    figure, picture = Figure(page, name), PICTURES[name]
    start, second, *_ = picture.states
    figure.assert_shows(*picture(book, **start))
    figure.root.scroll_into_view_if_needed()
    figure.root.locator("form").wait_for()  # what loads late is there
    heard = figure.root.locator(".heard")
    expect(heard).to_have_text(figure.said.inner_text())
    drive(figure, book, [second])
    text = page.locator("article > section > p").last
    size = "e => getComputedStyle(e).fontSize"
    assert figure.said.evaluate(size) == text.evaluate(size)
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 800})
        figure.root.scroll_into_view_if_needed()
        wait_for_layout(page)
        fits = "root => root.scrollWidth <= root.clientWidth"
        assert figure.root.evaluate(fits)
    assert figure.root.evaluate(SMALLEST) >= 11


@pytest.mark.parametrize(("name", "stem"), EACH)
def test_stands_without_scripts(visit_without_scripts, chapter, name, stem):
    page = visit_without_scripts(f"book/{stem}")
    unfold(page)  # it may stand in a side road
    figure = Figure(page, name)
    assert figure.root.is_visible() and not figure.root.locator("form").count()
    pictures = figure.root.locator("img, table").all()
    assert pictures and all(picture.is_visible() for picture in pictures)
    picture = PICTURES[name]
    figure.assert_shows(*picture(chapter(stem), **picture.states[0]))


@pytest.mark.parametrize("name", chapters())
def test_a_mistake_is_guessed_and_then_revealed(visit, name):
    page = visit(name)
    load_pictures(page)
    root = page.locator("#wrong-on-purpose .moving:has([name^=guess-])")
    checks = root.locator("fieldset")
    said = root.locator("[data-part=said]")
    expect(said).to_contain_text(f"0 of {checks.count()} guessed")
    for check in checks.all():
        check.get_by_label("fails").check()
    fails = ["fails" in lamp for lamp in root.locator("b").all_inner_texts()]
    assert any(fails) and not all(fails)
    expect(said).to_contain_text(f"{sum(fails)} of {len(fails)} checks")
    for check, bad in zip(checks.all(), fails, strict=True):
        check.get_by_label("fails" if bad else "passes").check()
    expect(said).to_contain_text(f"{len(fails)} of {len(fails)} checks")
    page.set_viewport_size({"width": 320, "height": 800})
    wait_for_layout(page)
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")


def test_the_query_goes_where_it_is_dragged_or_put(outside, chapter):
    figure, book = outside("query"), chapter("attention")
    box = figure.root.locator("svg").bounding_box()

    def place(angle, norm):
        """Return where in the window the tip of such a query is."""
        turn, scale = math.radians(angle), box["width"] / 360
        x, y = (
            110 + 36 * norm * math.cos(turn),
            118 - 36 * norm * math.sin(turn),
        )
        return box["x"] + scale * x, box["y"] + scale * y

    mouse = figure.page.mouse
    mouse.move(*place(0, 1.5))
    mouse.down()
    mouse.move(*place(-60, 2.2), steps=3)
    mouse.up()
    figure.assert_shows(*query(book, -60, 2.2, [0]))
    mouse.move(*place(90, 1))  # it was let go
    figure.assert_shows(*query(book, -60, 2.2, [0]))
    mouse.click(*place(120, 1))
    figure.assert_shows(*query(book, 120, 1, [0]))


def test_speaks_once_when_the_hand_rests(outside):
    figure = outside("clocks")
    spoken = figure.root.locator("[aria-live=polite]").evaluate(
        """async (heard) => {
        const box = document.querySelector("#clocks-figure [name=offset]");
        let spoken = 0;
        new MutationObserver(() => spoken++).observe(heard, {childList: true});
        for (let offset = 10; offset < 20; offset++) {
          box.value = offset;
          box.dispatchEvent(new Event("input", {bubbles: true}));
          await new Promise((done) => setTimeout(done, 20)); }
        await new Promise((done) => setTimeout(done, 600));
        return spoken; }"""
    )
    assert spoken == 1
