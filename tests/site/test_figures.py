"""The moving pictures show their tables of states, by mouse and keyboard.

A picture holds what Python has computed for each state of its controls. Each
is asked outside the site, as in Colab, with the network cut; on the site; by
keyboard; and without scripts. A bet is tried with right and wrong guesses.
"""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.site.moving import Figure
from tools.chromium import load_pictures, unfold, wait_for_layout
from tools.notebooks import Notebook, paths

DECODER = json.JSONDecoder()
# What a part shows, by the attributes that its state names.
SHOWN = """(part, names) => names
    ? Object.fromEntries(names.map(name => [name, part.getAttribute(name)]))
    : part.hasAttribute("hidden") ? null
    : part.tagName == "path" ? part.getAttribute("d") : part.textContent"""
# The size of the smallest letters, in pixels; those of a drawing are scaled.
SMALLEST = """root => Math.min(...[...root.querySelectorAll("*")]
    .filter(part => part.checkVisibility() && [...part.childNodes].some(
        node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
    .filter(part => !part.matches("style, script"))
    .map(part => parseFloat(getComputedStyle(part).fontSize)
        * (part.closest("svg")?.getScreenCTM().a ?? 1)))"""
KEYS = {"text": "x", "range": "ArrowRight", "radio": "ArrowDown"}
KEYS["select-one"] = "ArrowDown"
FOCUSED = ":is(input, select, button):focus"
HEIGHTS = "all => all.map(one => one.getBoundingClientRect().height)"


def written(value):
    """Return an attribute's value as a page writes it."""
    return value if isinstance(value, str) else f"{value:g}"


class Picture:
    """A moving picture as a notebook stores it."""

    def __init__(self, stem, name, html):
        self.stem, self.name, self.html = stem, name, html
        _, start, rest = html.partition(f'figure("{name}-figure", ')
        self.controls = DECODER.raw_decode(rest)[0]
        rest = html.partition("const data = ")[2]
        self.data = DECODER.raw_decode(rest)[0]

    @property
    def kind(self):
        """Return "bet", "states", or "" for a script of its own."""
        return next((k for k in ("fails", "parts") if k in self.data), "")

    def values(self, at):
        """Return the controls' values in a state."""
        found = {}
        for axis in reversed(self.data["controls"]):
            at, index = divmod(at, axis["size"])
            if axis["kind"] == "range":
                index = axis["min"] + axis["step"] * index
            if axis["kind"] == "boxes":
                index = [i for i in range(9) if index >> i & 1]
            if axis["kind"] == "box":
                index = bool(index)
            found[axis["name"]] = index
        return dict(reversed(found.items()))

    def start(self):
        """Return the number of the state at the start."""
        at = 0
        for axis, control in zip(
            self.data["controls"], self.controls, strict=True
        ):
            if axis["kind"] == "range":
                index = (control["value"] - axis["min"]) / axis["step"]
            elif axis["kind"] == "box":
                index = control.get("checked", False)
            elif axis["kind"] == "boxes":
                index = sum(2**i for i in control["chosen"])
            else:
                [index] = control["chosen"]
            at = at * axis["size"] + round(index)
        return at

    def states(self):
        """Return the numbers of some states: the start, and others afar."""
        distinct, which = self.data["said"]
        count = len(which)
        return [self.start(), 0, count - 1, count // 3, count // 2, 1]


PICTURES = {}
for path in paths():
    for cell in Notebook.read(path).code:
        for output in cell.outputs:
            html = output.get("data", {}).get("text/html", "")
            if found := re.search(
                r'id="([\w-]+)-figure" class="moving"', html
            ):
                name = found[1]
                PICTURES[name] = Picture(path.stem, name, html)

IN_CHAPTERS = {}  # a chapter's name -> its pictures
for picture in PICTURES.values():
    IN_CHAPTERS.setdefault(picture.stem, []).append(picture)
STATES = [n for n, picture in PICTURES.items() if picture.kind == "parts"]
BETS = [n for n, picture in PICTURES.items() if picture.kind == "fails"]


class Shown(Figure):
    """A moving picture on a page, with its table of states."""

    def __init__(self, page, picture):
        super().__init__(page, picture.name)
        self.picture = picture

    def put_all(self, values):
        """Set the controls with the mouse, ranges by their values."""
        for name, value in values.items():
            self.put(name, value)

    def assert_shows(self, at):
        """Fail unless the picture shows a state."""
        distinct, which = self.picture.data["said"]
        expect(self.said).to_have_text(distinct[which[at]])
        for name, (options, places) in self.picture.data["parts"].items():
            wanted = options[places[at]]
            names = list(wanted) if isinstance(wanted, dict) else None
            if names:
                wanted = {key: written(x) for key, x in wanted.items()}
            elif isinstance(wanted, list):
                wanted = wanted[0]
            part = self.root.locator(f"[data-part='{name}']")
            assert part.evaluate(SHOWN, names) == wanted, name


@pytest.fixture
def outside(empty_page):
    """Return a function: name -> the picture alone on a page, offline."""

    def show(name):
        empty_page.set_content(PICTURES[name].html)
        return Shown(empty_page, PICTURES[name])

    return show


@pytest.mark.parametrize("name", STATES)
def test_each_state_is_that_of_the_table(outside, name):
    shown = outside(name)
    shown.page.context.set_offline(True)
    try:
        shown.assert_shows(PICTURES[name].start())
        heights = shown.root.evaluate_all(HEIGHTS)
        for at in PICTURES[name].states():
            shown.put_all(PICTURES[name].values(at))
            shown.assert_shows(at)
            assert shown.root.evaluate_all(HEIGHTS) == heights
    finally:
        shown.page.context.set_offline(False)


@pytest.mark.parametrize("name", PICTURES)
def test_each_control_is_reached_and_moved_by_keyboard(outside, name):
    shown = outside(name)
    press, moved = shown.page.keyboard.press, set()
    state = "e => [e.name, e.type, e.value, e.checked]"
    shown.root.locator("input, select").first.focus()
    while (at := shown.page.locator(FOCUSED)).count():
        control, kind, *before = at.evaluate(state)
        for key in (KEYS.get(kind, "Space"), "ArrowLeft"):  # at its end
            press(key)
            now = shown.page.locator(FOCUSED).evaluate(state)[2:]
            if now != before:
                moved.add(control)
                break
        press("Tab")
    assert moved == {control["name"] for control in PICTURES[name].controls}


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_time_is_played_to_its_end_and_pauses(outside, empty_page, motion):
    empty_page.emulate_media(reduced_motion=motion)
    shown = outside("heads")
    button, step = (
        shown.root.locator(name) for name in ("button", "[name=step]")
    )
    assert button.count() == (motion == "no-preference")
    if button.count():
        button.click()
        expect(button).to_have_accessible_name("pause")
        expect(step).to_have_value("4")
        expect(button).to_have_accessible_name("play")
        button.click()
        button.click()
        expect(step).to_have_value("0")


@pytest.mark.parametrize("stem", IN_CHAPTERS)
def test_work_on_the_site(visit, stem):
    page = visit(f"book/{stem}")
    unfold(page, True)
    load_pictures(page)
    all_shown = [Shown(page, picture) for picture in IN_CHAPTERS[stem]]
    for shown in all_shown:
        shown.root.scroll_into_view_if_needed()
        shown.root.locator("form").wait_for()  # what loads late is there
        heard = shown.root.locator(".heard")
        expect(heard).to_have_text(shown.said.inner_text())
        if shown.picture.kind == "parts":
            shown.assert_shows(shown.picture.start())
            shown.put_all(shown.picture.values(0))
            shown.assert_shows(0)
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for shown in all_shown:
            shown.root.scroll_into_view_if_needed()
            wait_for_layout(page)
            # Both are rounded, one up and one down.
            fits = "root => root.scrollWidth <= root.clientWidth + 1"
            assert shown.root.evaluate(fits), shown.name
            parts = shown.root.locator("label, select, button, [type=range]")
            assert min(parts.evaluate_all(HEIGHTS)) >= 28, shown.name
    for shown in all_shown:
        assert shown.root.evaluate(SMALLEST) >= 11, shown.name


@pytest.mark.parametrize("stem", IN_CHAPTERS)
def test_stand_without_scripts(visit_without_scripts, stem):
    page = visit_without_scripts(f"book/{stem}")
    unfold(page)  # some stand in a side road
    for picture in IN_CHAPTERS[stem]:
        shown, name = Shown(page, picture), picture.name
        root = shown.root
        assert root.is_visible() and not root.locator("form").count(), name
        parts = root.locator("img, table").all()
        assert parts and all(part.is_visible() for part in parts), name
        if picture.kind == "parts":
            distinct, which = picture.data["said"]
            said = distinct[which[picture.start()]]
            expect(shown.said).to_have_text(said)


@pytest.mark.parametrize("name", BETS)
def test_a_mistake_is_guessed_and_then_revealed(outside, name):
    shown, fails = outside(name), PICTURES[name].data["fails"]
    checks = shown.root.locator("fieldset").all()
    expect(shown.said).to_contain_text(f"0 of {len(fails)} guessed")
    for check in checks:
        check.get_by_label("fails").check()
    said = f"{sum(fails)} of {len(fails)} checks"
    expect(shown.said).to_contain_text(said)
    for check, bad in zip(checks, fails, strict=True):
        check.get_by_label("fails" if bad else "passes").check()
    said = f"{len(fails)} of {len(fails)} checks"
    expect(shown.said).to_contain_text(said)


def test_the_query_goes_where_it_is_dragged_or_put(outside):
    shown = outside("query")
    box = shown.root.locator("svg").bounding_box()
    scale, mouse = box["width"] / 360, shown.page.mouse

    def place(right, up):
        return box["x"] + scale * (110 + right), box["y"] + scale * (118 - up)

    def angle_and_length():
        return [
            float(shown.root.locator(f"[name={name}]").input_value())
            for name in ("angle", "norm")
        ]

    mouse.move(*place(54, 0))
    mouse.down()
    mouse.move(*place(0, -72), steps=3)
    mouse.up()
    assert angle_and_length() == [-90, 2]
    mouse.move(*place(0, 36))  # it was let go
    assert angle_and_length() == [-90, 2]
    mouse.click(*place(-36, 0))
    assert angle_and_length()[1] == 1


def test_speaks_once_when_the_hand_rests(outside):
    shown = outside("query")
    spoken = shown.root.locator("[aria-live=polite]").evaluate(
        """async (heard) => {
        const box = document.querySelector("#query-figure [name=angle]");
        let spoken = 0;
        new MutationObserver(() => spoken++).observe(heard, {childList: true});
        for (let angle = 30; angle < 150; angle += 15) {
          box.value = angle;
          box.dispatchEvent(new Event("input", {bubbles: true}));
          await new Promise((done) => setTimeout(done, 20)); }
        await new Promise((done) => setTimeout(done, 600));
        return spoken; }"""
    )
    assert spoken == 1
