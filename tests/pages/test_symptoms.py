"""Paste the code of symptoms.md as a reader would, and ask it about models.

Each model is asked with each mistake and without, and ends in a LayerNorm,
through which the gradient of a sum would see nothing.
"""

import ast
import re
import warnings
from itertools import product

import numpy as np
import pytest

from tools.notebooks import Notebook
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")

D = 12
IDS = [[3, 4, 5, 6, 7], [8, 9, 4, 0, 0], [5, 3, 0, 0, 0]]
LEFT = [row[::-1] for row in IDS]
CHECKS = [
    "append_pads",
    "change_the_future",
    "take_one_out",
    "find_masked_rows",
]
# A mistake -> the check that has to say that it is wrong.
MISTAKES = {
    "no padding mask": "append_pads",
    "inverted padding mask": "append_pads",
    "no causal mask": "change_the_future",
    "causal mask off by one": "change_the_future",
    "inverted causal mask": "change_the_future",
    "sentences mixed": "take_one_out",
}


def page():
    return (BOOK / "symptoms.md").read_text("utf-8")


def blocks():
    """Return a dict: framework -> the code that is to be pasted."""
    found = re.findall(
        r":sync: (\w+)\n\n```python\n(import .*?)\n```", page(), re.S
    )
    return dict(found)


@pytest.fixture(scope="module")
def pasted():
    """Return a function: framework -> what its pasted code defines."""
    spaces = {}
    for framework, code in blocks().items():
        exec(code, spaces.setdefault(framework, {}))
    return spaces.get


@pytest.fixture(scope="module")
def ours():
    """What the chapter on multi-head attention imports and defines."""
    kinds = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef
    space = {}
    for cell in Notebook.read(BOOK / "multi_head_attention.ipynb").code:
        body = [n for n in ast.parse(cell.source).body if isinstance(n, kinds)]
        exec(compile(ast.Module(body, []), "chapter", "exec"), space)
    return space


# Models: an embedding with positions, what attends, and a LayerNorm.


def masks(mistake, places, token_ids):
    """Return which places a model blocks, (T, T), and which pads, (B, T).

    A model without a mistake, or with one in the padding, sees the future.
    """
    shift = 1 if mistake == "causal mask off by one" else 0
    future, pads = places > places[:, None] + shift, token_ids == 0
    if "causal" not in mistake or mistake == "no causal mask":
        future = places != places
        future = future & future[:, None]
    if mistake == "inverted causal mask":
        future = ~future
    if mistake == "no padding mask":
        pads = token_ids != token_ids
    if mistake == "inverted padding mask":
        pads = ~pads
    return future, pads


def torch_attention(kind, ours, batch_first, dropout):
    """Return what attends, and a function that calls it with its masks."""
    from torch import nn

    options = {"batch_first": batch_first, "dropout": dropout}
    if kind == "nn.MultiheadAttention":
        layer = nn.MultiheadAttention(D, 2, **options)
        return layer, lambda x, future, pads: layer(
            x, x, x, attn_mask=future, key_padding_mask=pads
        )[0]
    if kind == "ours":
        layer = ours["MultiHeadAttention"](D, 2, dropout)
        return layer, lambda x, future, pads: layer(
            x, x, x, ~(future | pads[:, None])
        )
    layer = nn.TransformerEncoderLayer(D, 2, 20, **options)
    if kind == "nn.TransformerEncoderLayer":
        return layer, lambda x, future, pads: layer(
            x, src_mask=future, src_key_padding_mask=pads
        )
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=batch_first)
    return encoder, lambda x, future, pads: encoder(
        x, mask=future, src_key_padding_mask=pads
    )


TORCH = [
    "nn.TransformerEncoder",
    "nn.TransformerEncoderLayer",
    "nn.MultiheadAttention",
    "ours",
]


def make_torch(ours, kind, mistake="", dropout=0.1):
    """Return a Module, token_ids (B, T) -> (B, T, D), with a mistake."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    mixed = mistake == "sentences mixed"
    layer, attend = torch_attention(kind, ours, not mixed, dropout)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(10, D), nn.Embedding(20, D)
            self.layer, self.norm = layer, nn.LayerNorm(D)

        def forward(self, token_ids):
            places = torch.arange(token_ids.shape[1])
            x = self.embed(token_ids) + self.place(places)
            if mixed and kind == "ours":
                x = x.cumsum(0)
            unmasked = mixed and kind != "ours"
            both = masks(mistake, places, token_ids)
            return self.norm(attend(x, *[None, None] if unmasked else both))

    return Model()


KERAS = ["keras.layers.MultiHeadAttention", "ours", "mask_zero"]


def make_keras(ours, kind, mistake="", dropout=0.1):
    """Return a keras.Model, token_ids (B, T) -> (B, T, D), with a mistake."""
    import keras

    keras.utils.set_random_seed(0)
    layers, implicit = keras.layers, kind == "mask_zero"
    if kind == "ours":
        layer = ours["MultiHeadAttentionTF"](D, 2, dropout)
    else:
        layer = layers.MultiHeadAttention(2, D // 2, dropout=dropout)

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            zero = implicit and mistake != "no padding mask"
            self.embed = layers.Embedding(10, D, mask_zero=zero)
            self.place, self.layer = layers.Embedding(20, D), layer
            self.norm = layers.LayerNormalization()

        def call(self, token_ids, training=None):
            places = keras.ops.arange(token_ids.shape[1])
            x = self.embed(token_ids)
            if mistake == "sentences mixed":
                x = keras.ops.cumsum(x, 0)
            if implicit:
                causal = mistake == "right causal mask"
                return self.norm(
                    layer(x, x, use_causal_mask=causal, training=training)
                )
            x = x + self.place(places)
            future, pads = masks(mistake, places, token_ids)
            mask = ~(future | pads[:, None])
            given = (x, x, x) if kind == "ours" else (x, x)
            x = layer(*given, attention_mask=mask, training=training)
            return self.norm(x)

    return Model()


# What the pasted functions say


def ask(functions, model, token_ids, **options):
    """Return a dict: check -> the sentence that it returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        return {
            check: functions[check](model, token_ids, **options)
            for check in CHECKS
        }


def assert_fine(said, causal=False):
    """Of all checks, none may complain; the future is a causal model's."""
    wrong = {
        check: sentence
        for check, sentence in said.items()
        if not sentence.startswith("Fine: ")
    }
    assert set(wrong) == (set() if causal else {"change_the_future"}), wrong


RIGHT = {"": False, "right causal mask": True}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("kind", TORCH)
def test_torch_models_without_a_mistake_are_fine(pasted, ours, kind, name):
    import torch

    causal, token_ids = RIGHT[name], torch.tensor(IDS)
    model = make_torch(ours, kind, name)
    for training in (True, False):
        model.train(training)
        model.norm.eval()
        for called in (model, model.__call__):  # a Module, a function
            assert_fine(ask(pasted("pytorch"), called, token_ids), causal)
        modes = {part: m.training for part, m in model.named_modules()}
        assert not modes.pop("norm") and {*modes.values()} == {training}
    model = make_torch(ours, kind, name, dropout=0.0)
    said = ask(pasted("pytorch"), model, token_ids, training=True)
    assert_fine(said, causal)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("kind", TORCH)
def test_torch_models_with_a_mistake_are_wrong(pasted, ours, kind, mistake):
    import torch

    check = pasted("pytorch")[MISTAKES[mistake]]
    for training in (True, False):
        model = make_torch(ours, kind, mistake, dropout=0.0).train(training)
        for options in ({}, {"training": True}):
            said = check(model, torch.tensor(IDS), **options)
            assert said.startswith("Wrong: "), said


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("kind", KERAS)
def test_keras_models_without_a_mistake_are_fine(pasted, ours, kind, name):
    model, causal = make_keras(ours, kind, name), RIGHT[name]
    for called in (model, model.__call__):  # a Layer, a function
        assert_fine(ask(pasted("tensorflow"), called, IDS), causal)
    model = make_keras(ours, kind, name, dropout=0.0)
    said = ask(pasted("tensorflow"), model, IDS, training=True)
    assert_fine(said, causal)


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [
        *product(KERAS[:2], MISTAKES),
        *product(KERAS[2:], ["no padding mask", "no causal mask"]),
    ],
)
def test_keras_models_with_a_mistake_are_wrong(pasted, ours, kind, mistake):
    model = make_keras(ours, kind, mistake, dropout=0.0)
    for training in (True, False):
        said = pasted("tensorflow")[MISTAKES[mistake]](
            model, IDS, training=training
        )
        assert said.startswith("Wrong: "), said


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_words_that_attend_to_pads_alone_are_found(pasted, framework):
    """All pads are alike here, so one more changes no mean of theirs."""
    import keras
    import torch

    table = torch.arange(10.0)[:, None].sin() * torch.arange(1, 5)

    def see_pads_alone(token_ids):
        token_ids = torch.tensor(np.array(token_ids))
        x, pads = table[token_ids], token_ids == 0
        scores = (x @ x.mT).masked_fill(~pads[:, None], -torch.inf)
        output = x + scores.softmax(-1) @ x
        return keras.ops.array(output) if framework == "tensorflow" else output

    said = pasted(framework)["append_pads"](
        see_pads_alone, torch.tensor(IDS[1:])
    )
    assert said.startswith("Wrong: pads change nothing, and words"), said


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_half_precision_has_its_own_tolerance(pasted, ours, framework):
    """Sums in another order differ more there, and a leak still shows."""
    import keras
    import torch

    def half(mistake):
        if framework == "pytorch":
            return make_torch(ours, TORCH[0], mistake).bfloat16()
        keras.config.set_dtype_policy("bfloat16")
        try:
            return make_keras(ours, KERAS[0], mistake)
        finally:
            keras.config.set_dtype_policy("float32")

    token_ids = torch.tensor(IDS)
    right, wrong = half("right causal mask"), half("causal mask off by one")
    assert_fine(ask(pasted(framework), right, token_ids), causal=True)
    said = pasted(framework)["change_the_future"](wrong, token_ids)
    assert said.startswith("Wrong: "), said


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_what_cannot_be_tested_is_said(pasted, ours, framework):
    import torch

    functions = pasted(framework)
    make = make_torch if framework == "pytorch" else make_keras
    model = make(ours, "ours")
    alone = torch.tensor(IDS[:1])
    said = functions["take_one_out"](model, alone)
    assert said == "Not tested: give two sentences or more."
    said = functions["change_the_future"](lambda ids: 0.0 * model(ids), alone)
    assert said == "Not tested: other words do not change any output."
    for check in CHECKS[:3]:
        with pytest.raises(ValueError, match="two different words"):
            functions[check](model, torch.tensor([[3, 3, 0], [4, 0, 0]]) // 4)
    for check in CHECKS:
        with pytest.raises(ValueError, match=r"should be \(B, T, \.\.\.\)"):
            functions[check](lambda ids: model(ids)[:, 0], torch.tensor(IDS))
        with pytest.raises(ValueError, match="two calls give two outputs"):
            functions[check](model, torch.tensor(IDS), training=True)


# The whole kit


def kits():
    """Return a dict: framework -> the code of the kit on the page."""
    found = re.findall(
        r":sync: (\w+)\n\n```python\n(# The kit .*?)\n```", page(), re.S
    )
    return dict(found)


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_the_kit_is_that_of_the_chapter(framework):
    """One name, one body: what is pasted is what the chapter has run."""
    cells = Notebook.read(BOOK / "testing.ipynb").code
    chapter = "\n".join(cell.source for cell in cells)
    body = [
        node
        for node in ast.parse(kits()[framework]).body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert len(body) > 30
    for node in body:
        text = ast.get_source_segment(kits()[framework], node)
        assert text in chapter, text


def test_the_kit_may_ask_a_language_model(ours):
    """A language model around our attention, asked as the page asks."""
    import torch

    space = {}
    exec(kits()["pytorch"], space)
    torch.manual_seed(0)
    model = make_torch(ours, "ours", "right causal mask", dropout=0.0)
    ids = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 4, 2, 0]]).numpy()
    p = space["Probe"](model, ids, vocab_size=D)
    kit = {n: space["KIT"][n] for n in ("shape", "future", "steps", "alone")}
    assert all(space["run_kit"](p, kit).values())
    model = make_torch(ours, "ours", "no causal mask", dropout=0.0)
    p = space["Probe"](model, ids, vocab_size=D)
    found = space["run_kit"](p, kit)
    assert found == dict(shape=True, future=False, steps=False, alone=True)


def make_translator(framework, memory_is_masked):
    """Return a new model of source and target ids, without dropout."""
    import keras
    import torch
    from torch import nn

    torch.manual_seed(0)
    keras.utils.set_random_seed(0)
    places = np.random.default_rng(0).normal(size=(20, D)).astype("float32")

    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear = nn.Embedding(13, D), nn.Linear(D, 13)
            self.body = nn.Transformer(D, 3, 1, 1, 20, 0.0, batch_first=True)

        def forward(self, source, inputs):
            pads, length = source == 0, inputs.shape[1]
            both = (
                self.table(ids) + torch.tensor(places[: ids.shape[1]])
                for ids in (source, inputs)
            )
            output = self.body(
                *both,
                tgt_mask=torch.ones(length, length).triu(1).bool(),
                src_key_padding_mask=pads,
                memory_key_padding_mask=pads if memory_is_masked else None,
            )
            return self.linear(output)

    class Keras(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = keras.layers.Embedding(13, D)
            self.within = keras.layers.MultiHeadAttention(3, 4)
            self.across = keras.layers.MultiHeadAttention(3, 4)
            self.linear = keras.layers.Dense(13)

        def call(self, source, inputs):
            memory, x = (
                self.table(ids) + places[: ids.shape[1]]
                for ids in (source, inputs)
            )
            mask = (source != 0)[:, None] if memory_is_masked else None
            x = x + self.within(x, x, use_causal_mask=True)
            return self.linear(x + self.across(x, memory, attention_mask=mask))

    return Torch() if framework == "pytorch" else Keras()


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_the_call_of_the_kit_works_as_it_stands(framework):
    """With tensors, with a model that has no weights before its first call."""
    import keras
    import torch

    call = re.search(r"```python\n(p = Probe\(.*?)run_kit", page(), re.S)[1]
    space = {"vocab_size": 13}
    exec(kits()[framework], space)
    as_ids = keras.ops.convert_to_tensor
    if framework == "pytorch":
        as_ids = torch.tensor
    else:
        call = call.replace("Probe(", "ProbeTF(")
    first, second = [1, 10, 8, 12, 2, 0, 0], [1, 10, 8, 9, 11, 12, 2]
    space["source_ids"] = as_ids([[7, 3, 5, 0, 0], [7, 6, 4, 3, 5]])
    space["whole_ids"] = as_ids([first, second])
    for memory_is_masked in (True, False):
        space["model"] = make_translator(framework, memory_is_masked)
        exec(call, space)
        found = space["run_kit"](space["p"], space["kit"])
        failed = [name for name, passed in found.items() if not passed]
        assert failed == ([] if memory_is_masked else ["pads"])


@pytest.mark.parametrize(
    "num_layers, shared, failing",
    [(1, False, []), (2, False, ["layers"]), (1, True, ["causal"])],
)
def test_the_kit_fails_sound_models_where_the_page_says(
    num_layers, shared, failing
):
    import torch
    from torch import nn

    torch.manual_seed(0)
    table, linear = nn.Embedding(13, D), nn.Linear(D, 13, bias=False)
    nn.init.normal_(table.weight, std=0.2)
    if shared:
        linear.weight = table.weight
    layer = nn.TransformerEncoderLayer(D, 2, 20, 0.0, batch_first=True)
    places = torch.randn(20, D)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear = table, linear
            self.body = nn.TransformerEncoder(layer, num_layers)

        def forward(self, ids):
            length = ids.shape[1]
            mask = torch.ones(length, length).triu(1).bool()
            x = self.table(ids) + places[:length]
            return self.linear(self.body(x, mask, ids == 0))

    space = {}
    exec(kits()["pytorch"], space)
    ids = [[1, 10, 8, 12, 2, 0, 0], [1, 10, 8, 9, 11, 12, 2]]
    p = space["Probe"](Model(), ids, vocab_size=13)
    left_out = "count", "library", "source"
    kit = {n: c for n, c in space["KIT"].items() if n not in left_out}
    found = space["run_kit"](p, kit)
    assert [name for name, passed in found.items() if not passed] == failing


# Rows that are fully masked


def find_masked_rows(pasted, model, rows):
    """Return what the function of PyTorch's block says of a batch."""
    import torch

    return pasted("pytorch")["find_masked_rows"](model, torch.tensor(rows))


@pytest.mark.parametrize("kind", TORCH)
def test_padding_on_the_left_of_a_causal_model_is_found(pasted, ours, kind):
    model = make_torch(ours, kind, "right causal mask")
    said = find_masked_rows(pasted, model, LEFT)
    assert "Sentences [1, 2] begin with pads" in said
    fast = kind.startswith("nn.Transformer")
    assert ("but only without gradients" in said) == fast
    assert said.startswith("Wrong: NaN at ")


def test_an_empty_sentence_is_found(pasted, ours):
    rows = [*IDS, [0] * 5]
    for kind in TORCH:
        said = find_masked_rows(pasted, make_torch(ours, kind), rows)
        assert said.startswith("Wrong: NaN at 5 places"), said
        assert "Sentences [3] have no word" in said


def test_nan_without_a_blind_row_in_the_ids_is_the_mask_s(pasted, ours):
    model = make_torch(ours, "ours", "inverted causal mask")
    said = find_masked_rows(pasted, model, IDS)
    assert said.startswith("Wrong: NaN at 8 places. Every sentence begins")


def test_keras_finds_rows_that_are_fully_masked(pasted, ours):
    check = pasted("tensorflow")["find_masked_rows"]
    model = make_keras(ours, KERAS[0], "right causal mask")
    rows = [*LEFT, [0] * 5]
    said = check(model, rows)
    assert said.startswith("Careful: no NaN"), said
    assert "[1, 2] begin with pads" in said and "[3] have no word" in said
    said = check(make_keras(ours, "ours", "right causal mask"), rows)
    assert said.startswith("Wrong: NaN at 10 places. Sentences [3]"), said


# What the entries say of nn.TransformerEncoder and nn.MultiheadAttention


def snippets():
    """Return the short pieces of code on the page, each as one string."""
    return re.findall(r"(?ms)^```python\n(?!import)(.*?)\n```", page())


def snippet(part):
    """Return the only piece of code on the page with these words in it."""
    (found,) = [code for code in snippets() if part in code]
    return found


@pytest.fixture
def names():
    """What the pieces of code on the page take for given."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(D, 2, 20, 0.0, batch_first=True)
    embed = nn.Embedding(10, D)
    ids, pad_id = torch.tensor(IDS), 0
    places = torch.arange(ids.shape[1])
    key_mask, causal_mask = ids != pad_id, places <= places[:, None]
    return {
        "torch": torch,
        "encoder": nn.TransformerEncoder(layer, 2),
        "embed": embed,
        "layer": nn.MultiheadAttention(D, 2, batch_first=True),
        "ids": ids,
        "token_ids": ids,
        "pad_id": pad_id,
        "num_heads": 2,
        "x": embed(ids),
        "key_mask": key_mask,
        "causal_mask": causal_mask,
        "attention_mask": causal_mask & key_mask[:, None],
    }


def value(code, names):
    """Run code; return what its last line, an expression, gives."""
    *body, last = ast.parse(code).body
    exec(compile(ast.Module(body, []), "page", "exec"), names)
    return eval(compile(ast.Expression(last.value), "page", "eval"), names)


def test_the_call_of_all_functions_works_as_it_stands(pasted, names, capsys):
    exec(snippet("for ask in"), names | pasted("pytorch"))
    said = capsys.readouterr().out.splitlines()
    kinds = [sentence.partition(":")[0] for sentence in said]
    assert kinds == ["Fine", "Wrong", "Fine", "Fine"]


def test_converters_for_the_encoder_are_right(pasted, names):
    import torch

    outputs = [
        value(snippet(part), names)
        for part in ("~key_mask", "triu(1)", "~attention_mask")
    ]
    first = outputs[0][names["key_mask"]]
    for output in outputs:
        assert torch.allclose(output[names["key_mask"]], first, atol=1e-5)

    def model(ids):
        places = torch.arange(ids.shape[1])
        ours = {"causal_mask": places <= places[:, None]}
        ours |= {"key_mask": ids != 0, "x": names["embed"](ids)}
        return value(snippet("~key_mask"), names | ours)

    said = ask(pasted("pytorch"), model, names["ids"])
    assert_fine(said, causal=True)


def in_eval(encoder, *args, **masks):
    """Return the outputs of the fast path, then of the slow one."""
    import torch

    encoder.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        with torch.no_grad():
            fast = encoder(*args, **masks)
        return fast, encoder(*args, **masks)


def test_the_fast_path_gives_zeros_at_pads(names):
    import torch
    from torch import nn

    encoder, x, word = names["encoder"], names["x"], names["key_mask"]
    fast, slow = in_eval(encoder, x, src_key_padding_mask=~word)
    assert not fast[~word].any() and slow[~word].all()
    assert torch.allclose(fast[word], slow[word], atol=1e-5)
    assert not torch.allclose(fast.mean(1), slow.mean(1), atol=1e-2)
    plain = nn.TransformerEncoder(
        encoder.layers[0], 2, enable_nested_tensor=False
    )
    assert in_eval(plain, x, src_key_padding_mask=~word)[0][~word].all()


def test_nan_in_eval_only_comes_and_goes_as_the_page_says(names):
    import torch

    ids = names["ids"] = torch.tensor(LEFT)
    encoder, x = names["encoder"], names["embed"](ids)
    names |= {"x": x, "future": ~names["causal_mask"]}
    masks = {"mask": names["future"], "src_key_padding_mask": ids == 0}
    assert value(snippet(".all(dim=-1).any()"), names | masks)
    fast, slow = in_eval(encoder, x, **masks)
    assert fast.isnan().any() and not slow.isnan().any()
    assert (
        fast[1:].isnan().all()
        and not encoder.train()(x, **masks).isnan().any()
    )
    try:
        exec(snippet("set_fastpath_enabled"), names)
        assert not in_eval(encoder, x, **masks)[0].isnan().any()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    with torch.no_grad():
        output = value(snippet("torch.eye"), names)
    assert torch.allclose(output[ids != 0], slow[ids != 0], atol=1e-5)


def test_weights_are_a_mean_over_the_heads_unless_asked(names):
    import torch

    layer, x = names["layer"].eval(), names["x"]
    exec(snippet("average_attn_weights=False"), names)
    weights = names["weights"]
    assert weights.shape == (3, 2, 5, 5)  # (B, H, T, S)
    assert torch.allclose(layer(x, x, x)[1], weights.mean(1), atol=1e-6)


def test_epsilon_of_the_port_is_pytorch_s():
    import keras
    from torch import nn

    layer = value(snippet("LayerNormalization"), {"keras": keras})
    assert layer.epsilon == nn.LayerNorm(3).eps == 1e-5
    assert keras.layers.LayerNormalization().epsilon == 1e-3


def test_layers_have_the_arguments_and_defaults_that_the_page_names():
    from inspect import signature

    from torch import nn

    for make in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer):
        defaults = signature(make).parameters
        assert defaults["dropout"].default == 0.1
        assert not defaults["batch_first"].default
    calls = {
        nn.TransformerEncoder: ["mask", "src_key_padding_mask"],
        nn.TransformerEncoderLayer: ["src_mask", "src_key_padding_mask"],
        nn.MultiheadAttention: ["attn_mask", "key_padding_mask"],
        nn.TransformerDecoder: ["memory_mask", "memory_key_padding_mask"],
    }
    for layer, arguments in calls.items():
        for name in arguments:
            assert name in signature(layer.forward).parameters
            assert f"`{name}`" in page()


# Messages of the libraries


def torch_messages():
    """Return a list of calls, each of which raises or warns."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    x, ids = torch.zeros(3, 5, D), torch.zeros(3, 5, dtype=torch.long)
    future = torch.ones(5, 5).triu(1)
    layer = nn.TransformerEncoderLayer(D, 2, 20, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    mha = nn.MultiheadAttention(D, 2, batch_first=True)
    pads = torch.tensor(IDS) == 0

    @torch.no_grad()
    def fast():
        torch.set_warn_always(True)  # it would warn once in a process
        try:
            encoder.eval()(x, src_key_padding_mask=pads)
        finally:
            torch.set_warn_always(False)

    return [
        lambda: x.half().masked_fill(x == 0, -1e9),
        lambda: encoder(x, mask=future[:4, :4].bool()),
        lambda: encoder(x, mask=future.expand(3, 5, 5).bool()),
        lambda: encoder(x, src_key_padding_mask=pads.T),
        lambda: encoder(x, src_key_padding_mask=ids),
        lambda: mha(x, x, x, key_padding_mask=ids),
        lambda: mha(x, x, x, attn_mask=future.long()),
        lambda: encoder(x, is_causal=True),
        lambda: encoder(
            x,
            nn.Transformer.generate_square_subsequent_mask(5),
            src_key_padding_mask=pads,
        ),
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(D, 2, 20, norm_first=True), 2
        ),
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(D, 2, 20), 2),
        fast,
        lambda: F.scaled_dot_product_attention(x, x, x, future.long()),
        lambda: x.masked_fill(x, -1e9),
        lambda: ~x,
        lambda: x.transpose(1, 2).view(3, -1),
        lambda: F.embedding(ids + 20, torch.zeros(20, D)),
        lambda: nn.MultiheadAttention(D, 5),
        lambda: mha(x[..., :6], x[..., :6], x[..., :6]),
    ]


def keras_messages():
    """Return a list of calls, each of which raises or warns."""
    import keras
    import tensorflow as tf

    class Own(keras.layers.Layer):
        def call(self, x):
            return x

    x, mha = (
        np.zeros((3, 5, D), "float32"),
        keras.layers.MultiHeadAttention(2, 6),
    )
    mask, ids = np.ones((3, 5), bool), np.array([[20]])
    return [
        lambda: mha(x, x, attention_mask=mask),
        lambda: Own()(keras.layers.Embedding(20, D, mask_zero=True)(ids - 1)),
        lambda: tf.constant(mask) == 1,
        lambda: ~tf.constant(x),
        lambda: mha(x, x, True),
        lambda: keras.ops.dot_product_attention(x, x, x),
        lambda: keras.layers.Embedding(20, D)(ids),
    ]


def said_by(call):
    """Return the message of the error that a call raises, or its warnings'."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            return str(error)
    return "\n".join(str(warning.message) for warning in caught)


def messages(title):
    """Return the messages that a section of the page has, each literally."""
    section = page().partition(f"### {title}\n")[2]
    section = re.split(r"(?m)^##", section)[0]
    return re.findall(r"(?m)^`([^`]+)`\\$", section)


@pytest.mark.parametrize(
    ("title", "calls"),
    [
        ("Messages of PyTorch", torch_messages),
        ("Messages of Keras and TensorFlow", keras_messages),
    ],
)
def test_messages_are_literally_the_libraries(title, calls):
    said, listed = [*map(said_by, calls())], messages(title)
    strange = [m for m in listed if not any(m in text for text in said)]
    assert not strange, f"no call says {strange}; they say {said}"
    mute = [s for s in said if not any(m in s for m in listed)]
    assert not mute, f"the page has nothing of {mute}"
    assert len(listed) >= 7


def test_the_harmless_warning_names_batch_first_where_it_is_missing():
    (*_, said) = [
        text for text in map(said_by, torch_messages()) if "nested" in text
    ][:2]
    assert "batch_first was not True" in said
