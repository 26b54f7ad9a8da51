"""Links into a page, and from the map to the chapters."""

import re

from playwright.sync_api import expect

from tools.settings import chapters, contents


def test_a_link_into_a_chapter_leads_to_its_heading(visit):
    page = visit(chapters()[0], "#exercises")
    page.wait_for_timeout(500)
    top = page.locator("#exercises > h2").bounding_box()["y"]
    assert 0 <= top <= 200


def test_the_tab_key_reaches_each_chapter_on_the_map(visit):
    stops = "svg.transformer-map a:not([tabindex='-1'], [target])"
    links = visit(contents()[0]).locator(stops)
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
