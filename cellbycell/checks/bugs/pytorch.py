"""Small correct models in PyTorch, which get the planted bugs."""

from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import BOTH_WAYS, IDS, NEXT, PADS, SOURCE


def decoder(learned=False, window=None, experts=False):
    """Return a decoder with grouped heads, and the cache of Transformers."""

    def turn(x, at):
        angles = at[:, None, :, None] / 50 ** torch.arange(0, 1, 0.25)
        sin, cos, (u, v) = angles.sin(), angles.cos(), x.chunk(2, -1)
        return torch.cat([u * cos - v * sin, u * sin + v * cos], -1)

    def norm(x):
        return F.rms_norm(x, x.shape[-1:])

    def perceptron():
        return nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32))

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(32, 4, bias=False)
            self.parts = nn.ModuleList(perceptron() for _ in range(4))

        def forward(self, x):
            weight, chosen = self.router(x).softmax(-1).max(-1)
            order = chosen.flatten().argsort()
            sizes = chosen.flatten().bincount(minlength=4).tolist()
            groups = x.flatten(0, 1)[order].split(sizes)
            y = [f(z) for f, z in zip(self.parts, groups, strict=True)]
            y = torch.cat(y)[order.argsort()]
            return weight[..., None] * y.view_as(x)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.join = nn.Linear(32, 32), nn.Linear(32, 32)
            self.key, self.value = nn.Linear(32, 16), nn.Linear(32, 16)
            self.last = Experts() if experts else perceptron()

        def forward(self, x, allowed, at, past):
            query, key, value = (
                part(norm(x)).unflatten(-1, (-1, 8)).transpose(1, 2)
                for part in (self.query, self.key, self.value)
            )
            if not learned:
                query, key = turn(query, at), turn(key, at)
            if past:
                key = torch.cat([past[0], key], 2)
                value = torch.cat([past[1], value], 2)
            past = key, value
            key, value = (y.repeat_interleave(2, 1) for y in past)
            allowed = allowed[:, None, :, -key.shape[2] :]
            scores = query @ key.mT / 8**0.5
            weights = scores.masked_fill(~allowed, -1e9).softmax(-1)
            x = x + self.join((weights @ value).transpose(1, 2).flatten(2))
            return x + self.last(norm(x)), past

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear = nn.Embedding(48, 32), nn.Linear(32, 48)
            self.places = nn.Embedding(32, 32) if learned else None
            self.layers = nn.ModuleList([Layer(), Layer()])
            self.empty = [None, None]

        def forward(
            self,
            ids,
            attention_mask=None,
            position_ids=None,
            past_key_values=None,
            use_cache=False,
        ):
            past = list(past_key_values or self.empty)
            start = past[0][0].shape[2] if past[0] else 0
            slots = torch.arange(start + ids.shape[1])
            new = slots[start:, None]
            allowed = (slots <= new)[None]
            if window:
                allowed = allowed & (slots > new - window)
            if attention_mask is None:
                attention_mask = torch.ones(len(ids), len(slots))
            allowed = allowed & attention_mask[:, None].bool()
            if position_ids is None:
                position_ids = slots[None, start:]
            x = self.table(ids) / 4
            if learned:
                x = x + self.places(position_ids) / 4
            for i, layer in enumerate(self.layers):
                x, past[i] = layer(x, allowed, position_ids, past[i])
            logits = self.linear(norm(x))
            return SimpleNamespace(logits=logits, past_key_values=past)

    return Model()


def encoder(upper=0):
    """Return an encoder, or an encoder-decoder, of PyTorch's layers."""
    Lower, Upper = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear = nn.Embedding(48, 32), nn.Linear(32, 48)
            self.register_buffer("places", torch.randn(32, 32))
            self.layers = nn.ModuleList(Lower(32, 4, 64) for _ in range(2))
            self.upper = nn.ModuleList(Upper(32, 4, 64) for _ in range(upper))

        def embed(self, ids):
            x = self.table(ids) + self.places[: ids.shape[1]].mul(0.5)
            return x.transpose(0, 1)

        def forward(self, ids, decoder_ids=None):
            x, pads = self.embed(ids), (ids == 0)[:, None]
            pads = pads.repeat_interleave(4, 0)  # for each of four heads
            for layer in self.layers:
                x = layer(x, pads.expand(-1, len(x), -1))
            if upper:
                memory, x = x, self.embed(decoder_ids)
                future = torch.ones(len(x), len(x)).triu(1).bool()
                unread = pads.expand(-1, len(x), -1)
                for layer in self.upper:
                    x = layer(x, memory, future, unread)
            return self.linear(x.transpose(0, 1))

    return Model()


def raw(kind):
    """Return a small raw model of Transformers."""
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
    )

    sizes = {"vocab_size": 48, "hidden_size": 32, "intermediate_size": 64}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = AutoConfig.for_model(kind, initializer_range=0.2, **sizes)
    head = AutoModelForMaskedLM if kind == "bert" else AutoModelForCausalLM
    model = head.from_config(config)
    return model


def meddle(model, part, name, change):
    """Have a part of the model get a changed argument, if it gets one."""

    def hook(_, args, kwargs):
        if kwargs.get(name) is not None:
            kwargs = kwargs | {name: change(kwargs[name], kwargs)}
        return args, kwargs

    part.register_forward_pre_hook(hook, with_kwargs=True)
    return model


def torch_loss(logits, targets):
    """Return the mean cross-entropy of what is to be predicted."""
    return F.cross_entropy(logits.mT, targets)


def write(model, ids):
    """Return the ids, and six that are written after them, with a cache."""
    new, past = ids, None
    for _ in range(6):
        output = model(new, past_key_values=past, use_cache=True)
        new, past = output.logits[:, -1:].argmax(-1), output.past_key_values
        ids = torch.cat([ids, new], 1)
    return ids


# Each fourth token of a source is masked for BERT, and to be predicted.
MASKED = (np.arange(12) % 4 == 1) & (SOURCE != 0)
ASKED = PADS | {"targets": np.where(NEXT, NEXT, -100), "loss": torch_loss}
LABELS = BOTH_WAYS | {"targets": np.where(MASKED, SOURCE, -100)}
# What makes a model, and with which options; its ids; what else is asked.
MODELS = {
    "decoder": (decoder, {}, [IDS], ASKED | {"decode": write}),
    "learned": (decoder, {"learned": True}, [IDS], ASKED),
    "window": (decoder, {"window": 4}, [IDS], ASKED),
    "experts": (decoder, {"experts": True}, [IDS], ASKED),
    "encoder": (encoder, {}, [SOURCE], BOTH_WAYS),
    "both": (encoder, {"upper": 2}, [SOURCE, IDS], ASKED),
    "gpt2": (raw, {"kind": "gpt2"}, [IDS], PADS),
    "llama": (raw, {"kind": "llama"}, [IDS], PADS),
    "bert": (raw, {"kind": "bert"}, [np.where(MASKED, 2, SOURCE)], LABELS),
}


def case(name):
    """Return the arguments of `check_model` for a model."""
    torch.manual_seed(8)
    make, options, ids, asked = MODELS[name]
    names = ("token_ids", "decoder_ids")
    given = dict(zip(names, ids, strict=False))
    return {"model": make(**options)} | given | asked
