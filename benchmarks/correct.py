"""Count the false alarms of the kit on correct models of random design.

    python -m benchmarks.correct 150 torch
    python -m benchmarks.correct 50 keras

Sizes, norms, positions, initialisations, masks and rows are drawn; what is
printed is each model with a check that failed, and the number of models.
"""

import math
import os
import sys
from types import SimpleNamespace

import numpy as np

from cellbycell.checks import check_model

KINDS = [0.6, 0.2, 0.2]  # how often there are decoders, encoders and both


def draw(seed):
    """Return the design of a model, and its rows of ids."""
    rng = np.random.default_rng(seed)
    heads = int(rng.choice([1, 2, 3, 4, 8]))
    design = SimpleNamespace(
        heads=heads,
        width=heads * 2 * int(rng.integers(2, 9)),
        layers=int(rng.choice([1, 2, 3, 6])),
        vocabulary=int(rng.integers(30, 200)),
        length=int(rng.integers(4, 25)),
        kind=str(rng.choice(["decoder", "encoder", "both"], p=KINDS)),
        norm_first=bool(rng.integers(2)),
        rms=bool(rng.integers(2)),
        positions=str(rng.choice(["table", "sines", "rotary", "slopes"])),
        tied=bool(rng.integers(2)),
        spread=str(rng.choice(["own", "0.02", "glorot", "fan-in"])),
        dropout=float(rng.choice([0.0, 0.1, 0.3])),
        fill=float(rng.choice([-np.inf, -1e9, -1e4])),
        from_library=bool(rng.random() < 0.3),
        zeros=bool(rng.random() < 0.2),  # attention begins at zero
        seed=seed,
    )
    sequences = int(rng.integers(1, 5))

    def rows(length):
        found = rng.integers(3, design.vocabulary, (sequences, length))
        for row in found[1:]:
            row[int(rng.integers(min(3, length), length + 1)) :] = 0
        return found

    whole = rows(design.length + 1)
    design.inputs, design.targets = whole[:, :-1], whole[:, 1:]
    design.ids = [design.inputs]
    if design.kind == "both":
        design.ids.insert(0, rows(int(rng.integers(4, 25))))
    return design


def sines(length, width):
    """Return the sinusoidal position table, (T, D)."""
    angles = np.arange(length)[:, None] / 10000 ** (
        np.arange(0, width, 2) / width
    )
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return np.float32(pairs.reshape(length, -1)[:, :width])


def make_torch(design):
    """Return a correct PyTorch model of this design."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(design.seed)
    width, heads = design.width, design.heads

    def norm():
        return (nn.RMSNorm if design.rms else nn.LayerNorm)(width)

    def rotate(x):
        angles = np.arange(x.shape[-2])[:, None] / 10000 ** (
            np.arange(0, x.shape[-1], 2) / x.shape[-1]
        )
        sin, cos = (
            torch.tensor(np.float32(f(angles))) for f in (np.sin, np.cos)
        )
        u, v = x[..., ::2], x[..., 1::2]
        pairs = torch.stack([u * cos - v * sin, u * sin + v * cos], -1)
        return pairs.flatten(-2)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("query", "key", "value", "last"):
                setattr(self, name, nn.Linear(width, width))

        def forward(self, x, memory, allowed):
            pairs = (self.query, x), (self.key, memory), (self.value, memory)
            query, key, value = (
                proj(y).unflatten(-1, (heads, -1)).transpose(1, 2)
                for proj, y in pairs
            )
            if design.positions == "rotary":
                query, key = rotate(query), rotate(key)
            scores = query @ key.mT / math.sqrt(query.shape[-1])
            if design.positions == "slopes":
                new = torch.arange(x.shape[1])[:, None]
                slopes = 0.5 ** torch.arange(1.0, heads + 1)
                steps = (torch.arange(key.shape[2]) - new).abs()
                scores = scores - steps * slopes[:, None, None]
            scores = scores.masked_fill(~allowed[:, None], design.fill)
            weights = scores.softmax(-1)
            weights = F.dropout(weights, design.dropout, self.training)
            return self.last((weights @ value).transpose(1, 2).flatten(2))

    class Layer(nn.Module):
        def __init__(self, crossed):
            super().__init__()
            self.attention, self.norms = Attention(), nn.ModuleList([norm()])
            self.cross = Attention() if crossed else None
            self.norms.extend([norm() for _ in range(1 + crossed)])
            self.widen = nn.Linear(width, 48)
            self.narrow = nn.Linear(48, width)
            self.dropout = nn.Dropout(design.dropout)

        def forward(self, x, allowed, memory=None, memory_allowed=None):
            parts = [lambda y: self.attention(y, y, allowed)]
            if self.cross is not None:
                parts += [lambda y: self.cross(y, memory, memory_allowed)]
            parts += [lambda y: self.narrow(F.gelu(self.widen(y)))]
            for part, one in zip(parts, self.norms, strict=True):
                if design.norm_first:
                    x = x + self.dropout(part(one(x)))
                else:
                    x = one(x + self.dropout(part(x)))
            return x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            both = design.kind == "both"
            self.table = nn.Embedding(design.vocabulary, width)
            if design.positions == "table":
                longest = max(x.shape[1] for x in design.ids)
                self.places = nn.Embedding(longest, width)
            layers = design.layers
            self.encoder = nn.ModuleList(
                Layer(False) for _ in range(layers * both)
            )
            self.layers = nn.ModuleList(Layer(both) for _ in range(layers))
            self.norms = nn.ModuleList([norm() for _ in range(1 + both)])
            if design.from_library:
                self.encoder = self.layers = None
                self.norms = nn.ModuleList()
                rates = 48, design.dropout
                sizes = {"batch_first": True, "norm_first": design.norm_first}
                if both:
                    self.body = nn.Transformer(
                        width, heads, layers, layers, *rates, **sizes
                    )
                else:
                    self.body = nn.TransformerEncoder(
                        nn.TransformerEncoderLayer(
                            width, heads, *rates, **sizes
                        ),
                        layers,
                        norm=nn.LayerNorm(width),
                        enable_nested_tensor=False,
                    )
                    # As its documentation wants it: its layers begin alike.
                    for p in self.body.parameters():
                        if p.ndim > 1:
                            nn.init.xavier_uniform_(p)
            self.linear = nn.Linear(width, design.vocabulary, bias=False)
            if design.tied:
                self.linear.weight = self.table.weight

        def embed(self, ids):
            x = self.table(ids)
            if design.positions == "table":
                return x + self.places(torch.arange(ids.shape[1]))
            absolute = design.positions == "sines" or design.from_library
            return x + absolute * torch.tensor(sines(ids.shape[1], width))

        def forward(self, *ids):
            causal = torch.ones(2 * ids[-1].shape[1:]).tril().bool()[None]
            if design.kind == "encoder":
                causal = (ids[0] != 0)[:, None]
            if design.from_library:
                return self.linear(self.ask_library(ids, causal))
            x, memory, read = self.embed(ids[-1]), None, None
            if design.kind == "both":
                memory, read = self.embed(ids[0]), (ids[0] != 0)[:, None]
                for layer in self.encoder:
                    memory = layer(memory, read)
                memory = self.norms[1](memory)
            for layer in self.layers:
                x = layer(x, causal, memory, read)
            return self.linear(self.norms[0](x))

        def ask_library(self, ids, causal):
            pads = ids[0] == 0
            if design.kind == "both":
                return self.body(
                    *(self.embed(x) for x in ids),
                    tgt_mask=~causal[0],
                    src_key_padding_mask=pads,
                    memory_key_padding_mask=pads,
                )
            if design.kind == "encoder":
                return self.body(self.embed(ids[0]), src_key_padding_mask=pads)
            return self.body(self.embed(ids[0]), ~causal[0])

    model = Model()
    spreads = {
        "0.02": lambda p: 0.02,
        "glorot": lambda p: math.sqrt(2 / sum(p.shape)),
        "fan-in": lambda p: p.shape[1] ** -0.5,
    }
    for p in model.parameters():
        if p.ndim > 1 and design.spread in spreads:
            nn.init.normal_(p, 0, spreads[design.spread](p))
    for module in model.modules() if design.zeros else ():
        if isinstance(module, Attention):
            nn.init.zeros_(module.last.weight)
    return model


def make_keras(design):
    """Return a correct Keras model of this design."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(design.seed)
    layers, width = keras.layers, design.width

    def norm():
        if design.rms:
            return layers.RMSNormalization()
        return layers.LayerNormalization()

    class Layer(layers.Layer):
        def __init__(self, crossed):
            super().__init__()
            sizes = design.heads, width // design.heads
            rate = {"dropout": design.dropout}
            self.attention = layers.MultiHeadAttention(*sizes, **rate)
            self.cross = layers.MultiHeadAttention(*sizes) if crossed else None
            self.norms = [norm() for _ in range(2 + crossed)]
            self.widen = layers.Dense(48, activation="gelu")
            self.narrow = layers.Dense(width)
            self.dropout = layers.Dropout(design.dropout)

        def call(self, x, real, memory, memory_real, training=False):
            causal = design.kind != "encoder"
            masks = {"use_causal_mask": causal, "attention_mask": real}
            if causal:
                del masks["attention_mask"]
            parts = [
                lambda y: self.attention(y, y, training=training, **masks),
                lambda y: self.narrow(self.widen(y)),
            ]
            if self.cross is not None:
                mask = {"attention_mask": memory_real}
                parts.insert(1, lambda y: self.cross(y, memory, **mask))
            for part, one in zip(parts, self.norms, strict=True):
                if design.norm_first:
                    x += self.dropout(part(one(x)), training=training)
                else:
                    x = one(x + self.dropout(part(x), training=training))
            return x

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            both = design.kind == "both"
            self.table = layers.Embedding(design.vocabulary, width)
            longest = max(x.shape[1] for x in design.ids)
            self.places = None
            if design.positions == "table":
                self.places = layers.Embedding(longest, width)
            self.stack = [Layer(both) for _ in range(design.layers)]
            self.norm = norm()
            if not design.tied:
                self.linear = layers.Dense(design.vocabulary)

        def embed(self, ids):
            x, length = self.table(ids), ids.shape[1]
            if self.places is None:
                return x + sines(length, width)
            return x + self.places(tf.range(length))

        def call(self, ids, decoder_ids=None, training=False):
            x, memory = self.embed(ids), None
            real = (ids != 0)[:, None]
            if decoder_ids is not None:
                x, memory = self.embed(decoder_ids), x
            for layer in self.stack:
                x = layer(x, real, memory, real, training=training)
            x = self.norm(x)
            if design.tied:
                return x @ tf.transpose(self.table.embeddings)
            return self.linear(x)

    return Model()


def report_on(design, make):
    """Return the kit's report on a model of this design."""
    return check_model(
        make(design),
        *design.ids,
        pad_id=0,
        causal=design.kind != "encoder",
        targets=design.targets,
        untrained=True,
    )


def main(count, framework):
    """Print each false alarm, and how many models were asked."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    make = {"torch": make_torch, "keras": make_keras}[framework]
    alarms = answers = 0
    for seed in range(count):
        design = draw(seed)
        report = report_on(design, make)
        answers += len(report.passed) + len(report.failed)
        for name in report.failed + report.errors:
            alarms += 1
            print(name, report[name].sentence, vars(design), sep="\n  ")
    print(f"{count} models, {answers} answers, {alarms} false alarms.")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
