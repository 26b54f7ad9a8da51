"""Ask SmolLM2 to copy a text from far away, for *Rotary positions*.

    python -m benchmarks.far

A text stands twice, and the second copy at positions that lie far behind the
first one: nothing stands between, so it costs no more than a short text. It
writes, in a minute, what `cellbycell.figures.rotary_far` shows.
"""

import json

import torch
import torch.nn.functional as F

from cellbycell.breaks import TEXT
from cellbycell.common import frequencies, stretched
from cellbycell.figures.rotary_far import FILE
from cellbycell.smol import load_smol, smol_tokenizer

GAPS = 0, 1000, 2000, 4000, 5000, 6000, 7000, 8000, 9000, 10000
GAPS += 12000, 14000, 16000, 20000, 24000, 32000
BASE, WIDTH, LENGTH = 1e5, 64, 8192  # SmolLM2's, and its trained length
FACTOR = 4


def ways():
    """Return for each way its frequencies, and what positions are times."""
    plain = frequencies(WIDTH, BASE)
    larger = BASE * FACTOR ** (WIDTH / (WIDTH - 2))
    return {
        "as it is": (plain, 1),
        "positions / 4": (plain, 1 / FACTOR),
        "larger base": (frequencies(WIDTH, larger), 1),
        "slow pairs / 4": (stretched(plain, FACTOR, old_length=LENGTH), 1),
    }


@torch.no_grad()
def losses(way, gap):
    """Return the mean losses of a text, and of its copy far behind it."""
    turns, scale = ways()[way]
    model, ids = load_smol(), smol_tokenizer().encode(TEXT).ids
    token_ids = torch.tensor([ids + ids])  # (1, T)
    slots = torch.arange(2 * len(ids))  # (T,)
    positions = scale * (slots + gap * (slots >= len(ids)))  # (T,)
    usual = model.layers[0].attention.base
    x = model.embedding(token_ids)  # (1, T, D)
    for layer in model.layers:
        layer.attention.base = tuple(turns.tolist())
        x, _ = layer(x, positions.double(), slots <= slots[:, None])
        layer.attention.base = usual
    logits = model.norm(x) @ model.embedding.weight.T  # (1, T, N)
    found = F.cross_entropy(logits[0, :-1], token_ids[0, 1:], reduction="none")
    return found[: len(ids) - 1].mean().item(), found[len(ids) :].mean().item()


def states():
    """Return what the picture shows, as JSON has it."""
    found = {"gaps": GAPS, "text": {}, "copy": {}}
    for way in ways():
        both = [losses(way, gap) for gap in GAPS]
        found["text"][way] = round(both[0][0], 3)
        found["copy"][way] = [round(copy, 3) for _, copy in both]
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(states()) + "\n", "utf-8")
    print("written:", FILE.name)
