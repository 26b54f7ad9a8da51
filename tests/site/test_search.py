"""The search: one field, by mouse and keyboard, and the best result first."""

import re
from functools import partial

import pytest

from tools.settings import HTML, chapters, contents

HOME, CHAPTER = contents()[0], chapters()[0]
# The page is loaded once for many searches, and without the extracts, for
# which it would read each page that it has found.
SEARCH = """async words => {
    const list = document.getElementById("search-results");
    list.replaceChildren();
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
    Search.performSearch(words);
    while (!Search.status.textContent)
        await new Promise(done => setTimeout(done, 5));
    return Array.from(list.querySelectorAll("li a"),
        link => [link.getAttribute("href"), link.textContent]);
}"""
DEFINED = {
    "embedding": "book/embedding",
    "mask": "book/embedding",
    "self-attention": "book/attention",
    "cross-attention": "book/multi_head_attention",
    "teacher forcing": "book/masks",
}


@pytest.mark.parametrize("width", [360, 1280])
def test_one_search_field_opens_and_closes(visit, width):
    page = visit(HOME, width=width)
    fields = page.locator("input[type=search]")
    page.locator(".search-button__button:visible").first.click()
    assert fields.count() == 1 and fields.is_visible()
    page.keyboard.press("Escape")
    fields.wait_for(state="hidden")
    page.keyboard.press("Control+k")
    fields.wait_for(state="visible")
    assert fields.evaluate("e => e === document.activeElement")


@pytest.fixture
def search(visit):
    """Return a function: words -> [address, title] of each page found."""
    return partial(visit("search").evaluate, SEARCH)


def test_search_finds_a_word_of_each_chapter(search, notebook):
    missed = []
    for chapter in chapters():
        prose = notebook(chapter).markdown[1].source
        word = max(re.findall(r"[a-z]+", prose), key=len)
        if not any(href.startswith(chapter) for href, _ in search(word)):
            missed.append(f"{chapter}: {word}")
    assert missed == []


def test_search_puts_the_best_first(search):
    for term, chapter in DEFINED.items():
        href, _ = search(term)[0]
        assert href.startswith(f"{chapter}.html#"), f"{term}: {href}"
        text = (HTML / f"{chapter}.html").read_text("utf-8")
        anchor = f'id="{href.partition("#")[2]}"'
        (paragraph,) = re.findall(f"<p[^>]*{anchor}.*?</p>", text, re.S)
        bold = re.findall("<strong>(.*?)</strong>", paragraph, re.S)
        assert term in [words.lower() for words in bold]
    for title in ("Attention", "Masks", "Notation"):
        assert search(title.lower())[0][1] == title


@pytest.mark.parametrize(
    "word",
    ["overfit", "position", "autoregressive", "initialisation"],
)
def test_a_word_of_the_field_leads_to_what_treats_it(search, word):
    href = search(word)[0][0]
    page, _, anchor = href.partition("#")
    text = (HTML / page).read_text("utf-8")
    place = text.partition(f'id="{anchor}"')[2] if anchor else text
    # The heading that comes next, or the paragraph of a definition.
    said = re.search(r"<h[1-3]>.*?</h|<strong>.*?</strong>", place, re.S)[0]
    assert word in said.lower(), f"{word}: {href}, {said}"


@pytest.mark.parametrize(
    ("words", "page_name", "extract_has", "place"),
    [
        ("padding changes output", "book/symptoms", "padding", "> :is(h2,h3)"),
        ("teacher forcing", "book/masks", "teacher forcing", "strong"),
    ],
)
def test_a_result_has_an_extract_and_leads_to_its_place(
    visit, site, words, page_name, extract_has, place
):
    page = visit("search", f"?q={words.replace(' ', '+')}")
    first = page.locator("#search-results li").first
    extract = first.locator("p.context")
    extract.wait_for()
    assert extract_has in extract.text_content().lower()
    link = first.locator("a")
    page.wait_for_function(
        "link => link.href.includes('#')", arg=link.element_handle()
    )
    link.click()
    page.wait_for_url(f"{site}{page_name}.html*#*")
    shown = page.locator(f":target {place}").all_text_contents()
    assert any(extract_has in text.lower() for text in shown)
