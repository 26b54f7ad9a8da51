"""A first reading: what is folded, what opens it, where the reader is."""

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


@pytest.mark.parametrize("chapter", chapters())
def test_a_side_road_shows_its_heading_and_one_sentence(look, chapter):
    page = look(chapter)
    folded = page.locator(ROADS).evaluate_all("""all => all.map(road => [
        ...[...road.parentElement.children].map(part => part.localName)
            .filter(name => name !== "span"), road.open])""")
    assert folded
    for heading, *parts, is_open in folded:
        assert heading in ("h2", "h3") and parts == ["p", "details"]
        assert not is_open


@pytest.mark.parametrize("chapter", chapters())
def test_folded_cells_in_a_row_share_a_fold(look, chapter):
    page = look(chapter)
    runs = page.locator("details.run").evaluate_all(
        """all => all.map(run => [run.querySelector("summary").innerText,
            run.children.length - 1, run.open,
            !run.querySelector(".cell_output")])"""
    )
    assert runs
    for summary, count, is_open, without_output in runs:
        assert summary == f"Code in {count} folded cells"
        assert count > 2 and not is_open and without_output


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


def test_a_link_opens_what_it_leads_to(visit, site):
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


def test_contents_mark_where_the_reader_is(visit):
    page = visit(CHAPTER)
    marked = page.locator("#pst-page-toc-nav a[aria-current]")
    for way in (1, -1):
        ids = page.locator("article section[id]:has(> h2)").evaluate_all(
            "all => all.map(section => section.id)"
        )
        for name in ids[::way]:
            # Into the middle of a section, whose heading is out of sight.
            page.evaluate(
                """id => { const section = document.getElementById(id);
                const box = section.getBoundingClientRect();
                scrollBy({top: box.top + 20 - innerHeight / 4,
                    behavior: "instant"}); }""",
                name,
            )
            page.wait_for_function(
                """id => document.querySelector("#pst-page-toc-nav "
                    + "a[aria-current]")?.hash === "#" + id""",
                arg=name,
                timeout=2000,
            )
            assert marked.count() == 1


def test_scripts_that_come_late_move_nothing(visit):
    page = visit(CHAPTER, width=390)
    tops = """[...document.querySelectorAll("article :is(h1, h2, h3, p)")]
        .map(part => [part.textContent, part.getBoundingClientRect().top])"""
    at_last = page.evaluate(tops)
    page.route("**/*.js*", lambda route: route.fulfill(body=""))
    at_first = visit(CHAPTER, width=390).evaluate(tops)
    page.unroute_all()
    assert at_first == at_last


def test_the_page_keeps_its_height(visit):
    page = visit(CHAPTER)
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(height)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_timeout(300)
    assert page.evaluate(height) == before
