"""The reference and the bibliography lead to where the book has a thing."""

import ast
import re
from functools import cache

import pytest
from bs4 import BeautifulSoup

from tools.settings import HTML, ROOT, contents

BIBLIOGRAPHY = "book/bibliography"


@cache
def article(name):
    text = (HTML / f"{name}.html").read_text("utf-8")
    return BeautifulSoup(text, "html.parser").select_one("article")


@pytest.mark.parametrize("part", ["pytorch", "tensorflow", "common"])
def test_each_name_is_there_with_its_docstring_and_its_section(part):
    module = ROOT / "cellbycell" / part / "__init__.py"
    text = module.read_text("utf-8")
    names = ast.literal_eval(ast.parse(text).body[-1].value)
    assert names
    for name in names:
        page = article(f"book/reference_{part}")
        entry = page.find(id=f"cellbycell.{part}.{name}")
        assert entry, f"reference_{part}.md does not list {name}"
        told = entry.find_next("dd").find_all("p", recursive=False)
        assert told[0].text[0].isupper(), name
        page, anchor = told[-1].a["href"].split("#")
        section = article(f"book/{page.removesuffix('.html')}").find(id=anchor)
        code = [cell.text for cell in section.select(".cell.tag_export")]
        assert re.search(rf"(def|class) {name}\b", "\n".join(code)), name


def test_each_source_is_followed_by_the_sections_that_use_it():
    uses = {}
    for name in {*contents()} - {BIBLIOGRAPHY}:
        for link in article(name).select("a.external[href^=http]"):
            anchor = link.find_parent("section")["id"]
            place = f"{name.removeprefix('book/')}.html#{anchor}"
            uses.setdefault(link["href"], set()).add(place)
    entries = article(BIBLIOGRAPHY).select("li")
    assert len(entries) > 50
    for entry in entries:
        source, *listed = (link["href"] for link in entry.select("a"))
        places = uses[source]
        others = {p for p in places if "#further-reading" not in p}
        assert set(listed) == (others or places), source
