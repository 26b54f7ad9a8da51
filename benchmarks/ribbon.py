"""Train the models of names chapter by chapter: their losses, and names.

    python -m benchmarks.ribbon

It writes, in a minute, what `cellbycell.ribbon` draws; `make pages`
then draws it for the landing page.
"""

import json

import torch
from torch import nn

from cellbycell.figures.names_model import stored_config, stored_weights
from cellbycell.names import (
    LETTERS,
    five_names,
    initialise,
    read_names,
    split_names,
)
from cellbycell.pytorch import (
    AddPositions,
    Causal,
    Encoder,
    Llama,
    MultiHeadAttention,
    SelfAttention,
    learn,
    llama_weights,
    name_loss,
)
from cellbycell.ribbon import FILE


def width_48(*parts):
    return nn.Sequential(nn.Embedding(30, 48), *parts, nn.Linear(48, 30))


def heads(count):
    return SelfAttention(MultiHeadAttention(48, count))


def layers(count):
    return Causal(Encoder(count, 48, 4, 192, norm_first=True))


# The chapter, what it adds, its seeds for weights and rows, and its model.
MODELS = [
    ("embedding", "a table", (0, 0), lambda: width_48()),
    (
        "positional_encoding",
        "positions",
        (0, 0),
        lambda: width_48(AddPositions()),
    ),
    (
        "attention",
        "one head",
        (0, 0),
        lambda: width_48(AddPositions(), heads(1)),
    ),
    (
        "multi_head_attention",
        "four heads",
        (0, 0),
        lambda: width_48(AddPositions(), heads(4)),
    ),
    (
        "encoder",
        "a layer",
        (2, 2),
        lambda: width_48(AddPositions(), layers(1)).double(),
    ),
    (
        "decoder",
        "two layers",
        (0, 16),
        lambda: width_48(AddPositions(), layers(2)).double(),
    ),
    ("llama", "a Llama", (2, 2), lambda: Llama(stored_config())),
]


def spell(model):
    """Return a name for each start; all models draw with the same numbers."""
    with torch.no_grad():
        return five_names(lambda ids: model(torch.tensor(ids)).numpy())


def guess(ids):
    """Return the logits of a model that has learned nothing."""
    return torch.zeros(*ids.shape, len(LETTERS))


def stored_llama():
    """Return the Llama of the landing page, which was trained longer."""
    llama, stored = Llama(stored_config()), stored_weights()
    for name, weight in llama_weights(llama).items():
        weight.data.copy_(torch.from_numpy(stored[name]))
    return llama


def trained(chapter, make, seeds, train_rows):
    """Return a model, trained as in its chapter."""
    model = make()
    initialise(model, seeds[0])
    decay = 0.3 if chapter == "llama" else 0.01
    learn(model, train_rows, decay=decay, seed=seeds[1])
    return model


def points():
    """Return the points of the line, as the file has them."""
    torch.set_num_threads(1)
    train_rows, held_rows = split_names(read_names())

    def point(chapter, part, steps, model):
        with torch.no_grad():
            loss = round(name_loss(model, held_rows).item(), 2)
        given = dict(chapter=chapter, part=part, steps=steps, loss=loss)
        return given | dict(names=spell(model))

    found = [point("evening", "a guess", 0, guess)]
    for chapter, part, seeds, make in MODELS:
        model = trained(chapter, make, seeds, train_rows)
        found.append(point(chapter, part, 300, model))
    found.append(point("llama", "trained longer", 800, stored_llama()))
    return found


if __name__ == "__main__":
    rows = ",\n ".join(map(json.dumps, points()))
    FILE.write_text(f"[{rows}]\n", "utf-8")
