"""The site by keyboard alone: where the focus goes, and that it shows."""

from itertools import pairwise

import pytest

from tools.markdown import sections
from tools.notebooks import tags, untitled
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


# Folds


@pytest.mark.parametrize("chapter", chapters())
def test_folded_cells_are_named_by_their_titles(look, notebook, chapter):
    def title(cell):
        is_folded = "hide-input" in tags(cell)
        first = cell.source.partition("\n")[0]
        name = untitled(first).removeprefix("# @title ")
        if cell.id not in exercises and name.startswith("Check: "):
            name = name.replace("Check", "✓ checked")
        return name if is_folded else ""

    def kind(cell):
        """Return what a title begins with, of a cell that is no twin."""
        is_twin = {"pytorch", "tensorflow"} & {*tags(cell)}
        name, colon, _ = title(cell).partition(":")
        return name if colon and not is_twin else None

    cells = notebook(chapter).cells
    exercises = {
        cell.id
        for headings, cell, _ in sections(cells)
        if "Exercises" in headings
    }
    titles = [
        title(cell)
        for cell, after in pairwise([*cells, cells[0]])
        # Without an output, it is in the fold of the next of its kind.
        if title(cell)
        and (cell.outputs or not kind(cell) or kind(cell) != kind(after))
    ]
    shown = look(chapter).locator("details.hide summary .collapsed")
    assert [text.strip() for text in shown.all_text_contents()] == titles


# What scrolls


@pytest.mark.parametrize("chapter", chapters())
def test_what_scrolls_is_a_stop_of_the_tab_key(look, chapter):
    counts = []
    for width in (1280, 360):
        page = look(chapter, unfolded=True, width=width)
        wrong = page.evaluate("""() => [...document.querySelectorAll(
            "pre, .output, .pst-scrollable-table-container")]
            .filter(box => box.checkVisibility())
            .filter(box => (box.tabIndex === 0) !==
                (box.scrollWidth > box.clientWidth ||
                 box.scrollHeight > box.clientHeight))
            .map(box => box.outerHTML.slice(0, 200))""")
        assert wrong == [], f"at {width} pixels"
        counts.append(page.locator("article [tabindex='0']").count())
    assert counts[0] < counts[1] > 10
