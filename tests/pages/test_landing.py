"""The two pictures of the landing page show what trained models give."""

import math
import re
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from cellbycell.figures.names_model import stored_config, stored_weights
from cellbycell.names import LETTERS, initialise, read_names, split_names
from cellbycell.pytorch import (
    AddPositions,
    Causal,
    Encoder,
    Llama,
    MultiHeadAttention,
    SelfAttention,
    Transformer,
    learn,
    llama_weights,
    name_loss,
)
from tools.settings import BOOK

PAIRS = {
    "life is short": [*3 * ["la vie est courte"], "la vie est brève"],
    "life is long": 4 * ["la vie est longue"],
    "day is short": [*3 * ["le jour est court"], "le jour est bref"],
    "day is long": 4 * ["le jour est long"],
}


def test_the_picture_shows_what_a_trained_model_gives():
    rows = [
        (source.split(), ["<start>", *target.split(), "<end>"])
        for source, targets in PAIRS.items()
        for target in targets
    ]
    tokens = ["<pad>"]
    for source, target in rows:
        tokens += [t for t in source + target if t not in tokens]
    sources, targets = (
        torch.tensor([[tokens.index(t) for t in part] for part in side])
        for side in zip(*rows, strict=True)
    )
    torch.manual_seed(0)
    model = Transformer(len(tokens), 1, 32, 2, 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        logits = model(sources, targets[:, :-1])  # (B, T, N)
        cross_entropy(logits.mT, targets[:, 1:]).backward()
        optimizer.step()
    logits = model(sources[:1], targets[:1, :4])[0, -1]  # (N,)
    found = dict(zip(tokens, logits.softmax(-1).tolist(), strict=True))

    drawing = (BOOK / "_static" / "next-token.svg").read_text("utf-8")
    said = re.findall(
        r">(\w+)</text>\s*<rect class=\"bar\".*\s*<text.*>(0.\d+)<", drawing
    )
    shown = {token: float(number) for token, number in said}
    assert [*shown] == ["courte", "brève"]
    for token, probability in shown.items():
        assert found.pop(token) == pytest.approx(probability, abs=0.01)
    assert "sixteen others" in drawing and len(found) == 16
    assert max(found.values()) < 0.005


# The loss after each part that the book builds


def width_48(*parts):
    return nn.Sequential(nn.Embedding(30, 48), *parts, nn.Linear(48, 30))


def heads(count):
    return SelfAttention(MultiHeadAttention(48, count))


def layers(count):
    return Causal(Encoder(count, 48, 4, 192, norm_first=True))


MODELS = {
    "a table": lambda: width_48(),
    "positions": lambda: width_48(AddPositions()),
    "one head": lambda: width_48(AddPositions(), heads(1)),
    "four heads": lambda: width_48(AddPositions(), heads(4)),
    "a whole layer": lambda: width_48(AddPositions(), layers(1)),
    "two layers": lambda: width_48(AddPositions(), layers(2)),
}


@pytest.mark.parametrize("seed", range(3))
def test_each_part_lowers_the_loss_as_the_picture_says(seed):
    train_rows, held_rows = split_names(read_names())
    losses = {"guess": math.log(len(LETTERS))}
    for name, make in MODELS.items():
        model = make()
        initialise(model, seed)
        learn(model, train_rows, seed=seed)
        losses[name] = name_loss(model, held_rows).item()
    assert all(a > b + 0.01 for a, b in pairwise(losses.values())), losses
    llama, stored = Llama(stored_config()), stored_weights()
    for name, weight in llama_weights(llama).items():
        weight.data.copy_(torch.from_numpy(stored[name]))
    losses["a small Llama"] = name_loss(llama, held_rows).item()
    drawing = (BOOK / "_static" / "score.svg").read_text("utf-8")
    row = r'>([\w ]+)</text>\s*<rect.* width="(.+?)" .*\s*<text.*>(.+)</text>'
    shown = re.findall(row, drawing)
    assert [name for name, *_ in shown] == [*losses]
    for name, width, loss in shown:
        assert float(width) == pytest.approx(60 * float(loss))
        assert f"{name} {loss}" in " ".join(drawing.split())
        assert losses[name] == pytest.approx(float(loss), abs=0.02)
        if seed == 0:
            assert f"{losses[name]:.2f}" == loss
