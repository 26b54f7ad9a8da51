"""The pages around the chapters: each leads where it should, and to all.

What the pages say in numbers is tested in test_numbers.py; that their links
resolve, by the build, which takes a warning for an error.
"""

import re
from functools import cache

import pytest

from tools.markdown import anchor, links, sections
from tools.notebooks import Notebook, paths
from tools.rules import pages
from tools.rules.common import CASES, OTHERS
from tools.rules.links import BIBLIOGRAPHY
from tools.run.claims import SOURCE
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
    fail_with(pages.unknown_names(read(BOOK / "notation.md"), notebooks))


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


def test_the_readme_lists_the_chapters_in_their_order():
    readme = (ROOT / "README.md").read_text("utf-8")
    listed = re.findall(r"\]\(book/(\w+\.ipynb)\)", readme)
    assert listed == [path.name for path in CHAPTERS]
