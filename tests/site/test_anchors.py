"""Published addresses lead somewhere, also when a heading changes."""

from functools import cache
from pathlib import Path

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


@pytest.fixture
def moved(monkeypatch, tmp_path):
    """Return a function: a line of the table -> what the build says of it."""
    from docutils import nodes

    monkeypatch.syspath_prepend(Path("book/_ext").resolve())
    import moved as extension

    def warnings(line):
        (tmp_path / "moved.txt").write_text(f"# Places\n{line}\n", "utf-8")
        monkeypatch.setattr(extension, "TABLE", tmp_path / "moved.txt")
        said = []
        monkeypatch.setattr(
            extension.logger,
            "warning",
            lambda text, *a, **_: said.append(text % a),
        )
        page = nodes.section(ids=["new"])
        page += nodes.section(ids=["other"])
        env = type("Env", (), {"docname": "book/a", "found_docs": {"book/a"}})
        app = type("App", (), {"env": env})
        extension.check_pages(app, env, [])
        extension.add_anchors(app, page)
        return said, page["ids"]

    return warnings


def test_the_table_gives_a_place_its_old_anchor(moved):
    assert moved("book/a#old new") == ([], ["new", "old"])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("book/a#old gone", "book/a has no #gone"),
        ("book/a#other new", "book/a already has #other"),
        ("book/b#old new", "there is no page book/b (#old)"),
    ],
)
def test_a_wrong_line_of_the_table_is_named(moved, line, says):
    (said,), ids = moved(line)
    assert says in said and ids == ["new"]


def test_an_old_anchor_opens_a_folded_side_road(visit):
    page = visit(chapters()[0])
    road = page.locator("section:has(> details.side-road)").first
    road.evaluate("""section => {
        const old = document.createElement("span");
        old.id = "an-old-name";
        section.prepend(old); }""")
    page.evaluate("location.hash = 'an-old-name'")
    road.locator("> details[open]").wait_for()
