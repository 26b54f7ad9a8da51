"""The pages around the chapters: each leads where it should, and to all.

What the pages say in numbers is tested in test_libraries.py; that their links
resolve, by the build, which takes a warning for an error.
"""

import re
from functools import cache

import pytest

from tools.net.rules import citations, pages
from tools.net.rules.common import outside_fences
from tools.net.rules.reading import MAX_MINUTES
from tools.net.rules.text import anchor
from tools.notebooks import Notebook, paths
from tools.settings import BOOK, ROOT, chapters, contents

CHAPTERS = [ROOT / name for name in chapters()]
REFERENCE = [ROOT / name for name in contents()[1:] if name not in chapters()]
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


@cache
def read(path):
    """Return a page's file name and its Markdown."""
    if path.with_suffix(".md").exists():
        path = path.with_suffix(".md")
        return path.name, path.read_text("utf-8")
    path = path.with_suffix(".ipynb")
    cells = Notebook.read(path).markdown
    return path.name, "\n\n".join(cell.source for cell in cells)


def sections(text):
    """Yield (anchor, text) for each heading of a page and what it heads."""
    parts = re.split(r"(?m)^#{1,3} (.+)$", outside_fences(text))
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        yield anchor(title), body


def entries(text):
    """Yield the items of the lists of a page, each with its own lines."""
    yield from re.findall(r"(?m)^- .*(?:\n  .*)*", text)


# Bibliography


def sources():
    """Return a dict: address outside the book -> the sections it is in."""
    used = {}
    for path in [*CHAPTERS, *REFERENCE, BOOK / "index"]:
        name, text = read(path)
        if name == "bibliography.md":
            continue
        for heading, body in sections(text):
            for target in LINK.findall(body):
                if target.startswith("http") and "/colab." not in target:
                    used.setdefault(target, []).append(f"{name}#{heading}")
    return used


def test_the_bibliography_has_each_source_once_and_no_other():
    used = sources()
    listed = [
        LINK.findall(e)[0] for e in entries(read(BOOK / "bibliography")[1])
    ]
    twice = {source for source in listed if listed.count(source) > 1}
    assert not twice, f"merge the entries of {twice}"
    for source in used:
        assert source in listed, f"add {source}, used in {used[source]}"
    for source in listed:
        assert source in used, f"remove {source}: no page links to it"


# Symptoms


def mistakes():
    """Return the anchors of the mistakes that the chapters make."""
    found = []
    for path in CHAPTERS:
        name, text = read(path)
        for part in re.split(r"(?m)^## ", outside_fences(text)):
            if part.startswith("Wrong on purpose\n"):
                titles = re.findall(r"(?m)^### (.+)$", part)
                found += [f"{name}#{anchor(title)}" for title in titles]
    return found


@pytest.mark.parametrize("mistake", mistakes())
def test_every_mistake_is_reached_from_a_symptom(mistake):
    targets = LINK.findall(read(BOOK / "symptoms")[1])
    assert mistake in targets, f"say in book/symptoms.md what {mistake} shows"


def test_the_opening_of_symptoms_names_the_mistakes_without_a_pair():
    notebooks = map(Notebook.read, paths())
    found = pages.without_twins(read(BOOK / "symptoms")[1], notebooks)
    assert not (found := list(found)), "\n" + "\n".join(found)


def test_the_check_of_a_symptom_stands_where_its_links_lead():
    notebooks = map(Notebook.read, paths())
    found = pages.checks_elsewhere(read(BOOK / "symptoms")[1], notebooks)
    assert not (found := list(found)), "\n" + "\n".join(found)


def test_the_names_in_the_check_of_a_symptom_are_those_of_the_code():
    words = {}
    for path in paths():
        code = "\n".join(cell.source for cell in Notebook.read(path).code)
        words[path.name] = set(re.findall(r"\w+", code))
    _, _, text = read(BOOK / "symptoms")[1].partition("\n## ")
    for entry in entries(text):
        files = {target.partition("#")[0] for target in LINK.findall(entry)}
        known = [words[file] for file in files & words.keys()]
        _, _, check = entry.partition("\n  Check: ")
        names = " ".join(re.findall(r"`([^`]+)`", check))
        unknown = set(re.findall(r"[A-Za-z_]\w*", names)).difference(*known)
        assert not unknown, f"no cell of {files} has {unknown}:\n{entry}"


def test_no_two_symptoms_of_a_section_lead_to_one_place():
    found = list(pages.same_place(read(BOOK / "symptoms")[1]))
    assert not found, "\n" + "\n".join(found)


# Topics


def test_the_rows_of_topics_name_what_they_link():
    found = list(pages.other_topics(read(BOOK / "topics")[1]))
    assert not found, "\n" + "\n".join(found)


# What the chapters are held to, too


@pytest.mark.parametrize(
    "path", [*REFERENCE, BOOK / "index"], ids=lambda path: path.name
)
def test_pages_follow_the_rules_of_prose(path):
    page = Notebook.page(path.with_suffix(".md"))
    found = [message for rule in pages.PROSE for message in rule(page)]
    assert not found, "\n" + "\n".join(found)


def test_the_names_of_the_notation_page_are_the_code_s():
    page = Notebook.page(BOOK / "notation.md")
    found = [*pages.unknown_names(page, map(Notebook.read, paths()))]
    assert not found, "\n" + "\n".join(found)


def test_the_years_of_the_bibliography_are_those_of_the_addresses():
    found = list(citations.misdated(citations.listed()))
    assert not found, "\n" + "\n".join(found)


# The way through


@pytest.mark.parametrize("place", range(len(CHAPTERS)))
def test_each_chapter_says_what_comes_next_and_why(place):
    name, text = read(CHAPTERS[place])
    follower = read([*CHAPTERS, *REFERENCE][place + 1])[0]
    last = text.rstrip().rpartition("\n")[2]
    assert re.match(rf"Next: \[.+\]\({follower}\), because \w", last), (
        f"{name} should end: Next: [...]({follower}), because ..."
    )


@pytest.mark.parametrize("place", range(1, len(CHAPTERS)))
def test_each_chapter_says_on_which_earlier_ones_it_builds(place):
    name, text = read(CHAPTERS[place])
    (needs,) = (
        body
        for heading, body in sections(text)
        if heading == "what-you-will-be-able-to-do"
    )
    linked = set(LINK.findall(needs))
    earlier = {read(path)[0] for path in CHAPTERS[:place]}
    later = {read(path)[0] for path in CHAPTERS[place:]}
    assert linked & earlier and not linked & later, (
        f"{name} should say under 'You need' which of {sorted(earlier)} it "
        "builds on, by a link"
    )


def test_the_readme_lists_the_chapters_in_their_order():
    readme = (ROOT / "README.md").read_text("utf-8")
    listed = re.findall(r"\]\(book/(\w+)\.ipynb\)", readme)
    assert listed == [path.name for path in CHAPTERS]


def test_a_first_reading_takes_as_long_as_the_first_page_says():
    says = f"at most {MAX_MINUTES} minutes a chapter"
    assert says in read(BOOK / "index")[1], f"book/index.md should say: {says}"
