"""The search: one field, by mouse and keyboard, and the best result first."""

import re
from functools import partial

import pytest

from tools.settings import chapters, contents

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
# What learners type, and where the first result has to lead.
FIRST = """
rope: rotary#turn-each-pair
kv cache: cache#a-layer-with-a-cache
gqa: cache#fewer-key-heads
layer norm vs rms norm: encoder#
flash attention: tiles#tiles
mask nan: masks#why-is-my-loss-nan-with-a-padding-mask
loss is nan: symptoms#the-loss-or-a-gradient-is-nan
temperature: sampling#
beam search: sampling#
nucleus sampling: sampling#cut-the-tail
top p: sampling#cut-the-tail
tokenizer: practice#a-tokenizer
bpe: practice#a-tokenizer
positional encoding: positional_encoding
self attention: attention#
query key value: attention#a-soft-dictionary
why divide by sqrt: attention#
multi head attention: multi_head_attention
causal mask: masks#
padding mask: masks#
cross attention: decoder#two-attentions
residual connection: encoder#the-residual-connection
layer norm: encoder#layer-normalisation
feed forward: encoder#the-feed-forward-network
teacher forcing: decoder#teacher-forcing
greedy decoding: decoder#
perplexity: training#the-loss
adam: training#adam
warmup: training#warm-up
learning rate schedule: training#warm-up
label smoothing: training#
overfit one batch: testing#
checkpoint: practice#
mixture of experts: families#a-mixture-of-experts
moe: families#a-mixture-of-experts
weight tying: llama#
past_key_values: cache#in-your-code
sliding window: cache#
alibi: rotary#side-road-a-bias-for-the-distance
attention: attention
masks: masks
notation: notation
padding changes output: symptoms#padding-changes-the-output
initialisation: positional_encoding#it-depends-on-the-initialisation
"""


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
    missed = []
    for line in FIRST.strip().splitlines():
        words, place = line.split(": ")
        page, mark, anchor = place.partition("#")
        found = search(words)
        first = found[0][0] if found else "nothing"
        if not first.startswith(f"book/{page}.html{mark}{anchor}"):
            missed.append(f"{words}: {first}, not {place}")
    assert not missed, "\n".join(missed)


def test_a_search_without_a_result_leads_to_topics(visit):
    page = visit("search", "?q=quaternion")
    page.locator("#search-results a", has_text="Topics").click()
    page.wait_for_url("**/topics.html")


def test_words_that_were_searched_are_not_marked_for_ever(visit, site):
    page = visit("search", "?q=cell+by+cell")
    page.locator("#search-results li a").first.click()
    page.wait_for_url(f"{site}book/*")
    page.wait_for_timeout(100)
    assert page.locator(".highlighted").count() == 0


@pytest.mark.parametrize(
    ("words", "page_name", "extract_has", "place"),
    [
        ("padding changes output", "book/symptoms", "padding", "> :is(h2,h3)"),
        ("teacher forcing", "book/decoder", "teacher forcing", "strong"),
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
