"""Teach an old model: its pytorch part, for what comes after it.

Built and explained in the chapter *Teach an old model* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.common.finetune import block_mask, projections, prompt_ids
from cellbycell.pytorch.training import smoothed_loss
from cellbycell.smol import END


def answer_to(model, tokenizer, question, steps=16):
    """Return an answer, each time the likeliest token."""
    new, cache, said = prompt_ids(tokenizer, question), [], []
    with torch.no_grad():
        while len(said) < steps and END not in said:
            logits, cache = model(torch.tensor([new]), cache)
            new = [int(logits[0, -1].argmax())]
            said += new
    return tokenizer.decode(said, skip_special_tokens=False)


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


def packed_loss(model, packed):
    """Return the mean loss of what is asked in packed rows, ().

    packed (4, B, T): of pack_rows.
    """
    ids, targets, texts, positions = packed
    told = map(torch.tensor, (ids, positions, block_mask(texts)))
    logits = packed_logits(model, *told)  # (B, T, N)
    return smoothed_loss(logits, torch.tensor(targets), smoothing=0.0)


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


def teach(model, batches, rate):
    """Train what isn't frozen, one step a batch: return the losses."""
    trained, losses = [w for w in model.parameters() if w.requires_grad], []
    optimizer = torch.optim.AdamW(trained, weight_decay=0.0)
    for step, packed in enumerate(batches):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / len(batches))
        loss = packed_loss(model, packed)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def text_loss(model, ids):
    """Return the mean loss of a text's tokens, ids (1, T)."""
    with torch.no_grad():
        logits = model(ids[:, :-1]).mT  # (B, N, T)
    return F.cross_entropy(logits, ids[:, 1:]).item()
