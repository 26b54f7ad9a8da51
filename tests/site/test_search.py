"""The search: one field, by mouse and keyboard, and the best result first."""

import re
from functools import partial

import pytest

from tools.notebooks import Notebook
from tools.settings import HTML, ROOT, chapters, contents

HOME, CHAPTER = contents()[0], chapters()[0]


# The field


@pytest.mark.parametrize("width", [360, 1280])
def test_there_is_one_search_field(visit, width):
    page = visit(HOME, width=width)
    page.locator(".search-button__button:visible").first.click()
    fields = page.locator("input[type=search]")
    assert fields.count() == 1 and fields.is_visible()


def test_search_opens_and_closes_by_keyboard(visit):
    page = visit(CHAPTER)
    field = page.locator("input[type=search]")
    page.keyboard.press("Control+k")
    field.wait_for(state="visible")
    assert field.evaluate("e => e === document.activeElement")
    page.keyboard.press("Escape")
    field.wait_for(state="hidden")


# What it finds. The page is loaded once for many searches, and without the
# extracts, for which it would read each page that it has found.

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


@pytest.fixture
def search(visit):
    """Return a function: words -> [address, title] of each page found."""
    return partial(visit("search").evaluate, SEARCH)


def test_search_finds_a_word_of_each_chapter(search):
    missed = []
    for chapter in chapters():
        prose = Notebook.read(ROOT / f"{chapter}.ipynb").markdown[1].source
        word = max(re.findall(r"[a-z]+", prose), key=len)
        if not any(href.startswith(chapter) for href, _ in search(word)):
            missed.append(f"{chapter}: {word}")
    assert missed == []


DEFINED = {
    "embedding": "book/embedding",
    "mask": "book/embedding",
    "one-hot": "book/embedding",
    "token": "book/embedding",
    "wavelength": "book/positional_encoding",
    "self-attention": "book/attention",
    "entropy": "book/attention",
    "cross-attention": "book/multi_head_attention",
    "teacher forcing": "book/masks",
}


def test_search_puts_the_definition_first(search):
    for term, chapter in DEFINED.items():
        href, _ = search(term)[0]
        assert href.startswith(f"{chapter}.html#"), f"{term}: {href}"
        text = (HTML / f"{chapter}.html").read_text("utf-8")
        anchor = f'id="{href.partition("#")[2]}"'
        (paragraph,) = re.findall(f"<p[^>]*{anchor}.*?</p>", text, re.S)
        bold = re.findall("<strong>(.*?)</strong>", paragraph, re.S)
        assert term in [words.lower() for words in bold]


def test_search_puts_the_chapter_of_that_name_first(search):
    for title in ("Attention", "Masks", "Notation"):
        assert search(title.lower())[0][1] == title


@pytest.mark.parametrize("words", ["loss is nan", "heads all alike"])
def test_search_puts_symptoms_first_for_a_symptom(visit, words):
    page = visit("search", f"?q={words.replace(' ', '+')}")
    first = page.locator("#search-results li a").first
    assert "/symptoms.html" in first.get_attribute("href")


def test_a_page_found_by_its_words_leads_to_the_section(visit, site):
    page = visit("search", "?q=padding+changes+output")
    link = page.locator("#search-results li a").first
    page.wait_for_function(
        "link => link.textContent.includes(' > ')", arg=link.element_handle()
    )
    extract = page.locator("#search-results li p.context").first
    assert "padding" in extract.text_content().lower()
    title = link.text_content().partition(" > ")[2]
    link.click()
    page.wait_for_url(f"{site}book/symptoms.html*#*")
    heading = page.locator(":target > :is(h2, h3)")
    assert heading.text_content().startswith(title)


def test_a_result_has_an_extract_and_leads_to_its_place(visit, site):
    term = "teacher forcing"
    page = visit("search", f"?q={term.replace(' ', '+')}")
    first = page.locator("#search-results li").first
    extract = first.locator("p.context")
    extract.wait_for()
    assert term in extract.text_content().lower()
    first.locator("a").click()
    page.wait_for_url(f"{site}{DEFINED[term]}.html*")
    place = page.locator(":target strong").all_text_contents()
    assert term in [text.lower() for text in place]
