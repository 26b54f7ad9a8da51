"""The call of the kit, its report and its table in symptoms.md."""

import re

import pytest

from cellbycell.kit import CHECKS, check_model
from tools.notebooks import Notebook
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
PAGE = (BOOK / "symptoms.md").read_text("utf-8")
CALL, WITH_SOURCE = re.findall(
    r"(?ms)^```python\n([^`]*check_model\(.*?)^```", PAGE
)
LEAK = {"future", "future_train", "future_grad", "steps"}


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
    (printed,) = re.findall(r"(?ms)^```text\n(.*?)^```", PAGE)
    exec(CALL, {"model": model_of_the_chapter()})
    said = capsys.readouterr().out
    assert without_numbers(printed) == without_numbers(said)
    assert printed.count("failed") == len(LEAK) + 1


@pytest.mark.parametrize("causal", [True, False])
def test_the_call_asks_a_keras_model(causal):
    space = {"model": keras_model(causal)}
    exec(CALL, space)
    # Keras loses the mask of pads at `+`, and only a causal mask hides them.
    wrong = set() if causal else LEAK | {"pads"}
    assert {*space["report"].failed} == wrong
    assert not space["report"].errors


def test_the_call_with_a_source_asks_for_it():
    import torch.nn.functional as F
    from torch import nn

    class Translator(nn.Module):
        """Read the source, each target token and the sum of those before."""

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 12, padding_idx=0)
            self.linear = nn.Linear(12, 20)

        def forward(self, source, inputs):
            x = self.table(inputs).cumsum(1)
            return self.linear(x + self.table(source).sum(1, keepdim=True))

    space = {
        "check_model": check_model,
        "model": Translator(),
        "source_ids": [[7, 3, 5, 0, 0], [7, 6, 4, 3, 5]],
        "decoder_ids": [[1, 10, 8, 12, 0, 0], [1, 10, 8, 9, 11, 12]],
        "targets": [[10, 8, 12, 2, 0, 0], [10, 8, 9, 11, 12, 2]],
        "loss": lambda logits, targets: F.cross_entropy(
            logits.mT, targets, ignore_index=0
        ),
    }
    exec(WITH_SOURCE, space)
    assert {"source", "aim", "loss"} <= {*space["report"].passed}
    # The sum has no order, and the kit says so.
    assert space["report"].failed == ["order"]


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
    assert "calls" in space["report"].failed
    space["model"](torch.tensor(space["token_ids"]))
    exec(CALL, space)
    assert "calls" in space["report"].passed


def test_the_table_has_each_check_and_its_symptom():
    rows = re.findall(r"(?m)^\| `(\w+)` \|.*\| \[(.*)\]\(#(.+)\) \|$", PAGE)
    wanted = {name: section for name, (_, section) in CHECKS.items()}
    assert {name: section for name, _, section in rows} == wanted
    for _, title, section in rows:
        assert f"\n## {title}\n" in PAGE
        assert re.sub(r"[^a-z0-9]+", "-", title.lower()) == section
