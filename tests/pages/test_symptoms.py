"""The calls on the page of symptoms, and where each check leads to."""

import re

import pytest

from cellbycell.checks import CHECKS, check_model
from tools.notebooks import Notebook
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
PAGE = (BOOK / "symptoms.md").read_text("utf-8")
CALL, WITH_LOSS = re.findall(
    r"(?ms)^```python\n([^`]*check_model\(.*?)^```", PAGE
)
LEAK = {"causality", "causality_train", "causality_grad", "prefix_consistency"}


def model_of_the_chapter():
    """Return the first model of the chapter on testing, made anew."""
    import torch
    from torch import nn

    cells = Notebook.read(BOOK / "testing.ipynb").code
    (source,) = (c.source for c in cells if c.source.startswith("class GPT("))
    space = {"torch": torch, "nn": nn}
    exec(source, space)
    torch.manual_seed(0)
    return space["GPT"]()


def keras_model(causal):
    """Return a Keras model that predicts the next token, (B, T) -> logits."""
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embed = layers.Embedding(20, 12, mask_zero=True)
            self.place = layers.Embedding(20, 12)
            self.attention = layers.MultiHeadAttention(2, 6)
            self.linear = layers.Dense(20)

        def call(self, ids):
            x = self.embed(ids) + self.place(keras.ops.arange(ids.shape[1]))
            x = x + self.attention(x, x, use_causal_mask=causal)
            return self.linear(x)

    return Model()


def without_numbers(text):
    """Return a report without its decimals, which another machine rounds."""
    return re.sub(r"\d\.\de[+-]\d\d", "#", text)


def test_the_call_prints_the_report_of_the_page(capsys):
    (shown,) = re.findall(r"(?ms)^<pre>\n(.*?)^</pre>", PAGE)
    printed = re.sub(r"<[^>]+>", "", shown)
    exec(CALL, {"model": model_of_the_chapter()})
    said = capsys.readouterr().out
    assert without_numbers(said).startswith(without_numbers(printed))


@pytest.mark.parametrize("causal", [True, False])
def test_the_call_asks_a_keras_model(causal):
    space = {"model": keras_model(causal)}
    exec(CALL, space)
    # Keras loses the mask of pads at `+`, and only a causal mask hides them.
    wrong = set() if causal else LEAK | {"padding_invariance"}
    assert {*space["report"].failed} == wrong
    assert not space["report"].errors


@pytest.mark.parametrize("shift", [1, 0])
def test_the_call_with_a_loss_sees_targets_that_are_not_shifted(shift):
    import torch
    import torch.nn.functional as F
    from torch import nn

    class SumOfPast(nn.Module):
        """Read each token and the sum of those before it."""

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 12, padding_idx=0)
            self.linear = nn.Linear(12, 20)

        def forward(self, ids):
            return self.linear(self.table(ids).cumsum(1))

    rows = [[5, 8, 3, 9, 4, 7, 6, 2, 1], [9, 4, 7, 6, 1, 0, 0, 0, 0]]
    space = {
        "F": F,
        "check_model": check_model,
        "model": SumOfPast(),
        "token_ids": [row[:8] for row in rows],
        "targets": [[x or -100 for x in row[shift:][:8]] for row in rows],
    }
    torch.manual_seed(0)
    exec(WITH_LOSS, space)
    asked = {*space["report"].passed, *space["report"].failed}
    assert {
        "causality_grad",
        "target_alignment",
        "loss_padding_invariance",
    } <= asked
    assert ("target_alignment" in space["report"].failed) == (shift == 0)


def block(part):
    """Return the only block of Python on the page with these words."""
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE)
    (found,) = [code for code in blocks if part in code]
    return found


@pytest.fixture
def llama():
    """Return a small Llama of Transformers, and another that equals it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=2,
        intermediate_size=24,
        num_attention_heads=2,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    model, same = LlamaForCausalLM(config), LlamaForCausalLM(config)
    same.load_state_dict(model.state_dict())
    return model.eval(), same.eval()


def test_the_comparison_with_a_cache_sees_where_a_mistake_begins(
    llama, capsys
):
    import torch

    model, _ = llama
    space = {
        "torch": torch,
        "model": model,
        "ids": torch.tensor([[5, 8, 3, 9, 4, 7, 6]]),
    }

    def gaps():
        exec(block("past_key_values=past"), space)
        printed = re.sub(r"\s+", " ", capsys.readouterr().out)
        numbers = re.findall(r"tensor\(\[(.*?)\]\)", printed)
        return [[float(x) for x in row.split(",")] for row in numbers]

    assert all(max(row) < 1e-5 for row in gaps()) and len(gaps()) == 2

    class FromZero(torch.nn.Module):
        def forward(self, ids, **more):
            positions = torch.arange(ids.shape[1])[None]
            return model(ids, position_ids=positions, **more)

    space["model"] = FromZero()
    for row, first in zip(gaps(), (1, 3), strict=True):
        assert max(row[:first]) < 1e-5 < 1e-3 < row[first]


def test_the_first_module_that_differs_is_named(llama, capsys):
    import torch

    model, reference = llama
    with torch.no_grad():
        reference.model.layers[1].mlp.up_proj.weight.mul_(1.1)
    space = {
        "model": model,
        "reference": reference,
        "token_ids": [[5, 8, 3, 9, 4, 7], [9, 4, 7, 0, 0, 0]],
    }
    exec(block("where_it_differs(model, reference"), space)
    said = capsys.readouterr().out
    assert "layers.1.mlp.up_proj" in said


def test_a_mask_spoiled_by_an_earlier_call_escapes_the_check_of_calls():
    import torch

    class Spoiled(torch.nn.Module):
        """A mean over tokens by a cached mask, which each call edits."""

        def __init__(self):
            super().__init__()
            self.table, self.cached = torch.nn.Embedding(20, 12), {}

        def forward(self, ids):
            T = ids.shape[1]
            mask = self.cached.setdefault(T, torch.ones(T, T).tril() > 0)
            for row in ids != 0:
                mask &= row
            return mask / mask.sum(-1, keepdim=True) @ self.table(ids)

    space = {"model": Spoiled()}
    exec(CALL, space)
    assert "determinism" in space["report"].failed
    space["model"](torch.tensor(space["token_ids"]))
    exec(CALL, space)
    assert "determinism" in space["report"].passed


def test_each_check_is_named_where_it_leads_to():
    wanted = {name: section for name, (_, section) in CHECKS.items()}
    named = {}
    for part in re.split(r"(?m)^## ", PAGE)[1:]:
        title = part.partition("\n")[0]
        section = re.sub(r"[^a-z0-9]+", "-", title.lower())
        for line in re.findall(r"(?m)^Checks?: .*", part):
            for name in re.findall(r"`(\w+)`", line.partition(".\n")[0]):
                named.setdefault(name, []).append(section)
    assert {*named} == {*wanted}
    lacking = [n for n in wanted if wanted[n] not in named[n]]
    assert not lacking


def test_the_reference_page_has_each_check_and_what_it_needs():
    page = (BOOK / "reference.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| \[`(\w+)`\]\(symptoms.md#(.*?)\) \|", page)
    assert rows == [(name, section) for name, (_, section) in CHECKS.items()]


def test_the_page_is_short_and_its_list_leads_to_every_section():
    assert len(PAGE.split()) <= 5800
    first = PAGE.partition("\n## ")[0]
    targets = set(re.findall(r"\]\(#([\w-]+)\)", first))
    sections = {
        re.sub(r"[^a-z0-9]+", "-", title.lower())
        for title in re.findall(r"(?m)^## (.*)", PAGE)
    }
    assert targets <= sections
    rest = {
        "my-tests-pass-and-the-model-is-wrong",
        "layers-of-pytorch-and-keras",
    }
    assert sections - targets <= rest
