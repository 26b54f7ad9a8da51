"""What the landing page says: how long the book takes, and one picture."""

import re

import pytest
import torch
from torch.nn.functional import cross_entropy

from cellbycell.pytorch import Transformer
from tools.notebooks import Notebook
from tools.rules.reading import MAX_MINUTES, minutes
from tools.run.claims import NUMBERS
from tools.settings import BOOK, ROOT, chapters

INDEX = (BOOK / "index.md").read_text("utf-8")
WORDS = {value: word for word, value in NUMBERS.items()}
PAIRS = {
    "life is short": [*3 * ["la vie est courte"], "la vie est brève"],
    "life is long": 4 * ["la vie est longue"],
    "day is short": [*3 * ["le jour est court"], "le jour est bref"],
    "day is long": 4 * ["le jour est long"],
}


def test_it_counts_the_chapters_and_the_hours():
    read = [Notebook.read(ROOT / f"{name}.ipynb") for name in chapters()]
    assert f"The book has {WORDS[len(read)]} chapters." in INDEX
    assert f"at most {MAX_MINUTES} minutes" in INDEX
    hours = round(sum(map(minutes, read)) / 60)
    assert f"about {WORDS[hours]} hours" in INDEX


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
