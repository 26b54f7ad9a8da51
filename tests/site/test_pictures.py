"""A first reading has a picture on its first screen, and never lacks one long.

Read as the page is built: folds closed, PyTorch's tab, a desk's screen.
"""

import pytest

from tools.chromium import load_pictures
from tools.settings import chapters

SCREEN = 900  # pixels
FAR = 3  # screens without a picture
# Where pictures stand, and titles, from the page's first to the exercises.
FIND = """() => {
    const end = document.querySelector("#exercises, #summary");
    const top = node => node.getBoundingClientRect().top + scrollY;
    const seen = selector => [...document.querySelectorAll(selector)].filter(
        node => node.checkVisibility() && top(node) < top(end));
    const article = document.querySelector("article");
    return {
        start: top(article.querySelector("h1")),
        end: top(end),
        pictures: seen(
            "article :is(.moving, .picture, .ribbon, .cell_output img)")
            .map(node => [top(node),
                top(node) + node.getBoundingClientRect().height])
            .filter(([from, to]) => to - from > 40),
        titles: seen("article :is(h2, h3)").map(
            node => [top(node), node.textContent]),
    };
}"""


def gaps(page):
    """Return where pictures lack: (from, to, titles between), in screens."""
    load_pictures(page)
    page.set_viewport_size({"width": 1440, "height": SCREEN})
    found = page.evaluate(FIND)
    start = found["start"]
    edges = [(start, start), *sorted(found["pictures"])]
    edges.append((found["end"], found["end"]))
    at, lacking = start, []
    for top, bottom in edges:
        titles = [t for y, t in found["titles"] if at <= y <= top]
        lacking.append(((at - start) / SCREEN, (top - start) / SCREEN, titles))
        at = max(at, bottom)
    return lacking


@pytest.mark.parametrize("name", chapters())
def test_no_three_screens_without_a_picture(visit, name):
    lacking = gaps(visit(name, width=1440))
    first = lacking[1][1] if len(lacking) > 2 else float("inf")
    assert first < 1, f"the first picture comes after {first:.1f} screens"
    for start, end, titles in lacking:
        assert end - start <= FAR, (
            f"{end - start:.1f} screens without a picture, from {start:.1f}: "
            f"{titles}"
        )


@pytest.mark.parametrize("name", ["book/attention", "book/llama"])
def test_the_line_says_where_the_reader_is(look, name):
    line = look(name, unfolded=True).locator("article .ribbon-wide")
    assert line.locator(".here").count() >= 1
    assert "you are here" in line.text_content()


def test_the_diagram_lights_what_is_in_view(visit):
    page = visit("book/evening", width=1440)
    for words in ("attn_q", "ffn_gate"):
        line = page.locator(f".cell_input .line:has-text('self.{words} =')")
        line.first.evaluate("node => node.scrollIntoView({block: 'center'})")
        page.locator(f".beside .lit[data-words~='{words}']").wait_for()
