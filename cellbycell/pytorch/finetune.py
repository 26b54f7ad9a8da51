"""Teach an old model: its pytorch part, for what comes after it.

Built and explained in the chapter *Teach an old model* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import numpy as np
from torch import nn

from cellbycell.common.finetune import projections
from cellbycell.pytorch.training import smoothed_loss


def answer_loss(model, rows):
    """Return the mean loss of all targets that are not 0, ().

    model: from ids (B, T) to logits (B, T, N); rows (B, 2, T): input ids,
    and targets.
    """
    logits = model(rows[:, 0])  # (B, T, N)
    return smoothed_loss(logits, rows[:, 1], smoothing=0.0)


def packed_logits(model, token_ids, positions, mask):
    """Return the logits of packed rows, (B, T, N).

    model: a Llama; token_ids and positions (B, T); mask (B, T, S), True =
    may attend; the same for all heads.
    """
    x = model.embedding(token_ids)  # (B, T, D)
    for layer in model.layers:
        x, _ = layer(x, positions[:, None], mask[:, None, None])
    x = model.norm(x)
    table = model.embedding.weight if model.tied else model.linear.weight
    return x @ table.T  # (B, T, N)


class Lora(nn.Module):
    """A frozen linear layer, and beside it a change of low rank.

    base: a linear layer with a weight (F, D); rng: of NumPy, for down.
    x (..., D); result (..., F). Source: Hu et al. 2021, section 4.1.
    """

    def __init__(self, base, rank, alpha, rng):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        d_out, d_in = base.weight.shape
        down = rng.normal(size=(rank, d_in)) / math.sqrt(d_in)
        self.down = nn.Parameter(base.weight.new_tensor(down))
        self.up = nn.Parameter(base.weight.new_zeros(d_out, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


def add_lora(model, rank, alpha, seed=0, **which):
    """Freeze a Llama, put a Lora at each of its projections, and return it.

    which: names= chooses projections; without it, all.
    """
    rng = np.random.default_rng(seed)
    model.requires_grad_(False)
    for part, name in projections(model, **which):
        setattr(part, name, Lora(getattr(part, name), rank, alpha, rng))
    return model


def merge_lora(model, factor=1.0):
    """Add factor times the change of each Lora to its base; put bases back.

    Changes the model, which stays frozen, and returns it.
    """
    for part, name in projections(model):
        lora = getattr(part, name)
        if isinstance(lora, Lora):
            if factor:
                change = factor * lora.scale * lora.up @ lora.down
                lora.base.weight.data += change.detach()
            setattr(part, name, lora.base)
    return model
