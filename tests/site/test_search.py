"""The search: one field, by mouse and keyboard, and the best result first."""

import gzip

import pytest

from tools.settings import HTML, chapters, contents

HOME = contents()[0]
# Where the results of a search lead to, the best first.
SEARCH = """words => rank(words).map(([, number]) => {
    const [page, anchor] = SECTIONS[number];
    return PAGES[page][0].replace("book/", "") + "#" + anchor;
})"""
# What learners type, and where the first result has to lead.
FIRST = """
rope: rotary#turn-each-pair
kv cache: cache#keep-keys-and-values
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
# What learners and engineers ask, and places of which one is among the first
# three results.
AMONG_THREE = """
why is my model repeating itself when generating: symptoms#sampled
loss too low but generated text is garbage: symptoms#the-loss-is-too-good
loss stuck at 10.8: symptoms#the-loss-stays-high training#where-has-my-loss
model can see the future tokens: symptoms#the-loss-is-too-good
how to add a causal mask in pytorch: masks#causal-masks masks#how-each-call
key_padding_mask true or false: libraries#what-true-means-in-a-mask
how much memory does the kv cache need: cache#bytes cache#what-a-token-costs
quantize llama to 4 bit: bits#
load a gguf file: bits#a-llama-from-a-file reference_files#reading-a-gguf-file
lora rank and alpha: finetune#a-change-of-low-rank finetune#alpha-without
train on multiple gpus: parallel
tensor parallelism: parallel#columns-then-rows
gradient accumulation: practice#side-road-gradients-in-parts
resume training from a checkpoint: practice#killed-and-resumed
why multiply embeddings by sqrt d_model: positional_encoding#times
what does the softmax temperature do: sampling#temperature
pre norm or post norm: encoder#what-depth-keeps encoder#the-encoder-layer
number of parameters in gpt: decoder#how-many-parameters
sinusoidal embeddings formula: positional_encoding#the-formula
batch_first: symptoms#sequences-change-each-other
attention is quadratic in length: attention#side-road-what-attention-costs
rope longer context: rotary#side-road-longer-texts
left padding for generation: masks#side-road-left-padding
speculative decoding: speculative#guess-then-check
how does speculative sampling accept tokens: speculative#accept-or-draw
mamba: linear_attention#side-road-mamba-2
router sends everything to one expert: mixture_of_experts#the-collapse
deepseek mla: mixture_of_experts#side-road-latent-attention
gradient clipping: training#side-road-gradient-clipping
view size is not compatible: symptoms#messages-of-pytorch multi_head_attention#
index out of range in self: symptoms#messages-of-pytorch symptoms#an-id-is-out
cross entropy ignore_index: masks#the-loss-over-real masks#pads-in-the-loss
weights not updating: symptoms#parameters-are-missing
model.eval() gives different results: symptoms#two-calls
keras mask_zero: masks#side-road-the-mask-that-keras masks#the-mask-lost-with
convert huggingface weights: llama#names llama#weights-by-name
split heads reshape vs transpose: multi_head_attention#why-view-then
bert: families#side-road-gpt-2-and-bert
word order ignored: symptoms#the-order-of-the-tokens
flat attention weights: symptoms#the-attention-weights-look-wrong
continuous batching: serving#join-and-leave
paged attention: serving#memory-in-pages
prefix caching: serving#a-beginning
dpo: preferences#two-texts
grpo: preferences#draw
knowledge distillation: preferences#a-teacher
reward hacking: preferences#what-the-rule
vision transformer: images#a-picture-in-a-row
clip: images#a-picture-and-its-name
"""
INDEX = 10_500  # bytes for each chapter, compressed; a search alone loads it


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


@pytest.mark.parametrize(("questions", "most"), [(FIRST, 1), (AMONG_THREE, 3)])
def test_search_puts_the_best_first(visit, questions, most):
    page, missed = visit("search"), []
    for line in questions.strip().splitlines():
        words, places = line.split(": ")
        found = page.evaluate(SEARCH, words)[:most]
        # A page without a section is its beginning.
        wanted = tuple(p if "#" in p else f"{p}#" for p in places.split())
        if not any(place.startswith(wanted) for place in found):
            missed.append(f"{words}: {found}, not {places}")
    assert not missed, "\n".join(missed)


def test_a_part_of_a_word_does_not_count(visit):
    page = visit("search")
    assert page.evaluate("rank('ormer').length") == 0  # Transformer has it
    assert page.evaluate(SEARCH, "masks")[0] == "masks#"
    some = page.evaluate("rank('quaternion of a causal mask').length")
    assert some > 0


def test_a_search_loads_its_index_and_no_page(visit, tab):
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    page = visit("search", "?q=how+to+add+a+causal+mask")
    page.locator("#search-results li p").first.wait_for()
    page.wait_for_load_state("networkidle")
    assert len([address for address in asked if ".html" in address]) == 1
    index = HTML / "_static" / "sections.js"
    assert len(gzip.compress(index.read_bytes())) < INDEX * len(chapters())


def test_a_search_without_a_result_leads_to_topics(visit):
    page = visit("search", "?q=quaternion")
    page.locator("#search-results a", has_text="Topics").click()
    page.wait_for_url("**/topics.html")


def test_a_result_has_an_extract_and_leads_to_its_place(visit, site):
    page = visit("search", "?q=padding+changes+output")
    first = page.locator("#search-results li").first
    assert "output" in first.locator("p.context mark").all_text_contents()
    first.locator("a").click()
    page.wait_for_url(f"{site}book/symptoms.html#*")
    page.wait_for_function("scrollY > 0")
    top = page.locator(":target > :is(h2, h3)").first.bounding_box()["y"]
    assert 0 < top < 800
