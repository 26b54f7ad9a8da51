"""The moving pictures show the numbers of their chapters.

Each is put into several states outside the site, as in Colab, with the network
cut; what it then shows is computed here with the functions of the chapter.
Each is also tested by keyboard, on the site, and without scripts.
"""

import re
from inspect import signature

import numpy as np
import pytest
from playwright.sync_api import expect

from tools.chromium import load_pictures, unfold, wait_for_layout
from tools.notebooks import Notebook
from tools.settings import BOOK

# In the process in which the chapters run.
pytestmark = pytest.mark.xdist_group("frameworks")

SENTENCE = "Life is short, eat dessert first"


# What a state shows: its sentence, and the text or the path of each part.


def lookup(book, token):
    entries, ids = list(book["vocabulary"]), book["torch"].tensor([token])
    table = book["torch"].tensor(book["counted"])  # (N, D)
    assert np.array_equal(table[:, 0], 10 * np.arange(len(entries)))
    vector = book["embed"](ids, table)[0].tolist()
    parts = {}
    for n, one in enumerate(book["one_hot"](ids, len(entries))[0]):
        parts[f"one-{n}"] = f"{one:.0f}"
        for c in range(table.shape[1]):
            parts[f"number-{n}-{c}"] = str(table[n, c].item())
    product = book["embed_one_hot"](ids, table.float())[0]  # (D,)
    parts |= {f"product-{c}": f"{x:.0f}" for c, x in enumerate(product)}
    said = f"“{entries[token]}” has id {token}: a 1 at index {token} of its "
    said += f"one-hot vector. Times the table: {', '.join(map(str, vector))}, "
    return f"{said}row {token}.", parts


def waves(book, width, base, position):
    said = book["wave_words"](position, width, base)
    if base == 4:
        row = book["position_table"](32, width)[position]  # (D,)
        numbers = ", ".join(f"{number:.4f}" for number in row[:6])
        assert f": {numbers}".replace("-", "−") in said
    return said, book["wave_paths"](position, width, base)


def clocks(book, offset, width):
    said = book["clock_words"](offset, width)
    rows = book["position_table"](offset + 1, width)  # (T, D)
    total = float(re.search(r"= (−?[\d.]+)", said)[1].replace("−", "-"))
    assert abs(rows[0] @ rows[offset] - total) < 2e-3
    return said, book["clock_paths"](offset, width)


def attention(book, sentence, query):
    tokens = sentence.replace(",", "").split()
    kinds = [
        [token.lower() in known for known in book["lexicon"].values()]
        for token in tokens
    ]
    x = book["torch"].tensor(kinds).double()  # (T, D)
    unit = book["torch"].eye(4).double()
    wanted = book["torch"].tensor(book["wanted"])  # (D, K)
    weights = book["self_attend"](x, wanted, unit, unit)[1]  # (T, T)
    parts = {}
    for i, token in enumerate(tokens):
        parts |= {f"key-{i}": token, f"query-{i}": token}
        for j in range(len(tokens)):
            parts[f"weight-{i}-{j}"] = f"{weights[i, j]:.2f}"
    said = [
        f"{token} {parts[f'weight-{query}-{j}']}"
        for j, token in enumerate(tokens)
    ]
    return f"“{tokens[query]}” looks at: {', '.join(said)}.", parts


def heads(book, step, moves):
    x = book["torch"].arange(24).reshape(1, 3, 8)  # (B, T, D)
    divided = book["split_heads"](x, 2)  # (B, H, T, K)
    if 0 not in moves:
        divided = x.reshape(divided.shape)  # (B, H, T, K)
    whole = book["merge_heads"](divided)  # (B, T, D)
    if 1 not in moves:
        whole = divided.reshape(x.shape)  # (B, T, D)
    lying = [x, x, divided, divided, whole][step]
    if (step == 1 and 0 not in moves) or (step == 3 and 1 not in moves):
        lying = divided
    elif step == 3:
        lying = whole
    seen = lying if lying.ndim == 3 else lying.transpose(1, 2)
    parts = {
        f"number-{i}": str(n) for i, n in enumerate(seen.ravel().tolist())
    }
    numbers = " ".join(map(str, lying.ravel().tolist()))
    parts["order"] = f"In the array: {numbers}"
    for i, columns in enumerate(["columns 0–3", "columns 4–7"]):
        parts[f"side-{i}"] = columns if step in (0, 4) else f"head {i}"
    frames = book["step_frames"](x[0].numpy(), 0 in moves, 1 in moves)
    return frames[step]["said"], parts


def masks(book, keys, more, fill):
    torch, positions = book["torch"], range(7)
    x = torch.from_numpy(book["sines"])[book["ids"][0]][None]  # (B, T, D)
    mask = torch.tensor([[s in keys for s in positions]] * 7)  # (T, S)
    if 0 in more:
        mask &= book["make_causal_mask"](7)
    if 1 in more:
        mask &= torch.tensor([[t in keys] for t in positions])
    weights = [
        book["attend"](x, x, x, mask)[1],
        book["attend_filled"](x, x, torch.eye(7), mask, -1e9),
        book["attend_or_zero"](x, x, x, mask)[1],
    ][fill][0]  # (T, S)
    tokens = ["say", "hello", "to", "world", "pad", "pad", "pad"]
    parts = {}
    for t, token in enumerate(tokens):
        parts |= {f"key-{t}": token, f"query-{t}": token}
        for s in positions:
            parts[f"weight-{t}-{s}"] = f"{weights[t, s]:.2f}"
    blind = [tokens[t] for t in positions if not mask[t].any()]
    said = "Each query sees a key, and each row sums to 1."
    if blind:
        said = f"Blind: {', '.join(blind)}. {book['fates'][fill]}"
    return said, parts


def way(book, parts, order, layer):
    x, mask = book["x"], book["attention_mask"]
    for encoder_layer in book["way_layers"][:layer]:
        rows, start = [["the token", x]], x
        for name, around, sublayer in [
            (
                "attention",
                encoder_layer.around_attention,
                lambda y, f=encoder_layer.attention: f(y, y, y, mask),
            ),
            (
                "feed-forward",
                encoder_layer.around_feed_forward,
                encoder_layer.feed_forward,
            ),
        ]:
            norm = around.norm if 1 in parts else lambda y: y
            read = norm(x) if order else x
            said = sublayer(read)
            total = x + said if 0 in parts else said
            x = total if order else norm(total)
            steps = [[name, said], ["add", total]]
            rows += (
                [["norm", read], *steps] if order else [*steps, ["norm", x]]
            )
        if 0 in parts and 1 in parts and not order:
            assert book["torch"].allclose(x, encoder_layer(start, mask))
    shown, sizes = {}, []
    for r, (name, vectors) in enumerate(rows):
        hello = vectors[0, 1].detach()
        sizes.append(f"{hello.square().mean().sqrt():.2f}")
        shown |= {f"step-{r}": name, f"size-{r}": sizes[-1]}
        for c, number in enumerate(hello[:6]):
            text = f"{number:.1f}".replace("-0.0", "0.0").replace("-", "−")
            shown[f"way-{r}-{c}"] = text
    alike = book["lowest_similarity"](x[0, :4].detach().numpy())
    said = f"Layer {layer}: RMS {sizes[0]} goes in and {sizes[-1]} comes out."
    return f"{said} Lowest similarity of the tokens: {alike:.2f}.", shown


def write(book, step, position):
    model, source = book["model"], book["source_ids"][:1]
    ids = book["written_ids"][:1, :step]
    past, memory = book["looks"](model, source, ids)
    logits = model(source, ids)[0]
    words = [book["vocabulary"][i].strip("<>") for i in ids[0]]
    parts = {}
    tokens = ["say", "hello", "to", "world", "pad", "pad"]
    for s, token in enumerate(tokens):
        parts |= {
            f"source-{s}": token,
            f"memory-{s}": f"{memory[position, s]:.2f}",
        }
    for s in range(8):
        parts[f"written-{s}"] = words[s] if s < step else ""
        parts[f"past-{s}"] = (
            f"{past[position, s]:.2f}" if s <= position else ""
        )
    says = book["vocabulary"][logits[position].argmax()].strip("<>")
    return book["step_words"](step, position, words, says), parts


def learn(book, step):
    at = step // 10
    shares, losses = book["stored_maps"][at], book["stored_losses"]
    looks = [row.index(max(row)) for row in shares]
    right = sum(look == 7 - place for place, look in enumerate(looks))
    said = f"Step {step}: the loss is {losses[2 * at]:.2f}, and {right} of 8 "
    parts = {
        f"look-{r}-{c}": str(share)
        for r, row in enumerate(shares)
        for c, share in enumerate(row)
    }
    parts["dot"] = f"M{20 + 1.5 * step} {110 - 30 * losses[2 * at]:.1f}h0"
    return f"{said}rows look most at their letter.", parts


def matrix(book, may, order, missed):
    groups = [*book["GROUPS"].values()]
    used = {check for group in may for check in groups[group]}
    signs = {"passed": ".", "not asked": "", "failed": "x", "error": "x"}
    verdicts = {
        bug: {check: signs[report[check].status] for check in sum(groups, [])}
        for bug, report in book["reports"].items()
    }
    found = {
        bug: any(row[check] == "x" for check in used)
        for bug, row in verdicts.items()
    }
    parts = {"heads": "bug" + "".join(sum(groups, []))} | {
        f"bug-{r}": bug + "".join(verdicts[bug].values())
        for r, bug in enumerate(book["BUGS"])
        if not (missed and found[bug])
    }
    said = f"Checks: {len(used)}. "
    return f"{said}Bugs seen: {sum(found.values())} of {len(found)}.", parts


def work(book, date, language, step):
    row = book["work_data"][date][language]
    parts = {f"source-{s}": token for s, token in enumerate(row["source"])}
    for t, token in enumerate(row["target"]):
        parts[f"written-{t}"] = token if t <= step else ""
    day = book["STORED_DATES"][date].isoformat()
    assert "".join(row["target"]) == f"{day}end"
    assert all(95 < sum(looks) < 105 for looks in row["weights"])
    return row["said"][step], parts


def cache(book, step, cache):
    x, layer = book["x"][0][:1, :step], book["layers"][0]
    sizes = [1] * step if cache == 0 else [step]
    kept = None
    for new in x.split(sizes, dim=1):
        first = kept[0].shape[2] if kept else 0
        output, kept = book["attend_cached"](new, layer, 6, kept)
    rows, columns = output.shape[1], kept[0].shape[2]
    said = f"Step {step}: keys and values computed: {rows}, "
    said += f"read from a cache: {first}; weights computed: {rows * columns}."
    parts = {"kept": "keys, values"}
    for t, token in enumerate("Life is short eat dessert first".split()):
        parts |= {f"key-{t}": token, f"weight-{t}": f"query {token}"}
        computed = "new" if t == step - 1 else "again"
        known = "kept" if t < first else computed
        parts[f"kept-{t}"] = known if t < columns else ""
        for s in range(6):
            shown = first <= t < first + rows and s < columns
            known = "new" if step - 1 in (s, t) else "again"
            parts[f"weight-{t}-{s}"] = known if shown else ""
    return said, parts


def tiles(book, read, size, right, averaged):
    z, v = np.array(book["moving_scores"]), np.array(book["moving_values"])
    every = np.split(np.arange(6), range(size + 1, 6, size + 1))
    read = min(read, len(every))
    seen = every[::-1][:read] if right else every[:read]
    weights = np.zeros(6)
    for keys in (
        seen if averaged else [np.concatenate([[], *seen]).astype(int)]
    ):
        parts = np.exp(z[keys])
        weights[keys] = parts / max(parts.sum(), 1e-9)
    weights /= max(len(seen), 1) if averaged else 1
    keys = np.concatenate([[], *seen]).astype(int)
    parts = np.exp(z[keys])
    true = parts @ v[keys] / parts.sum() if read else 0
    total = f"{np.log(parts.sum()):.2f}" if read else "−∞"
    texts = [total, f"{weights @ v:.2f}", total, f"{true:.2f}"]
    texts = [x.replace("-", "−").replace("−0.00", "0.00") for x in texts]
    parts = {f"number-{i}": text for i, text in enumerate(texts)}
    for s, weight in enumerate(weights):
        parts[f"weight-{s}"] = f"{weight:.2f}" if s in keys else ""
    said = f"Tiles read: {read} of {len(every)}. What is carried is "
    said += "" if texts[1] == texts[3] else "not "
    return f"{said}the output of the keys read.", parts


def rotary(book, query, key, pair):
    torch, turn = book["torch"], book["clock_turns"][pair]
    x = torch.zeros(2, 6)  # (T, D): one in the first column of the pair
    x[:, 2 * pair] = 1
    ends = book["rotary"](x, torch.tensor([query, key]))
    ends = ends[:, 2 * pair : 2 * pair + 2]
    parts = {
        name: f"M180 100L{180 + long * end[0]:.1f} {100 - long * end[1]:.1f}"
        for name, long, end in [("query", 88, ends[0]), ("key", 70, ends[1])]
    }
    apart = abs(query - key)
    score = f"{float(ends[0] @ ends[1]):.2f}".replace("-", "−")
    said = f"Distance {apart}, {turn:.3f} radians a step: the angle between is"
    return f"{said} {apart * turn:.2f}, and the score {score}.", parts


def sampling(book, temperature, k, p, least):
    logits = book["torch"].tensor(book["moving_logits"]).double()  # (N,)
    settings = dict(temperature=temperature, k=k, p=p, min_p=least)
    shares = book["filter_logits"](logits, **settings).softmax(-1)  # (N,)
    whole = (logits / temperature).softmax(-1)  # (N,)
    kept = shares[shares > 0]
    parts = {
        "all": book["sampling_bars"](whole.tolist(), 34, 0),
        "kept": book["sampling_bars"](kept.tolist(), 20, 7),
    }
    last = book["moving_tokens"][len(kept) - 1]
    end = f" to {last}" if len(kept) > 1 else " alone"
    return (
        f"Kept: {len(kept)} of 8, first{end}, with "
        f"{whole[: len(kept)].sum():.2f} of the probability; first is drawn "
        f"with {kept[0]:.2f}.",
        parts,
    )


def families(book, family):
    name = list(book["FAMILIES"])[family]
    config, plain = book["known"][name]["config"], book["llama"]
    frame = book["family_frame"](name, config, plain)
    start = book["family_frame"]("llama", plain, plain)
    assert start["said"].startswith("llama: 0 of 13")
    other = book["in_words"](config, plain).keys() - {"epsilon"}
    assert bool(other) == (frame["parts"] != start["parts"])
    heads = {f"head-{part}": part for part in frame["parts"]}
    return frame["said"], frame["parts"] | heads


def weighs(book, model, length):
    names = ["embed_tokens", "input_layernorm", "q_proj", "k_proj", "v_proj"]
    names += ["o_proj", "post_attention_layernorm", "gate_proj", "up_proj"]
    names += ["down_proj", "norm", "lm_head"]
    given = [*book["llamas"].values()][model]
    vocab_size, d, d_ff = given.vocab_size, given.d_model, given.d_ff
    layers, heads, few = given.num_layers, given.num_heads, given.key_heads
    k, tied = given.d_head, given.tied
    shapes = [(vocab_size, d), (d,), (heads * k, d), (few * k, d)]
    shapes += [(few * k, d), (d, heads * k), (d,), (d_ff, d), (d_ff, d)]
    shapes += [(d, d_ff), (d,), (vocab_size, d)]
    counts = [np.prod(shape) for shape in shapes]
    counts = [n * layers if 0 < i < 10 else n for i, n in enumerate(counts)]
    counts[-1] *= not tied
    parts = {}
    for i, name in enumerate(names):
        shape = " × ".join(map(str, shapes[i]))
        parts[f"name-{i}"] = name
        parts[f"shape-{i}"] = "tied" if counts[i] == 0 else shape
        parts[f"share-{i}"] = f"{counts[i] / sum(counts):.1%}"
    weights, token = 2 * sum(counts), 4 * layers * few * k
    said = book["weighs_words"](weights, token, 2**length)
    share = re.search(r"([\d.]+) % of the weights", said)[1]
    assert abs(float(share) - 100 * token * 2**length / weights) < 0.1
    return said, parts


SHOWN = [lookup, waves, clocks, attention, heads]
SHOWN += [masks, way, write, learn, matrix, work, cache, tiles, rotary, weighs]
SHOWN += [sampling, families]
SHOWS = {function.__name__: function for function in SHOWN}
ALL = [0, 1, 2, 3, 4, 5]
# A picture -> its chapter, and its states: what the controls say, in the order
# in which the function above takes it. The first state is that of the start.
PICTURES = {
    "lookup": ("embedding", [(8,), (0,), (11,)]),
    "waves": (
        "positional_encoding",
        [(16, 4, 5), (2, 1, 0), (32, 4, 31), (6, 5, 20)],
    ),
    "clocks": ("position_similarity", [(6, 6), (0, 2), (44, 64), (100, 128)]),
    "attention": ("attention", [(SENTENCE, 2), (SENTENCE, 5), ("WORLD", 0)]),
    "heads": (
        "multi_head_attention",
        [(n, to) for to in ([0, 1], [], [0], [1]) for n in (2, 0, 1, 3, 4)],
    ),
    "masks": (
        "masks",
        [([0, 1, 2, 3], [], 0), ([0, 1, 2, 3], [0], 0), ([1, 2], [1], 0)]
        + [([1, 2, 3], [0], fill) for fill in (0, 1, 2)],
    ),
    "way": (
        "encoder",
        [([0, 1], 0, 1), ([0, 1], 1, 6), ([1], 1, 3), ([0], 0, 6), ([], 1, 2)],
    ),
    "write": ("decoder", [(1, 0), (4, 3), (4, 1), (7, 1), (7, 6)]),
    "learn": ("training", [(0,), (90,), (200,), (10,)]),
    "rotary": ("rotary", [(5, 3, 0), (12, 10, 0), (20, 5, 1), (0, 40, 2)]),
    "cache": ("cache", [(1, 0), (4, 0), (4, 1), (6, 1), (6, 0)]),
    "matrix": (
        "testing",
        [(ALL, 0, []), ([0, 2], 1, [0]), ([], 0, [0]), ([1, 3, 5], 0, [0])],
    ),
    "weighs": ("llama", [(1, 11), (1, 17), (0, 1), (3, 17), (2, 9)]),
    "work": ("practice", [(0, 8, 0), (1, 7, 2), (2, 0, 5), (0, 11, 3)]),
    "sampling": (
        "sampling",
        [
            (1, 8, 1, 0),
            (2, 8, 0.9, 0),
            (2, 8, 1, 0.1),
            (0.1, 8, 1, 0),
            (0.7, 5, 0.8, 0.3),
            (3, 2, 0, 1),
        ],
    ),
    "tiles": (
        "tiles",
        [(2, 1, 0, 0), (0, 0, 1, 0), (6, 2, 1, 0), (3, 1, 0, 1), (1, 0, 1, 1)],
    ),
    "families": ("families", [(8,), (0,), (14,), (16,), (19,)]),
}
EACH = [(name, chapter) for name, (chapter, _) in PICTURES.items()]


def states(name):
    """Return the states of a picture as dicts: control -> value."""
    _, *controls = signature(SHOWS[name]).parameters
    values = PICTURES[name][1]
    return [dict(zip(controls, state, strict=True)) for state in values]


class Figure:
    """A moving picture on a page."""

    def __init__(self, page, name):
        self.name, self.page = name, page
        self.root = page.locator(f"#{name}-figure")
        self.said = self.root.locator("[data-part=said]")

    def put(self, name, value):
        """Set a control: to a text, a number, or the places of its boxes."""
        inputs = self.root.locator(f"input[name={name}]")
        kind = inputs.first.get_attribute("type")
        if kind in ("text", "range"):
            return inputs.fill(str(value))
        labels = self.root.locator(f"label:has([name={name}])")
        if kind == "radio":
            return labels.nth(value).click()
        for i in range(inputs.count()):
            if inputs.nth(i).is_checked() != (i in value):
                labels.nth(i).click()

    def parts(self):
        """Return the text or the path of each part that is to be seen."""
        return self.root.evaluate(
            """root => {
            const image = root.querySelector("img");
            const drawn = image ? new DOMParser().parseFromString(
              decodeURIComponent(image.src.split("svg+xml,")[1]),
              "image/svg+xml").querySelectorAll("[data-part]") : [];
            const parts = {};
            for (const part of [...root.querySelectorAll("[data-part]"),
                                ...drawn])
              if (!part.hidden) parts[part.dataset.part] =
                part.getAttribute("d") ?? part.textContent;
            for (const other of ["said", "table", "axes"])
              delete parts[other];
            return parts; }"""
        )

    def assert_shows(self, said, parts):
        parts.pop("axes", None)
        expect(self.said).to_have_text(said)
        assert self.parts() == parts


def drive(figure, book, states):
    """Put a picture into states, offline, and compare what it then shows."""
    figure.page.context.set_offline(True)
    try:
        for state in states:
            for control, value in state.items():
                figure.put(control, value)
            figure.assert_shows(*SHOWS[figure.name](book, **state))
    finally:
        figure.page.context.set_offline(False)


@pytest.fixture
def outside(empty_page):
    """Return a function: name -> the Figure alone on a page, as in Colab."""

    def show(name):
        notebook = Notebook.read(BOOK / f"{PICTURES[name][0]}.ipynb")
        outputs = [out for cell in notebook.code for out in cell.outputs]
        texts = [out.get("data", {}).get("text/html", "") for out in outputs]
        (html,) = [text for text in texts if f'id="{name}-figure"' in text]
        empty_page.set_content(html)
        return Figure(empty_page, name)

    return show


@pytest.mark.parametrize(("name", "stem"), EACH)
def test_shows_the_numbers_of_the_chapter(outside, chapter, name, stem):
    drive(outside(name), chapter(stem), states(name))


# The size of the smallest letters, in pixels; those of a drawing are scaled.
SMALLEST = """root => Math.min(...[...root.querySelectorAll("*")]
    .filter(part => part.checkVisibility() && [...part.childNodes].some(
        node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
    .filter(part => !part.matches("style, script"))
    .map(part => parseFloat(getComputedStyle(part).fontSize)
        * (part.closest("svg")?.getScreenCTM().a ?? 1)))"""


KEYS = {"text": "x", "range": "ArrowRight", "radio": "ArrowDown"}


@pytest.mark.parametrize("name", PICTURES)
def test_each_control_is_reached_and_moved_by_keyboard(outside, name):
    figure = outside(name)
    press, controls = figure.page.keyboard.press, {}
    state = "e => [e.name, e.type, e.value, e.checked]"
    figure.root.locator("input").first.focus()
    while (at := figure.page.locator("input:focus")).count():
        control, kind, *before = at.evaluate(state)
        press(KEYS.get(kind, "Space"))
        now = figure.page.locator("input:focus").evaluate(state)[2:]
        if now == before:  # a range that stands at its end
            press("ArrowLeft")
            now = figure.page.locator("input:focus").evaluate(state)[2:]
        controls[control] = now != before
        press("Tab")
    assert controls == dict.fromkeys(states(name)[0], True)


@pytest.mark.parametrize(("name", "stem"), EACH)
def test_works_on_the_site(visit, chapter, name, stem):
    # A long page answers slowly: some states are enough beside the above.
    page, book = visit(f"book/{stem}"), chapter(stem)
    unfold(page, True)
    load_pictures(page)
    figure, (start, second, *_) = Figure(page, name), states(name)
    expect(figure.said).to_have_attribute("aria-live", "polite")
    figure.assert_shows(*SHOWS[name](book, **start))
    drive(figure, book, [second])
    text = page.locator("article > section > p").last
    size = "e => getComputedStyle(e).fontSize"
    assert figure.said.evaluate(size) == text.evaluate(size)
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 800})
        figure.root.scroll_into_view_if_needed()
        wait_for_layout(page)
        fits = "root => root.scrollWidth <= root.clientWidth"
        assert figure.root.evaluate(fits)
    assert figure.root.evaluate(SMALLEST) >= 11


@pytest.mark.parametrize(("name", "stem"), EACH)
def test_stands_without_scripts(visit_without_scripts, chapter, name, stem):
    page = visit_without_scripts(f"book/{stem}")
    unfold(page)  # it may stand in a side road
    figure = Figure(page, name)
    assert figure.root.is_visible() and not figure.root.locator("form").count()
    pictures = figure.root.locator("img, table").all()
    assert pictures and all(picture.is_visible() for picture in pictures)
    figure.assert_shows(*SHOWS[name](chapter(stem), **states(name)[0]))


BAD = {
    " , ": "No tokens yet: type one to six",
    "life is constructor": "“constructor” has no vector here",
    "life is short is short is short": "7 tokens: at most six fit",
}


def test_bad_sentence_is_explained(outside, chapter):
    figure = outside("attention")
    box = figure.root.locator("input[name=sentence]")
    shown = attention(chapter("attention"), SENTENCE, 2)
    for sentence, says in BAD.items():
        figure.put("sentence", sentence)
        expect(figure.said).to_contain_text(says)
        expect(figure.said).to_contain_text("still shows the last sentence")
        expect(box).to_have_attribute("aria-invalid", "true")
        figure.put("sentence", SENTENCE)
        figure.assert_shows(*shown)
        expect(box).to_have_attribute("aria-invalid", "false")


def test_the_chosen_token_stays_chosen(outside, chapter):
    figure, book = outside("attention"), chapter("attention")
    for sentence, query in [
        ("sweet dessert is Short", 3),
        ("eat sweet dessert", 2),  # where it is gone, the last one
        ("short is life", 0),
    ]:
        figure.put("sentence", sentence)
        figure.assert_shows(*attention(book, sentence, query))


def test_speaks_once_when_the_hand_rests(outside):
    figure = outside("clocks")
    spoken = figure.said.evaluate(
        """async (said) => {
        const box = document.querySelector("#clocks-figure [name=offset]");
        let spoken = 0;
        new MutationObserver(() => spoken++).observe(said, {childList: true});
        for (let offset = 10; offset < 20; offset++) {
          box.value = offset;
          box.dispatchEvent(new Event("input", {bubbles: true}));
          await new Promise((done) => setTimeout(done, 20)); }
        await new Promise((done) => setTimeout(done, 600));
        return spoken; }"""
    )
    assert spoken == 1
