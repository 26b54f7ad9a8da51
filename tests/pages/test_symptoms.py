"""Paste the code of symptoms.md as a reader would, and ask it about models."""

import ast
import re
import subprocess
import sys

import numpy as np
import pytest

from tools.notebooks import Notebook
from tools.settings import BOOK, ROOT

pytestmark = [
    pytest.mark.xdist_group("frameworks"),
    pytest.mark.filterwarnings("ignore:.*nested"),  # are a prototype
]
PAGE = (BOOK / "symptoms.md").read_text("utf-8")
D = 12
IDS = np.array([[3, 4, 5, 6, 7], [8, 9, 4, 0, 0], [5, 3, 0, 0, 0]])
LEFT = IDS[:, ::-1].copy()
EMPTY = np.vstack([IDS, np.zeros((1, 5), int)])
FRAMEWORKS = ["pytorch", "tensorflow"]
CHECKS = "append_pads change_the_future take_one_out find_masked_rows".split()
# A model -> the check that has to say that it is wrong.
MISTAKES = {
    "no padding mask": "append_pads",
    "inverted padding mask": "append_pads",
    "no causal mask": "change_the_future",
    "causal mask off by one": "change_the_future",
    "inverted causal mask": "change_the_future",
    "sentences mixed": "take_one_out",
}


def blocks(first):
    """Return a dict: framework -> its block of code that begins so."""
    pattern = rf"(?s):sync: (\w+)\n\n```python\n({first}.*?)\n```"
    return dict(re.findall(pattern, PAGE))


@pytest.fixture(scope="module")
def pasted():
    """Return a dict: framework -> what its pasted code defines."""
    spaces = {framework: {} for framework in FRAMEWORKS}
    for framework, code in blocks("import").items():
        exec(code, spaces[framework])
    return spaces


@pytest.fixture(scope="module")
def ask(pasted):
    """Return a function: a check, framework, model, ids -> its sentence."""
    import torch

    def ask(check, framework, model, ids=IDS, **options):
        ids = torch.tensor(ids) if framework == "pytorch" else ids
        return pasted[framework][check](model, ids, **options)

    return ask


# Models. They end in a LayerNorm, through which the gradient of a sum would
# see nothing.


def masks(name, places, ids):
    """Return which places a model blocks, (T, T), and which pads, (B, T)."""
    later, pads = places > places[:, None], ids == 0
    return {
        "causal": (later, pads),
        "causal mask off by one": (places > places[:, None] + 1, pads),
        "inverted causal mask": (~later, pads),
        "no padding mask": (later & False, pads & False),
        "inverted padding mask": (later & False, ~pads),
    }.get(name, (later & False, pads))


def make_torch(name, dropout):
    """Return a Module, ids (B, T) -> (B, T, D)."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    mixed = name == "sentences mixed"
    options = {"batch_first": not mixed, "dropout": dropout}
    layer = nn.TransformerEncoderLayer(D, 2, 20, **options)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(10, D), nn.Embedding(20, D)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.norm = nn.LayerNorm(D)

        def forward(self, ids):
            places = torch.arange(ids.shape[1])
            x = self.embed(ids) + self.place(places)
            both = (None, None) if mixed else masks(name, places, ids)
            return self.norm(self.encoder(x, *both))

    return Model()


def make_keras(name, dropout):
    """Return a keras.Model, ids (B, T) -> (B, T, D)."""
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embed = layers.Embedding(10, D)
            self.place = layers.Embedding(20, D)
            self.attention = layers.MultiHeadAttention(2, 6, dropout=dropout)
            self.norm = layers.LayerNormalization()

        def call(self, ids, training=None):
            places = keras.ops.arange(ids.shape[1])
            x = self.embed(ids) + self.place(places)
            if name == "sentences mixed":
                x = keras.ops.cumsum(x, 0)
            later, pads = masks(name, places, ids)
            options = {"attention_mask": ~(later | pads[:, None])}
            x = x + self.attention(x, x, training=training, **options)
            return self.norm(x)

    return Model()


def make(framework, name, dropout=0.0):
    """Return a model of a framework, with the mistake that is its name."""
    kind = make_torch if framework == "pytorch" else make_keras
    return kind(name, dropout)


def by_hand(framework, hides):
    """Return a function, ids (B, T) -> (B, T, 4), without any layer.

    hides: a function, ids -> the keys that are masked, (B, 1 or T, T).
    """
    import keras
    import torch

    table = torch.arange(10.0)[:, None].sin() * torch.arange(1, 5)

    def model(ids):
        ids = torch.tensor(keras.ops.convert_to_numpy(ids))
        x = table[ids]  # (B, T, 4)
        scores = x @ x.mT / 30  # so that every weight is felt
        scores = scores.masked_fill(hides(ids), -torch.inf)
        output = x + scores.softmax(-1) @ x
        return keras.ops.array(output) if framework == "tensorflow" else output

    return model


# What the pasted functions say


def assert_fine(ask, framework, model, causal=True, **options):
    """Of all checks, none may complain; the future is a causal model's."""
    said = {name: ask(name, framework, model, **options) for name in CHECKS}
    wrong = [name for name in CHECKS if not said[name].startswith("Fine: ")]
    assert wrong == ([] if causal else ["change_the_future"]), said


@pytest.mark.parametrize("name", ["bidirectional", "causal"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_models_without_a_mistake_are_fine(ask, framework, name):
    causal, model = name == "causal", make(framework, name, dropout=0.1)
    for called in (model, model.__call__):  # a layer, a function
        assert_fine(ask, framework, called, causal)
    model = make(framework, name)
    assert_fine(ask, framework, model, causal, training=True)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("mistake", "check"), MISTAKES.items())
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_models_with_a_mistake_are_wrong(
    ask, framework, mistake, check, training
):
    model = make(framework, mistake)
    said = ask(check, framework, model, training=training)
    assert said.startswith("Wrong: "), said


@pytest.mark.parametrize("training", [True, False])
def test_modules_get_their_own_modes_back(ask, training):
    model = make("pytorch", "causal", dropout=0.1)
    model.train(training).norm.eval()
    assert_fine(ask, "pytorch", model)
    modes = {name: part.training for name, part in model.named_modules()}
    assert not modes.pop("norm") and {*modes.values()} == {training}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_words_that_attend_to_pads_alone_are_found(ask, framework):
    """All pads are alike here, so one more changes no mean of theirs."""
    model = by_hand(framework, lambda ids: (ids != 0)[:, None])
    said = ask("append_pads", framework, model, IDS[1:])
    assert said.startswith("Wrong: pads change nothing, and words"), said


@pytest.mark.parametrize("row", range(len(IDS)))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_sentence_is_taken_out(ask, framework, row):
    def hides(ids):
        keys = (ids == 0)[:, None]
        if len(ids) > 1:
            keys[row, :, 0] = True
        return keys

    said = ask("take_one_out", framework, by_hand(framework, hides))
    assert said.startswith(f"Wrong: sentence {row} taken out"), said


@pytest.mark.parametrize("place", range(1, 5))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_place_is_asked_for_its_past(ask, framework, place):
    def hides(ids):
        later = ids.new_ones(5, 5).triu(1).bool()
        later[place - 1, place] = False
        return later

    said = ask("change_the_future", framework, by_hand(framework, hides))
    assert said.startswith(f"Wrong: other words from place {place} on"), said


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_mask_that_is_kept_and_spoiled_is_found(ask, framework):
    kept = np.zeros(5, bool)

    def hides(ids):
        kept[(ids == 0).any(0)] = True
        return ids.new_tensor(kept).bool()

    said = ask("take_one_out", framework, by_hand(framework, hides))
    assert said.startswith("Wrong: sentence 0 taken out"), said


@pytest.mark.parametrize(
    ("dtype", "digits"),
    [("float64", 52), ("float32", 23), ("float16", 10), ("bfloat16", 7)],
)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_change_counts_above_the_root_of_epsilon(
    pasted, framework, dtype, digits
):
    """It is a share of the largest output among those that are compared."""
    import torch

    def array(numbers, dtype=dtype):
        if framework == "pytorch":
            return torch.tensor(numbers, dtype=getattr(torch, dtype))
        return np.array(numbers, dtype)

    moved, limit = pasted[framework]["moved"], 4 * 2 ** (-digits / 2)
    before = array([[[4.0], [1.0], [100.0]]])
    where = array([[True, True, False]], "bool")
    for change, tolerance, counts in [
        (0.9 * limit, None, False),
        (1.1 * limit, None, True),
        (np.nan, None, True),
        (1.0, 0.3, False),
        (1.0, 0.2, True),
    ]:
        after = array([[[4.0], [1.0 + change], [0.0]]])
        said = moved(before, after, where, tolerance)
        assert said.startswith("sentence 0, place 1, by") == counts, said
        assert not moved(before, after, where & False)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_half_precision_has_its_own_tolerance(ask, framework):
    """Sums in another order differ more there, and a leak still shows."""
    import keras

    def half(name):
        if framework == "pytorch":
            return make(framework, name).bfloat16()
        keras.config.set_dtype_policy("bfloat16")
        try:
            return make(framework, name)
        finally:
            keras.config.set_dtype_policy("float32")

    assert_fine(ask, framework, half("causal"))
    leak = half("causal mask off by one")
    assert ask("change_the_future", framework, leak).startswith("Wrong: ")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_cannot_be_tested_is_said(ask, framework):
    model = make(framework, "bidirectional", dropout=0.1)
    said = ask("take_one_out", framework, model, IDS[:1])
    assert said == "Not tested: give two sentences or more."
    said = ask("change_the_future", framework, lambda ids: 0.0 * model(ids))
    assert said == "Not tested: other words do not change any output."
    for check in CHECKS[:3]:
        with pytest.raises(ValueError, match="two different words"):
            ask(check, framework, model, np.array([[3, 3, 0], [3, 0, 0]]))
    for check in CHECKS:
        with pytest.raises(ValueError, match=r"should be \(B, T, \.\.\.\)"):
            ask(check, framework, lambda ids: model(ids)[:, 0])
        with pytest.raises(ValueError, match="two calls give two outputs"):
            ask(check, framework, model, training=True)


LATE, NO_WORD = " Sentences [1, 2] begin with pads", " Sentences [3] have no"
NAN, FAST = "Wrong: NaN at {} places", ", but only without gradients. The fast"


@pytest.mark.parametrize(
    ("framework", "name", "ids", "begins", "cause"),
    [
        ("pytorch", "causal", LEFT, NAN.format(10) + FAST, LATE),
        ("pytorch", "bidirectional", EMPTY, NAN.format(5) + FAST, NO_WORD),
        ("pytorch", "by hand", LEFT, NAN.format(5) + ". Sent", LATE),
        ("pytorch", "by hand", EMPTY, NAN.format(5) + ". Sent", NO_WORD),
        ("pytorch", "inverted", IDS, NAN.format(5) + ". Every sentence", ""),
        ("tensorflow", "causal", LEFT, "Careful: no NaN", LATE),
        ("tensorflow", "by hand", EMPTY, NAN.format(5) + ". Sent", NO_WORD),
        ("tensorflow", "inverted", IDS, NAN.format(5) + ". Every", ""),
    ],
)
def test_rows_that_are_fully_masked_are_found(
    ask, framework, name, ids, begins, cause
):
    def hides(ids):
        later, pads = ids.new_ones(5, 5).triu(1).bool(), (ids == 0)[:, None]
        return pads | (later.mT if name == "inverted" else later)

    hand = name in ("by hand", "inverted")
    model = by_hand(framework, hides) if hand else make(framework, name)
    said = ask("find_masked_rows", framework, model, ids)
    assert said.startswith(begins) and cause in said, said


# The whole kit


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_kit_is_that_of_the_chapter(framework):
    """One name, one body: what is pasted is what the chapter has run."""
    cells = Notebook.read(BOOK / "testing.ipynb").code
    chapter = "\n".join(cell.source for cell in cells)
    chapter += "".join(p.read_text() for p in ROOT.glob("cellbycell/*/*.py"))
    code = blocks("# The kit ")[framework]
    imports = ast.Import, ast.ImportFrom
    body = [n for n in ast.parse(code).body if not isinstance(n, imports)]
    assert len(body) > 30
    for node in body:
        text = ast.get_source_segment(code, node)
        assert text in chapter, text
    # Its imports are all that it needs, and no more.
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F"]
    subprocess.run([*ruff, "-"], input=code, text=True, check=True)


def make_translator(memory_is_masked, num_layers, shared):
    """Return a Module of source and target ids, without dropout."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    sizes, places = (D, 3, 20, 0.0), torch.randn(20, D)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(13, D)
            self.linear = nn.Linear(D, 13, bias=False)
            nn.init.normal_(self.table.weight, std=0.2)
            if shared:
                self.linear.weight = self.table.weight
            layer = nn.TransformerEncoderLayer(*sizes, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1)
            layer = nn.TransformerDecoderLayer(*sizes, batch_first=True)
            self.decoder = nn.TransformerDecoder(layer, num_layers)

        def forward(self, source, inputs):
            pads, length = source == 0, inputs.shape[1]
            source = self.table(source) + places[: source.shape[1]]
            output = self.decoder(
                self.table(inputs) + places[:length],
                self.encoder(source, src_key_padding_mask=pads),
                tgt_mask=torch.ones(length, length).triu(1).bool(),
                memory_key_padding_mask=pads if memory_is_masked else None,
            )
            return self.linear(output)

    return Model()


@pytest.mark.parametrize(
    ("memory_is_masked", "num_layers", "shared", "failing"),
    [
        (True, 1, False, []),
        (False, 1, False, ["pads"]),
        (True, 2, False, ["layers"]),
        (True, 1, True, ["causal"]),
    ],
)
def test_the_call_of_the_kit_fails_what_the_page_says(
    memory_is_masked, num_layers, shared, failing
):
    import torch

    space = {"vocab_size": 13}
    exec(blocks("# The kit ")["pytorch"], space)
    space["model"] = make_translator(memory_is_masked, num_layers, shared)
    space["source_ids"] = torch.tensor([[7, 3, 5, 0, 0], [7, 6, 4, 3, 5]])
    space["whole_ids"] = torch.tensor(
        [[1, 10, 8, 12, 2, 0, 0], [1, 10, 8, 9, 11, 12, 2]]
    )
    call = re.search(r"```python\n(p = Probe\(.*?)run_kit", PAGE, re.S)[1]
    exec(call, space)
    found = space["run_kit"](space["p"], space["kit"])
    assert [name for name, passed in found.items() if not passed] == failing
