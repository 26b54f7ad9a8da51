"""The pages around the chapters: each leads where it should, and to all.

That their links resolve is tested by the build, which takes a warning for an
error.
"""

import re
from functools import cache

import pytest

from tools.commands import pages as written
from tools.markdown import anchor, links, sections
from tools.notebooks import Notebook, paths
from tools.rules.common import CASES, OTHERS
from tools.rules.tables import unknown_names
from tools.run.claims import BIBLIOGRAPHY, SOURCE, faults
from tools.settings import BOOK, ROOT, chapters, contents

CHAPTERS = [ROOT / f"{name}.ipynb" for name in chapters()]
REFERENCE = [
    next(ROOT.glob(f"{name}.*"))
    for name in contents()[1:]
    if name not in chapters()
]
PAGES = [*REFERENCE, BOOK / "index.md"]


@cache
def read(path):
    """Return a page or a chapter as a Notebook."""
    return (Notebook.page if path.suffix == ".md" else Notebook.read)(path)


def words(path):
    """Return the Markdown of a page or a chapter."""
    return "\n\n".join(cell.source for cell in read(path).markdown)


def headed(path):
    """Yield (titles above it, text) of each section's Markdown."""
    for titles, cell, text in sections(read(path).cells):
        if cell.cell_type == "markdown":
            yield titles, text


def fail_with(messages):
    """Fail with all messages at once, one to a line, if there are any."""
    if text := "\n".join(messages):
        pytest.fail(text, pytrace=False)


def test_the_bibliography_has_each_source_once_and_no_other():
    used = {}
    for path in [*CHAPTERS, *PAGES]:
        for titles, text in headed(path) if path != BIBLIOGRAPHY else ():
            sources = [*links(text), *SOURCE.findall(text)]
            for _, target in sources:
                if target.startswith("http") and "/colab." not in target:
                    place = f"{path.name}#{anchor(titles[-1])}"
                    used.setdefault(target, []).append(place)
    entries = re.findall(r"(?m)^- .*", words(BIBLIOGRAPHY))
    listed = [links(entry)[0][1] for entry in entries]
    twice = {source for source in listed if listed.count(source) > 1}
    # Of the chapters, a rule says so.
    lacking = {s for s in used if any(".md#" in p for p in used[s])}
    lacking -= {*listed}
    idle = {*listed} - used.keys()
    fail_with(
        [
            *(f"merge the entries of {source}" for source in twice),
            *(
                f"list {source} in book/bibliography.md, as {used[source]} "
                "link it"
                for source in lacking
            ),
            *(f"remove {source}: no page links to it" for source in idle),
        ]
    )


def test_every_mistake_is_reached_from_a_symptom():
    reached = {target for _, target in links(words(BOOK / "symptoms.md"))}
    made = [
        f"{path.name}#{anchor(titles[-1])}"
        for path in CHAPTERS
        for titles, _ in headed(path)
        if titles[1:2] in [(CASES,), (OTHERS,)] and titles[2:]
    ]
    assert made
    fail_with(
        f"say in book/symptoms.md what {mistake} shows"
        for mistake in dict.fromkeys(made)
        if mistake not in reached
    )


def test_the_names_of_the_notation_page_are_the_code_s():
    notebooks = [read(path) for path in paths()]
    fail_with(unknown_names(read(BOOK / "notation.md"), notebooks))


@pytest.mark.parametrize("place", range(len(CHAPTERS)))
def test_each_chapter_says_what_comes_next_and_why(place):
    follower = [*CHAPTERS, *REFERENCE][place + 1].name
    last = words(CHAPTERS[place]).rstrip().rpartition("\n")[2]
    if not re.match(rf"Next: \[.+\]\({follower}\), because \w", last):
        name = CHAPTERS[place].name
        fail_with([f"{name} should end: Next: [...]({follower}), because ..."])


@pytest.mark.parametrize("place", range(1, len(CHAPTERS)))
def test_each_chapter_says_on_which_earlier_ones_it_builds(place):
    linked = {
        target
        for titles, text in headed(CHAPTERS[place])
        if "What you will be able to do" in titles
        for _, target in links(text)
    }
    earlier = {path.name for path in CHAPTERS[:place]}
    later = {path.name for path in CHAPTERS[place:]}
    if not linked & earlier or linked & later:
        fail_with(
            [
                f"{CHAPTERS[place].name} should say under 'You need' which of "
                f"{sorted(earlier)} it builds on, by a link"
            ]
        )


def test_what_the_pages_say_of_the_chapters_is_written():
    if stale := written.stale():
        names = ", ".join(path.name for path in stale)
        fail_with([f"{names} would be written otherwise; run: make pages"])


@pytest.mark.parametrize("name", ["notation", "symptoms"])
def test_a_number_of_a_page_comes_from_somewhere(name):
    fail_with(faults(words(BOOK / f"{name}.md")))


def test_each_question_has_a_marking_note():
    """And marking.md has the parts of the page, and no other note."""
    asked = [
        (f"{titles[-1]}, for {kind}", re.findall(r"(?m)^(\d+)\. ", block))
        for titles, text in headed(BOOK / "teach.md")
        if "Questions" in titles
        for kind, block in re.findall(
            r"(?s)\*\*For ([\w ]+)\*\*(.*?(?=\*\*For|$))", text
        )
    ]
    marked = [
        (titles[-1], re.findall(r"(?m)^(\d+)\. ", text))
        for titles, text in headed(BOOK / "marking.md")
        if len(titles) > 1 and text
    ]
    assert asked and marked == asked
