"""Plant sixty bugs that people make, and count those that the kit sees.

    python -m benchmarks.bugs

Each is a part of a correct model's code, of its loss or of its decoding, and
what stands there instead; the kit is first asked about the correct models.
"""

import re
from inspect import getsource
from types import SimpleNamespace

import keras
import numpy as np
import torch
import torch.nn.functional as F
from keras import layers, ops
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM


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


def in_keras(lower=0, upper=0):
    """Return a Keras model; its decoder keeps layers' inputs in 16 slots."""
    norm = layers.LayerNormalization

    class Layer(layers.Layer):
        def __init__(self, crossed):
            super().__init__()
            self.attention = layers.MultiHeadAttention(4, 8)
            self.cross = layers.MultiHeadAttention(4, 8) if crossed else None
            self.norms = [norm() for _ in range(2 + crossed)]
            self.widen = layers.Dense(64, activation="gelu")
            self.narrow, self.dropout = layers.Dense(32), layers.Dropout(0.1)

        def call(self, x, mask, memory=None, read=None, start=0, kept=None):
            y = now_kept = self.norms[0](x)
            if kept is not None:
                now_kept = ops.slice_update(kept, (0, start, 0), y)
            x = x + self.attention(y, now_kept, attention_mask=mask)
            if self.cross:
                y = self.norms[2](x)
                x = x + self.cross(y, memory, attention_mask=read)
            y = self.narrow(self.widen(self.norms[1](x)))
            return x + self.dropout(y), now_kept

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = layers.Embedding(48, 32)
            self.places = layers.Embedding(16, 32)
            self.linear = layers.Dense(48)
            self.lower = [Layer(False) for _ in range(lower)]
            self.upper = [Layer(lower > 0) for _ in range(upper)]

        def call(self, ids, decoder_ids=None, start=0, kept=None):
            memory, read = None, (ids != 0)[:, None]
            if lower:
                memory = self.table(ids) + self.places(np.arange(ids.shape[1]))
                for layer in self.lower:
                    memory, _ = layer(memory, read)
                if not upper:
                    return self.linear(memory)
                ids = decoder_ids
            end, now_kept = start + ids.shape[1], []
            new, slots = np.arange(start, end), np.arange(16 if kept else end)
            mask = (slots <= new[:, None])[None]
            x = self.table(ids) + self.places(new)
            for i, layer in enumerate(self.upper):
                cache = {"start": start, "kept": kept[i] if kept else None}
                x, y = layer(x, mask, memory, read, **cache)
                now_kept.append(y)
            return (self.linear(x), now_kept) if kept else self.linear(x)

    return Model()


def raw(kind):
    """Return a small raw model of Transformers."""
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


def keras_loss(logits, targets):
    """Return the mean cross-entropy of what is not a pad."""
    entropy = keras.losses.sparse_categorical_crossentropy
    real = ops.cast(targets != 0, "float32")
    losses = entropy(targets, logits, from_logits=True) * real
    return ops.sum(losses) / ops.sum(real)


def write(model, ids):
    """Return the ids, and six that are written after them, with a cache."""
    new, past = ids, None
    for _ in range(6):
        output = model(new, past_key_values=past, use_cache=True)
        new, past = output.logits[:, -1:].argmax(-1), output.past_key_values
        ids = torch.cat([ids, new], 1)
    return ids


def step(model, ids, cache):
    """Return a Keras decoder's logits of new ids, and the cache."""
    start, kept = cache or (0, [ops.zeros((len(ids), 16, 32))] * 2)
    logits, kept = model(ids, start=start, kept=kept)
    return logits, (start + ids.shape[1], kept)


def rows(seed, *lengths):
    """Return rows of 12 ids, and of the next ids; pads after the lengths."""
    rng = np.random.default_rng(seed)
    found = np.stack([rng.permutation(45)[:13] + 3 for _ in lengths])
    found[np.arange(13) >= np.array(lengths)[:, None]] = 0
    return found[:, :-1], found[:, 1:]


(IDS, NEXT), (SOURCE, _) = rows(0, 13, 11, 9), rows(1, 10, 12, 9)
# Each fourth token of a source is masked for BERT, and to be predicted.
MASKED = (np.arange(12) % 4 == 1) & (SOURCE != 0)
PADS, BOTH_WAYS = {"pad_id": 0}, {"pad_id": 0, "causal": False}
IGNORED = np.where(NEXT, NEXT, -100).tolist()
TORCH = PADS | {"targets": IGNORED, "loss": torch_loss}
KERAS = PADS | {"targets": NEXT.tolist(), "loss": keras_loss}
LABELS = BOTH_WAYS | {"targets": np.where(MASKED, SOURCE, -100).tolist()}
# What makes a model, and its options; its ids, and what else the kit gets.
MODELS = {
    "decoder": (decoder, {}, [IDS], TORCH | {"decode": write}),
    "learned": (decoder, {"learned": True}, [IDS], TORCH),
    "window": (decoder, {"window": 4}, [IDS], TORCH),
    "experts": (decoder, {"experts": True}, [IDS], TORCH),
    "encoder": (encoder, {}, [SOURCE], BOTH_WAYS),
    "both": (encoder, {"upper": 2}, [SOURCE, IDS], TORCH),
    "GPT-2": (raw, {"kind": "gpt2"}, [IDS], PADS),
    "Llama": (raw, {"kind": "llama"}, [IDS], PADS),
    "BERT": (raw, {"kind": "bert"}, [np.where(MASKED, 2, SOURCE)], LABELS),
    "K-decoder": (in_keras, {"upper": 2}, [IDS], KERAS | {"step": step}),
    "K-encoder": (in_keras, {"lower": 2}, [SOURCE], BOTH_WAYS),
    "K-both": (in_keras, {"lower": 2, "upper": 2}, [SOURCE, IDS], KERAS),
}


def case(name, old=None, new=None):
    """Return a function that makes a model, and what to ask it with."""

    def made():
        torch.manual_seed(8)
        keras.utils.set_random_seed(8)
        make, options, ids, asked = MODELS[name]
        asked = asked | {"make": make}
        if old:
            codes = {k: getsource(f) for k, f in asked.items() if callable(f)}
            [key] = (k for k, code in codes.items() if old in code)
            before, after = codes[key].split(old)
            exec(before + new + after, names := dict(globals()))
            asked[key] = names[asked[key].__name__]
        model = asked.pop("make")(**options)
        if isinstance(model, keras.Model):
            model(*ids)  # makes its weights
        return model, tuple(x.tolist() for x in ids), asked

    return made


def read(table):
    """Return the bugs of a table, by their names."""
    entry = r"^(\S.*)\n    (.+?) \| (.+?)\s+=> (.*(?:\n    [^|\n]*$)*)"
    entries = re.findall(entry, table, re.M)
    return {name: case(*change) for name, *change in entries}


PARENTS = {f"correct {name}": case(name) for name in MODELS}
# The name of each bug; which model has it, and what stands instead of what.
CACHES_MASKS_LOSSES = read(r"""
a cached chunk's causal mask starts at the oldest key
    decoder | (slots <= new)[None] => (slots <= new - start)[None]
a cached chunk has the position of its first token
    learned | (position_ids) => (position_ids[:, : 1 if start else None])
keys are turned again when they are cached
    decoder | st = key, => st = turn(key, torch.arange(key.shape[2])[None]),
position_ids are taken, and not used
    learned | (position_ids) => (slots[start:])
with a cache the window is forgotten
    window | if window: => if window and not start:
the window is cut before all of a chunk has read
    window | interleave(2, 1) => interleave(2, 1)[:, :, -max(4, x.shape[1]) :]
the list of an empty cache is filled, and kept
    decoder | list(past_key_values => (past_key_values
each step of decoding feeds all ids to the cache
    decoder | model(new, past_key_values => model(ids, past_key_values
left pads read nothing, and a softmax of -inf is NaN
    decoder | -1e9 => -float("inf")
the mask comes after the softmax
    decoder | masked_fill(~allowed, -1e9).softmax(-1) => softmax(-1) * allowed
a raw GPT-2 has the first row's positions in all rows
    GPT-2 | return model
    => model.transformer.wpe.register_forward_pre_hook(lambda _, x: x[0][:1])
    return model
a raw GPT-2 gets no mask after the first call
    GPT-2 | return model
    => def change(mask, kwargs):
        return None if kwargs["past_key_values"] else mask
    return meddle(model, model.transformer, "attention_mask", change)
a raw BERT's mask gets lost
    BERT | return model
    => return meddle(model, model.bert, "attention_mask", lambda *_: None)
a raw BERT's labels of -100 become pads, and count
    BERT | return model
    => return meddle(model, model, "labels", lambda y, _: y.clamp(min=0))
each row has the first one's mask
    encoder | (ids == 0)[:, None] => (ids[:1] == 0).expand_as(ids)[:, None]
the heads' masks are those of other rows
    encoder | repeat_interleave(4, 0) => repeat(4, 1, 1)
cross-attention reads pads
    both | layer(x, memory, future, unread) => layer(x, memory, future)
the loss shifts targets that are shifted already
    decoder | logits.mT, targets) => logits[:, :-1].mT, targets[:, 1:])
the loss reshapes where it should transpose
    decoder | logits.mT => logits.reshape(len(logits), 48, -1)
targets of -100 become 0, and count
    decoder | logits.mT, targets => logits.mT, targets.clamp(min=0)
the loss is a new tensor, which knows no model
    decoder | mT, targets) => mT, targets).detach().requires_grad_()
keras: a call moves the cache's end by one
    K-decoder | (start + ids.shape[1], kept) => (start + 1, kept)
keras: the cache's empty slots are read
    K-decoder | [:, None])[None] => [:, None])[None] | (slots >= end)
keras: with a cache a chunk sees its future
    K-decoder | new[:, None] => (end - 1 if start else new[:, None])
keras: all after the cache's eighth slot overwrite it
    K-decoder | (0, start, 0) => (0, min(start, 7), 0)
keras: the mask hides queries, not keys
    K-encoder | (ids != 0)[:, None] => (ids != 0)[:, :, None]
keras: cross-attention has the decoder's mask
    K-both | memory, read, ** => memory, (ids != 0)[:, None], **
keras: a mask of pads takes the causal one's place
    K-both | (slots <= new[:, None])[None] => (ids != 0)[:, None]
keras: the loss takes logits for probabilities
    K-decoder | from_logits=True => from_logits=False
keras: the loss is a mean over pads too
    K-decoder | ops.sum(losses) / ops.sum(real) => ops.mean(losses)
""")
THE_REST = read(r"""
positions are counted along the batch
    learned | places(position_ids) => places.weight[: len(ids), None]
the rotation goes along the heads
    decoder | at[:, None, :, None] => torch.arange(x.shape[1])[:, None, None]
the heads are joined without a transpose
    decoder | .transpose(1, 2).flatten(2) => .reshape(x.shape)
the norm is over the batch too
    decoder | F.rms_norm(x, x.shape[-1:]) => F.rms_norm(x, x.shape)
the softmax is over the queries
    decoder | -1e9).softmax(-1) => -1e9).softmax(-2)
all heads read with the first one's weights
    decoder | query @ key.mT => query[:, :1] @ key[:, :1].mT
each layer's input is detached
    decoder | layer(x, allowed => layer(x.detach(), allowed
a real token's row is taken for padding
    decoder | nn.Embedding(48, 32), => nn.Embedding(48, 32, IDS[0, 3]),
the router's softmax is over the tokens
    experts | router(x).softmax(-1) => router(x).softmax(1)
what the experts return is not put back in order
    experts | torch.cat(y)[order.argsort()] => torch.cat(y)
the router's weights are not used
    experts | weight[..., None] * y => y
each layer is given the embeddings
    encoder | x = layer(x, pads => x = layer(self.embed(ids), pads
the table of positions shrinks at each call
    encoder | .mul(0.5) => .mul_(0.5)
each call seeds the generator
    encoder | x, pads = self => x, pads = torch.manual_seed(0) and self
rows are mixed where a reshape stands for a transpose
    encoder | return x.transpose(0, 1) => return x.reshape(-1, len(ids), 32)
the last token of each source is never read
    both | (ids == 0)[:, None] => (F.pad(ids[:, 1:], (0, 1)) == 0)[:, None]
cross-attention reads the decoder itself
    both | layer(x, memory, future => layer(x, x, future
a raw BERT is left as a decoder
    BERT | _range=0.2, => _range=0.2, is_decoder=True,
a raw Llama's rounded vectors have no gradient
    Llama | return model
    => model.model.norm.register_forward_hook(lambda *x: x[2].round())
    return model
a raw Llama's log-softmax goes along the tokens
    Llama | return model
    => model.lm_head.register_forward_hook(lambda *x: x[2].log_softmax(1))
    return model
keras: group norms, over the tokens, stand for layer norms
    K-decoder | LayerNormalization => GroupNormalization
keras: ids past 31 are read as one
    K-decoder | x = self.table(ids) => x = self.table(ops.minimum(ids, 31))
keras: the encoder has no positions
    K-encoder | self.places(np.arange(ids.shape[1])) => 0
keras: the encoder only looks back
    K-encoder | attention_mask=mask => use_causal_mask=True
keras: cross-attention reads the embeddings
    K-both | memory, _ = layer(memory => _, _ = layer(memory
keras: cross-attention's queries and values are exchanged
    K-both | cross(y, memory, => cross(memory, y,
keras: batch norms stand for layer norms
    K-both | LayerNormalization => BatchNormalization
keras: the dropout is always on
    K-encoder | dropout(y) => dropout(y, training=True)
keras: the encoder's output is detached
    K-both | cross(y, memory, => cross(y, ops.stop_gradient(memory),
keras: the decoder shifts ids that are shifted already
    K-both | = decoder_ids => = ops.pad(decoder_ids, ((0, 0), (1, 0)))[:, :-1]
""")
BUGS = CACHES_MASKS_LOSSES | THE_REST


def main():
    """Print what the kit says of each model, and how many bugs it sees."""
    from cellbycell.checks import check_model

    seen = {}
    for name, make in (PARENTS | BUGS).items():
        model, args, asked = make()
        report = check_model(model, *args, **asked)
        seen[name] = [
            f"{check} ({status})"
            for status in ("failed", "warning", "error")
            for check in report.with_status(status)
        ]
        print(f"{name}: {', '.join(seen[name]) or '-'}", flush=True)
    print("Unseen:", *(name for name in BUGS if not seen[name]), sep="\n  ")
    counts = [
        f"{sum(bool(seen[name]) for name in bugs)} of {len(bugs)}"
        for bugs in (BUGS, CACHES_MASKS_LOSSES, THE_REST)
    ]
    print("Seen: {}; caches, masks, losses: {}; the rest: {}".format(*counts))


if __name__ == "__main__":
    main()
