"""The moving pictures show the numbers of their chapters.

Each is put into several states outside the site, as in Colab, with the network
cut; what it then shows is computed with the functions of the chapter. Each is
also tested by keyboard, on the site, and without scripts.
"""

import pytest
from playwright.sync_api import expect

from tests.site import shown_models, shown_names, shown_parts  # noqa: F401
from tests.site.moving import PICTURES, SENTENCE, Figure, drive
from tests.site.shown_parts import attention
from tools.chromium import load_pictures, unfold, wait_for_layout
from tools.notebooks import Notebook
from tools.settings import BOOK

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
    expect(figure.said).to_have_attribute("aria-live", "polite")
    figure.assert_shows(*picture(book, **start))
    figure.root.scroll_into_view_if_needed()
    figure.root.locator("form").wait_for()  # what loads late is there
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


BAD = {
    " , ": "No tokens yet: type one to six",
    "life is constructor": "“constructor” has no vector here",
    "life is short is short is short": "7 tokens: at most six fit",
}


def test_bad_sentence_is_explained(outside, chapter):
    figure = outside("attention")
    box = figure.root.locator("input[name=sentence]")
    shown = attention(chapter("attention"), SENTENCE, 2)
    for sentence, says in BAD.items():
        figure.put("sentence", sentence)
        expect(figure.said).to_contain_text(says)
        expect(figure.said).to_contain_text("still shows the last sentence")
        expect(box).to_have_attribute("aria-invalid", "true")
        figure.put("sentence", SENTENCE)
        figure.assert_shows(*shown)
        expect(box).to_have_attribute("aria-invalid", "false")


def test_the_chosen_token_stays_chosen(outside, chapter):
    figure, book = outside("attention"), chapter("attention")
    for sentence, query in [
        ("sweet dessert is Short", 3),
        ("eat sweet dessert", 2),  # where it is gone, the last one
        ("short is life", 0),
    ]:
        figure.put("sentence", sentence)
        figure.assert_shows(*attention(book, sentence, query))


def test_speaks_once_when_the_hand_rests(outside):
    figure = outside("clocks")
    spoken = figure.said.evaluate(
        """async (said) => {
        const box = document.querySelector("#clocks-figure [name=offset]");
        let spoken = 0;
        new MutationObserver(() => spoken++).observe(said, {childList: true});
        for (let offset = 10; offset < 20; offset++) {
          box.value = offset;
          box.dispatchEvent(new Event("input", {bubbles: true}));
          await new Promise((done) => setTimeout(done, 20)); }
        await new Promise((done) => setTimeout(done, 600));
        return spoken; }"""
    )
    assert spoken == 1
