"""The bibliography as built says where each source is used."""

from bs4 import BeautifulSoup

from tools.settings import HTML, contents

PAGE = "book/bibliography"


def article(name):
    text = (HTML / f"{name}.html").read_text("utf-8")
    return BeautifulSoup(text, "html.parser").select_one("article")


def uses():
    """Return a dict: source -> the sections that link to it.

    A list of further reading counts only if no other section has the link.
    """
    found = {}
    for name in contents():
        if name == PAGE:
            continue
        for link in article(name).select("a.external[href^=http]"):
            section = link.find_parent("section")
            place = f"{name.removeprefix('book/')}.html#{section['id']}"
            found.setdefault(link["href"], set()).add(place)
    return {
        source: {p for p in places if "#further-reading" not in p} or places
        for source, places in found.items()
    }


def test_each_source_is_followed_by_the_sections_that_use_it():
    wanted, listed = uses(), {}
    for entry in article(PAGE).select("li"):
        source, *places = (link["href"] for link in entry.select("a"))
        listed[source] = set(places)
    assert len(listed) > 50
    for source, places in listed.items():
        assert places == wanted[source], source
