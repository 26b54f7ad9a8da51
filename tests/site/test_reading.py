"""A first reading: what is folded, what opens it, where the reader is."""

import re

import pytest

from tools.chromium import load
from tools.settings import chapters

CHAPTER, OTHER = chapters()[:2]
ROADS = "details.side-road"
OPEN = f"{ROADS}[open]"


def everything(page):
    return page.get_by_role("button", name="Everything")


def opened(page):
    return page.locator(OPEN).count()


def test_everything_is_opened_and_remembered_over_the_book(visit, site):
    page = visit(CHAPTER)
    assert opened(page) == 0
    everything(page).click()
    roads = page.locator(ROADS).count()
    assert opened(page) == roads > 0
    load(page, f"{site}{OTHER}.html")
    assert opened(page) == page.locator(ROADS).count() > 0
    assert everything(page).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="First reading").click()
    assert opened(page) == 0


def test_a_link_opens_what_it_leads_to(visit):
    page = visit(CHAPTER)
    within = page.locator(f"{ROADS} :is(h3, .cell)").first
    own = page.locator(f"section:has(> {ROADS})").first.get_attribute("id")
    page.evaluate("id => { location.hash = id }", own)
    page.locator(OPEN).first.wait_for()
    assert opened(page) == 1
    page = visit(CHAPTER, f"#{own}")
    assert opened(page) == 1
    within.wait_for()


def test_without_scripts_a_side_road_opens_by_hand(visit_without_scripts):
    page = visit_without_scripts(CHAPTER)
    road = page.locator(ROADS).first
    road.locator("summary").first.click()
    assert road.get_attribute("open") is not None
    assert page.locator(".reading").is_hidden()


def test_side_roads_that_follow_each_other_are_a_group(look):
    page = look("book/attention")
    groups = page.locator(".side-roads")
    for group in groups.all():
        count = group.locator(f":scope > section > {ROADS}").count()
        assert count > 1
        assert group.inner_text().startswith(f"Side roads ({count})\n")
    alone = f":not(.side-roads) > section:has(> {ROADS}) + section > {ROADS}"
    assert groups.count() and page.locator(alone).count() == 0


def test_contents_mark_where_the_reader_is(visit):
    page = visit(CHAPTER)
    ids = page.locator("article section[id]:has(> h2)").evaluate_all(
        "all => all.map(section => section.id)"
    )
    for name in ids + ids[::-1]:
        # Into the middle of a section, whose heading is out of sight.
        page.evaluate(
            """id => { const section = document.getElementById(id);
            const box = section.getBoundingClientRect();
            scrollBy({top: box.top + 20 - innerHeight / 4,
                behavior: "instant"}); }""",
            name,
        )
        page.wait_for_function(
            """id => { const marked = document.querySelectorAll(
                "#pst-page-toc-nav a[aria-current]");
            return marked.length === 1 && marked[0].hash === "#" + id; }""",
            arg=name,
            timeout=2000,
        )


@pytest.fixture
def visit_with_empty_scripts(visit, tab):
    """Return `visit`, for which every script is an empty file.

    Those of moving pictures stand in the page, and keep their tools.
    """
    tab.page.route(
        re.compile(r"(?<!/figure_tools)\.js"),
        lambda route: route.fulfill(body=""),
    )
    yield visit
    tab.page.unroute_all()


# What the script of a picture says stands in a place that is kept free.
TOPS = """[...document.querySelectorAll("article :is(h1, h2, h3, p)")]
    .map(part => [part.closest(".cell_output") ? "" : part.textContent,
        part.getBoundingClientRect().top])"""


@pytest.fixture
def tops(visit):
    """Return what stands where in the chapter, once its scripts have run."""
    page = visit(CHAPTER, width=390)
    found = page.evaluate(TOPS)
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(height)
    page.evaluate(f"scrollTo(0, {height})")
    page.wait_for_timeout(300)
    assert page.evaluate(height) == before
    return found


def test_nothing_jumps_under_the_reader(tops, visit_with_empty_scripts):
    page = visit_with_empty_scripts(CHAPTER, width=390)
    texts, places = zip(*page.evaluate(TOPS), strict=True)
    assert list(texts) == [text for text, _ in tops]
    # Lines with a formula are up to half a pixel higher until its font is in.
    assert places == pytest.approx([top for _, top in tops], abs=1)
