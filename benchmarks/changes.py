"""Measure what each change since 2017 does for rows of *A model at work*.

    python -m benchmarks.changes 3 400
    python -m benchmarks.changes 3 1200 2017 rotary Llama

Trains the chapter's two models on its rows, the decoder-only model with one
change, a Llama, which has all of them, and a Llama with one change taken
back: each with so many seeds, for the weights, the dropout and the order of
the rows, and for so many steps. Prints what book/practice.ipynb stores, for
each model: its parameters; for each seed the loss and the share of exact
answers on the test rows; and the median shares on the way, of validation rows.
Further arguments are the models to train.
"""

import copy
import math
import sys
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.pytorch import (
    Encoder,
    MultiHeadAttention,
    RMSNorm,
    SwiGLU,
    attend,
    draw_model,
    make_causal_mask,
    merge_heads,
    position_table,
    rotary_halves,
    split_heads,
)
from tools.notebooks import Notebook, definitions
from tools.settings import BOOK

CHANGES = ["rotary", "RMSNorm", "SwiGLU", "no biases", "tied", "grouped keys"]
MODELS = {"encoder-decoder": None, "2017": []}
MODELS |= {change: [change] for change in CHANGES}
MODELS |= {"Llama": CHANGES}
MODELS |= {f"Llama - {c}": [x for x in CHANGES if x != c] for c in CHANGES}
D_MODEL, D_FF, DROPOUT = 64, 128, 0.05


def chapter():
    """Return what the chapter defines, with its rows and its tokenizer."""
    notebook = Notebook.read(BOOK / "practice.ipynb")
    cells, names = {cell.id: cell.source for cell in notebook.code}, {}
    for cell in ("imports", "imports-built", "languages", "sizes"):
        exec(cells[cell], names)
    exec(cells["train-tokenizer"], names)
    for _, source, _ in definitions(notebook):
        exec(source, names)
    for cell in ("rows", "three-parts", "tokenizer", "model-sizes"):
        exec(cells[cell], names)
    return names


class Attention(MultiHeadAttention):
    """Self-attention that may rotate, and may have fewer key heads."""

    def forward(self, x, _key, _value, mask):
        query = split_heads(self.query_proj(x), self.num_heads)
        key_heads = self.key_proj.out_features // self.d_head
        key, value = (
            split_heads(proj(x), key_heads)
            for proj in (self.key_proj, self.value_proj)
        )
        if self.rotates:
            positions = torch.arange(x.shape[1])
            query, key = (rotary_halves(y, positions) for y in (query, key))
        copies = self.num_heads // key_heads
        key, value = (y.repeat_interleave(copies, 1) for y in (key, value))
        output, _ = attend(query, key, value, mask, self.dropout)
        return self.output_proj(merge_heads(output))


class Gated(SwiGLU):
    """SwiGLU with the dropout that FeedForward has."""

    def forward(self, x):
        hidden = F.silu(self.gate(x)) * self.up(x)
        return self.down(F.dropout(hidden, DROPOUT, self.training))


class Decoder(nn.Module):
    """The chapter's DecoderOnly, with some changes."""

    def __init__(self, vocab_size, changes, num_layers=2):
        super().__init__()
        self.changes = changes
        self.embedding = nn.Embedding(vocab_size, D_MODEL)
        self.blocks = Encoder(num_layers, D_MODEL, 4, D_FF, True, DROPOUT)
        self.dropout = nn.Dropout(DROPOUT)
        self.linear = nn.Linear(D_MODEL, vocab_size, bias=False)
        for layer in self.blocks.layers:
            attention = layer.attention
            attention.__class__ = Attention
            attention.rotates = "rotary" in changes
            if "grouped keys" in changes:  # two key heads for four heads
                attention.key_proj = nn.Linear(D_MODEL, D_MODEL // 2)
                attention.value_proj = nn.Linear(D_MODEL, D_MODEL // 2)
            if "SwiGLU" in changes:
                layer.feed_forward = Gated(D_MODEL, 2 * D_FF // 3)
        for part in self.modules():
            if "RMSNorm" in changes and hasattr(part, "norm"):
                part.norm = RMSNorm(D_MODEL)
            if "no biases" in changes and isinstance(part, nn.Linear):
                part.bias = None
        if "tied" in changes:
            self.linear.weight = self.embedding.weight

    def forward(self, token_ids):
        x = self.embedding(token_ids) * D_MODEL**0.5
        if "rotary" not in self.changes:
            x = x + position_table(*x.shape[1:])
        causal_mask = make_causal_mask(x.shape[1])
        return self.linear(self.blocks(self.dropout(x), causal_mask))


def make(book, changes, seed):
    """Return a new model, and the functions for its loss and its answers."""
    if changes is None:
        sizes = book["sizes"] | {"dropout": DROPOUT}
        model = book["make_model"](sizes, seed).cpu()
        loss, writer = book["batch_loss"], book["write_ids"]
    else:
        size = book["vocab_size"]
        model = Decoder(size, changes)
        draw_model(model, seed)
        loss, writer = book["continued_loss"], book["continue_rows"]
        if not changes:
            same = book["DecoderOnly"](size, D_MODEL, 4, D_FF).eval()
            draw_model(same, seed)
            ids = torch.tensor([[5, 6, 7]])
            assert torch.equal(model.eval()(ids), same(ids))
    torch.manual_seed(seed)  # of the dropout
    return model, loss, writer


def train(book, pairs, changes, seed, steps):
    """Return parameters, loss, exact share, and the shares on the way."""
    model, loss, writer = make(book, changes, seed)
    optimizer = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9)
    rng, left = np.random.default_rng(seed), []
    best, kept, on_the_way = math.inf, None, []
    exact = partial(book["exact_share"], partial(writer, model))
    for step in range(1, steps + 1):
        if not left:
            left = book["batches_by_length"](pairs[0], 60, rng)
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * book["rate_share"](step, steps)
        batch = [pairs[0][number] for number in left.pop()]
        model.train()
        optimizer.zero_grad()
        book["accumulate"](model, batch, loss=loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % (steps // 8) == 0:
            on_the_way.append(round(exact(pairs[1][:300]), 3))
            if (found := book["mean_loss"](model, pairs[1], loss)) < best:
                best, kept = found, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    size = sum(weight.numel() for weight in model.parameters())
    found = book["mean_loss"](model, pairs[2], loss)
    return size, found, exact(pairs[2]), on_the_way


def main(num_seeds, steps, *names):
    book = chapter()
    pairs = [
        book["encode_rows"](book["tokenizer"], book[f"{part}_rows"])
        for part in ("training", "validation", "test")
    ]
    found = {name: [] for name in names or MODELS}
    for seed in range(int(num_seeds)):
        for name, runs in found.items():
            runs.append(train(book, pairs, MODELS[name], seed, int(steps)))
            print(seed, name, runs[-1], file=sys.stderr, flush=True)
    for name, runs in found.items():
        sizes, losses, shares, _ = zip(*runs, strict=True)
        print(name, sizes[0], *(f"{x:.3f}" for x in losses + shares), sep=", ")
    for name, runs in found.items():
        on_the_way = np.median([run[-1] for run in runs], axis=0)
        print(f'"{name}": {on_the_way.round(2).tolist()},')


if __name__ == "__main__":
    main(*sys.argv[1:])
