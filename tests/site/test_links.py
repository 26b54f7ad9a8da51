"""Where the links lead: within the book, from the map, and into it."""

import io
import re
from functools import cache

import pytest
from PIL import Image
from playwright.sync_api import expect

from tools.settings import HTML, chapters, contents

HOME, CHAPTER = contents()[0], chapters()[0]


@cache
def anchors(path):
    """Return the ids in a file of the site."""
    return set(re.findall(r'\sid="([^"]*)"', path.read_text("utf-8")))


@pytest.mark.parametrize("name", [*contents(), "search", "genindex"])
def test_links_lead_somewhere(look, site, name):
    links = look(name).evaluate("""() => [...new Set(
        [...document.querySelectorAll("[href], [src]")]
        .map(e => e.getAttribute("href") ?? e.getAttribute("src"))
        .map(link => new URL(link, document.baseURI).href))]""")
    inside = [link for link in links if link.startswith(site)]
    assert inside and not any("OWNER" in link for link in links)
    for link in inside:
        file, _, anchor = link.partition("#")
        path = HTML / file.partition("?")[0].removeprefix(site)
        assert path.is_file(), f"{name} links to {link}"
        if anchor and path.suffix == ".html":
            assert anchor in anchors(path), f"{name} links to {link}"


def test_a_link_into_a_chapter_leads_to_its_heading(visit):
    page = visit(CHAPTER, "#exercises")
    page.wait_for_timeout(500)
    top = page.locator("#exercises > h2").bounding_box()["y"]
    assert 0 <= top <= 200


def test_the_tab_key_reaches_each_chapter_on_the_map(visit):
    stops = "svg.transformer-map a:not([tabindex='-1'], [target])"
    links = visit(HOME).locator(stops)
    for link in links.all():
        link.focus()
        expect(link).to_be_focused()
    found = links.evaluate_all("all => all.map(link => link.href.baseVal)")
    wanted = {chapter.removeprefix("book/") for chapter in chapters()}
    missing = wanted - {re.split(r"[/.]", link)[-2] for link in found}
    assert not missing, (
        "book/_static/transformer-map.svg has no link that the Tab key "
        f"reaches to {missing}: add it there"
    )


@pytest.mark.parametrize("name", contents())
def test_a_link_to_a_page_shows_a_card(look, site, repository, name):
    page = look(name)
    said = dict(
        page.locator("meta[property^='og:']").evaluate_all(
            "all => all.map(e => [e.getAttribute('property'), e.content])"
        )
    )
    assert page.title().startswith(said["og:title"])
    assert len(said["og:description"]) > 40
    if repository:  # else nobody knows where the picture will be
        assert len(said["og:image:alt"]) >= 20
        _, _, path = said["og:image"].partition("github.io/")
        card = page.request.get(site + path.partition("/")[2])
        assert Image.open(io.BytesIO(card.body())).size == (1200, 630)
