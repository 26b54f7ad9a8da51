"""What the pictures of the small Llama show, and its parts in PyTorch."""

from functools import cache

import numpy as np
import pytest
import torch

from cellbycell.figures.names_model import stored_config, stored_weights
from cellbycell.names import LETTERS, decode_names
from cellbycell.pytorch import (
    Llama,
    attend,
    filter_logits,
    generate,
    llama_weights,
    sampler,
)
from cellbycell.pytorch import llama as module

HEADS = [0, 1, 2, 3]
COLUMNS = 13


@cache
def llama():
    """Return the stored Llama."""
    model = Llama(stored_config())
    stored = stored_weights()
    for name, weight in llama_weights(model).items():
        weight.data = torch.tensor(stored[name])
    return model.requires_grad_(False)


def ids_of(name):
    return [LETTERS.index(letter) for letter in f".{name}"]


def read(ids, off=(), rotary=True, sees=None):
    """Return logits (T, N) and the weights of attention (L, H, T, T).

    off: pairs (layer, head) of silent heads; sees: of how many letters.
    """
    ages = torch.arange(len(ids))[:, None] - torch.arange(len(ids))
    looks = []

    def grouped(query, key, value, mask):
        groups = query.unflatten(1, (key.shape[1], -1))  # (B, C, H // C, T, K)
        mask = mask & (ages < (sees or len(ids)))
        found, weights = attend(
            groups, key[:, :, None], value[:, :, None], mask
        )
        found = found.flatten(1, 2)  # (B, H, T, K)
        found[:, [head for layer, head in off if layer == len(looks)]] = 0
        looks.append(weights.flatten(1, 2)[0])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "attend_grouped", grouped)
        if not rotary:
            patch.setattr(module, "rotary_halves", lambda x, *_: x)
        logits = llama()(torch.tensor([ids]))[0]
    return logits, torch.stack(looks)


def bars(shares, wide, off=0):
    return "".join(
        f"M{3 + off + 11.8 * n:.1f} 100V{100 - 90 * share:.1f}h{wide}V100z"
        for n, share in enumerate(shares)
    )


LOOK = [
    ("moldavia", 8, HEADS, HEADS, [0], 13),
    ("moldavia", 5, HEADS, [0, 1, 2], [0], 13),
    ("switzerland", 3, [1, 2], HEADS, [], 11),
    ("sri lanka", 9, HEADS, HEADS, [0], 3),
    ("vietnam-qq", 10, [], [], [0], 13),
    ("a", 0, HEADS, HEADS, [0], 13),
]


def look(name, query, layer0, layer1, rotary, sees):
    ids, last = ids_of(name), len(name)
    kept = [*((0, h) for h in layer0), *((1, h) for h in layer1)]
    off = [(n, h) for n in (0, 1) for h in HEADS if (n, h) not in kept]
    whole, now = read(ids), read(ids, off, bool(rotary), sees)
    is_whole = not off and rotary and sees > last

    def losses(logits):
        logs = logits.log_softmax(-1)[range(last), ids[1:]]
        return (-logs).tolist()

    def put(part, texts):
        for s in range(COLUMNS):
            parts[f"{part}-{s}"] = texts[s] if s < len(texts) else ""

    parts = {"loss": "loss", "less": "parts off"}
    put("letter", [{0: ".", 27: "␣"}.get(n, LETTERS[n]) for n in ids])
    rows = {"loss": losses(whole[0]), "less": losses(now[0])}
    for part, row in rows.items():
        texts = [f"{loss:.{1 if loss < 9.95 else 0}f}" for loss in row]
        put(part, [] if part == "less" and is_whole else ["", *texts])
    for layer, heads in enumerate(now[1]):
        for head, weights in enumerate(heads[:, query, : query + 1]):
            parts[f"{layer}-{head}"] = f"head {head}"
            texts = [f"{w:.2f}".removeprefix("0") for w in weights]
            texts = ["1" if text == "1.00" else text for text in texts]
            put(f"{layer}-{head}", [t if t >= ".1" else "" for t in texts])
    begun = f"“{name[:query]}”" if query else "the beginning"
    parts["begun"] = f"After {begun}, the heads of layer 0 look at"
    probs = now[0][query].softmax(-1)
    parts["next"] = bars(probs.tolist(), 9)
    words = ["the end", *LETTERS[1:27], "a space", *LETTERS[28:]]
    first, second, third = (
        f"{words[n]} ({probs[n]:.2f})" for n in probs.topk(3).indices
    )
    less = f", and {np.mean(rows['less']):.2f} with parts off"
    said = f"The mean loss of the letters is {np.mean(rows['loss']):.2f}"
    return (
        f"After {begun}, the model expects {first}, {second} or {third}. "
        f"{said}{'' if is_whole else less}.",
        parts,
    )


def noise_of(seed):
    """Yield Gumbel noise (1, N) for each letter, as write.js draws it."""
    mask = 2**32 - 1
    while True:
        row = []
        for _ in LETTERS:
            x = seed = (seed + 0x6D2B79F5) & mask
            x = (x ^ x >> 15) * (x | 1) & mask
            x ^= x + ((x ^ x >> 7) * (x | 61) & mask) & mask
            row.append(((x ^ x >> 14) & mask) / 2**32 + 2**-33)
        yield -np.log(-np.log([row]))


NAMES = [
    ("san", 1, 30, 1, 0, 1),
    ("san", 0.3, 30, 1, 0, 2),
    ("", 2, 5, 1, 0, 3),
    ("fin", 2, 30, 0.7, 0, 4),
    ("la r", 2, 30, 1, 0.2, 5),
    ("m", 1.5, 8, 0.9, 0.05, 50),
    ("zz", 3, 30, 0, 0, 1),
]


def names(name, temperature, k, p, least, draw):
    settings = dict(temperature=temperature, k=k, p=p, min_p=least)
    given, noise, parts = torch.tensor([ids_of(name)]), noise_of(draw), {}
    for i in range(8):
        rows = generate(
            llama(),
            given,
            20 - len(name),
            end_id=0,
            choose=lambda logits: sampler([next(noise)], **settings)(logits),
        )
        (parts[f"name-{i}"],) = decode_names(rows)
    logits = llama()(given)[0, -1]
    kept = filter_logits(logits, **settings).softmax(-1)
    probs = (logits / temperature).softmax(-1)
    parts["all"] = bars(probs.tolist(), 10)
    parts["kept"] = bars(kept.tolist(), 6, 2)
    return (
        f"After “{name}”, {(kept > 0).sum()} of 30 letters are kept, with "
        f"{probs[kept > 0].sum():.2f} of the probability.",
        parts,
    )
