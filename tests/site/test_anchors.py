"""Published addresses lead somewhere, also when a heading changes."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.commands.edition import unlisted
from tools.settings import HTML, branch, chapters, edition

# A line each: page#anchor. Sections, terms and names of the package.
PUBLISHED = Path(__file__).with_name("anchors.txt")


@cache
def html(page):
    return (HTML / f"{page}.html").read_text("utf-8")


def test_each_published_address_leads_to_a_place():
    lost = []
    for address in PUBLISHED.read_text("utf-8").split():
        page, _, anchor = address.partition("#")
        if f'id="{anchor}"' not in html(page):
            lost.append(address)
    assert not lost, (
        "a link to these is lost. Write behind each, into "
        "book/_ext/moved.txt, the anchor of the place that it has now:\n"
        + "\n".join(lost)
    )


def test_an_edition_keeps_all_its_addresses():
    if branch() != edition()[0]:
        pytest.skip("the links of this book lead to no tag")
    assert not unlisted(), "Run: make edition"


def test_the_table_gives_a_place_its_old_anchor(monkeypatch, tmp_path):
    from docutils import nodes

    monkeypatch.syspath_prepend(Path("book/_ext").resolve())
    import moved

    monkeypatch.setattr(moved, "TABLE", tmp_path / "moved.txt")
    said = []
    warn = SimpleNamespace(warning=lambda text, *a, **_: said.append(text % a))
    monkeypatch.setattr(moved, "logger", warn)
    app = SimpleNamespace(env=SimpleNamespace(docname="book/a"))
    for line, says in [
        ("book/a#old new", None),
        ("book/a#old gone", "book/a has no #gone"),
        ("book/a#other new", "book/a already has #other"),
    ]:
        (tmp_path / "moved.txt").write_text(f"# Places\n{line}\n", "utf-8")
        page = nodes.section(ids=["new"])
        page += nodes.section(ids=["other"])
        moved.add_anchors(app, page)
        if says is None:
            assert not said and page["ids"] == ["new", "old"]
        else:
            assert says in said.pop() and page["ids"] == ["new"]


def test_an_old_anchor_opens_a_folded_side_road(visit):
    page = visit(chapters()[0])
    road = page.locator("section:has(> details.side-road)").first
    road.evaluate("""section => {
        const old = document.createElement("span");
        old.id = "an-old-name";
        section.prepend(old); }""")
    page.evaluate("location.hash = 'an-old-name'")
    road.locator("> details[open]").wait_for()
