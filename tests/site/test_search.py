"""The search: one field, by mouse and keyboard, and the best result first."""

import pytest

from tools.settings import contents

HOME = contents()[0]
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
        link => link.getAttribute("href"));
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
checkpoint: llama#from-a-folder
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


def test_search_puts_the_best_first(visit):
    page, missed = visit("search"), []
    for line in FIRST.strip().splitlines():
        words, place = line.split(": ")
        name, mark, anchor = place.partition("#")
        found = page.evaluate(SEARCH, words)
        if not found or not found[0].startswith(
            f"book/{name}.html{mark}{anchor}"
        ):
            missed.append(f"{words}: {found[:1]}, not {place}")
    assert not missed, "\n".join(missed)


def test_a_search_without_a_result_leads_to_topics(visit):
    page = visit("search", "?q=quaternion")
    page.locator("#search-results a", has_text="Topics").click()
    page.wait_for_url("**/topics.html")


@pytest.mark.parametrize(
    ("words", "address", "place"),
    [
        ("padding changes output", "symptoms.html#", ":target > :is(h2, h3)"),
        ("scatter", "*.html", "article :text('scatter'):visible"),
    ],
)
def test_a_result_has_an_extract_and_leads_to_its_place(
    visit, site, words, address, place
):
    page = visit("search", f"?q={words.replace(' ', '+')}")
    first = page.locator("#search-results li").first
    extract = first.locator("p.context")
    extract.wait_for()
    assert words.partition(" ")[0] in extract.text_content().lower()
    first.locator("a").click()
    page.wait_for_url(f"{site}book/{address}*")
    page.wait_for_function("scrollY > 0")
    top = page.locator(place).first.bounding_box()["y"]
    assert 0 < top < 800
    # Sphinx would mark the words here and, by its storage, for ever.
    assert page.locator(".highlighted").count() == 0
