"""Distil names, and prefer short answers of SmolLM2.

    python -m benchmarks.preferences

It writes, in eight minutes, what *Learn from your own text* shows in two
tables: five ways in which a small model learns from the Llama of names, and
DPO on SmolLM2 at three rates.
"""

import copy
import json

import numpy as np
import torch

from cellbycell.breaks import TEXT
from cellbycell.common import LlamaConfig, prompt_ids, written
from cellbycell.figures.names_model import stored_config, stored_weights
from cellbycell.figures.preferences import FILE
from cellbycell.names import (
    decode_names,
    initialise,
    read_names,
    split_names,
)
from cellbycell.pytorch import (
    Llama,
    add_lora,
    answer_to,
    filled_llama,
    finish_names,
    generate,
    preference_loss,
    row_kl,
    sampler,
    text_loss,
    token_logs,
)
from cellbycell.smol import END, load_smol, smol_tokenizer

WARM, STEPS, SIZE = 300, 250, 64
WAYS = {
    "data, letters": ("data", None),
    "data, forward": ("data", False),
    "data, reverse": ("data", True),
    "own rows, forward": ("own", False),
    "own rows, reverse": ("own", True),
}
QUESTIONS = [
    "What is the capital of France?",
    "What is the opposite of hot?",
    "What do bees make?",
    "How many days are in a week?",
    "What colour is the sky?",
    "Where do fish live?",
    "What is a cat?",
    "Who wrote Hamlet?",
    "What is rain?",
    "Why do people sleep?",
]
NEW = [
    "What is the capital of Norway?",
    "What is the opposite of big?",
    "What do cows eat?",
    "How many legs has a dog?",
    "What is snow?",
    "Why do birds sing?",
]
LONGEST, RATES, SMOL_STEPS = 24, (0.0001, 0.0003, 0.001), 15


def names_llama():
    """Return the Llama of names, which is the teacher."""
    model = filled_llama(Llama(stored_config()), stored_weights())
    return model.requires_grad_(False)


def small_student(seed):
    """Return a Llama of one layer, not yet trained."""
    sizes = dict(vocab_size=30, num_layers=1, d_model=24, num_heads=2)
    model = Llama(LlamaConfig(**sizes, key_heads=1, d_head=12, d_ff=48))
    initialise(model, seed)
    return model


def letters_loss(model, rows):
    """Return the mean loss of the letters of rows, ()."""
    return -token_logs(model, rows).sum() / written(rows).sum().item()


def teach_names(model, teacher, way, steps, seed, train_rows):
    """Train one way, with a rate that falls to 0; return the losses."""
    whose, reverse = WAYS[way]
    rng, choose = np.random.default_rng(seed), sampler(seed)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - step / steps)
        if whose == "own":
            rows = finish_names(model, np.zeros((SIZE, 1), int), choose)
        else:
            rows = train_rows[rng.integers(len(train_rows), size=SIZE)]
        loss = letters_loss(model, rows)
        if reverse is not None:
            loss = row_kl(model, teacher, rows, reverse)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def told_of(model, teacher, train_rows, held_rows):
    """Return held-out loss, forward and reverse KL, and how many are odd."""
    pieces = {
        f".{name}."[i : i + 3]
        for name in decode_names(train_rows)
        for i in range(len(name))
    }
    dots = np.zeros((1000, 1), int)
    own, theirs = (
        finish_names(m, dots, sampler(99)) for m in (model, teacher)
    )
    odd = [
        any(f".{name}."[i : i + 3] not in pieces for i in range(len(name)))
        for name in decode_names(own)
    ]
    with torch.no_grad():
        held = letters_loss(model, held_rows).item()
        forward = row_kl(model, teacher, theirs, False).item()
        reverse = row_kl(model, teacher, own, True).item()
    return [held, forward, reverse, np.mean(odd)]


def ways_to_learn(seeds=(0, 1)):
    """Return {way: what told_of says}, means of two seeds."""
    teacher, split = names_llama(), split_names(read_names())
    found = {"teacher": [told_of(teacher, teacher, *split)]}
    for seed in seeds:
        start = small_student(seed)
        teach_names(start, teacher, "data, letters", WARM, seed, split[0])
        found.setdefault("start", []).append(told_of(start, teacher, *split))
        for way in WAYS:
            model = copy.deepcopy(start)
            given = teacher, way, STEPS, seed + 10, split[0]
            teach_names(model, *given)
            said = told_of(model, teacher, *split)
            found.setdefault(way, []).append(said)
            print(way, np.round(said, 3).tolist(), flush=True)
    return {
        way: np.round(np.mean(rows, 0), 3).tolist()
        for way, rows in found.items()
    }


def answers_of(model, tokenizer, question, count, seed):
    """Return rows of a question with drawn answers, and where these begin."""
    ids = torch.tensor([prompt_ids(tokenizer, question)] * count)
    with torch.no_grad():
        rows = generate(model, ids, LONGEST, END, choose=sampler(seed))
    return rows.tolist(), ids.shape[1]


def short_pairs(model, tokenizer):
    """Return pairs: a first sentence with its end, and what went on."""
    pairs = []
    for seed, question in enumerate(QUESTIONS):
        rows, start = answers_of(model, tokenizer, question, 4, seed)
        for row in rows:
            own = row[start:]
            said = [tokenizer.decode(own[:k]) for k in range(len(own) + 1)]
            stops = [k for k, x in enumerate(said) if x.endswith(".")]
            stops = [k for k in stops if 3 < k < LONGEST - 1]
            if END not in own and stops:
                first = [*row[: start + stops[0]], END]
                pairs.append((first, row, start))
    return pairs


def answer_logs(model, rows, starts):
    """Return the log-probability of each answer, (B,)."""
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    logs = model(ids[:, :-1]).log_softmax(-1)  # (B, T, N)
    logs = logs.gather(-1, ids[:, 1:, None])[..., 0]  # (B, T)
    pairs = zip(logs, rows, starts, strict=True)
    return torch.stack([x[s - 1 : len(row) - 1].sum() for x, row, s in pairs])


def prefer_short(model, pairs, before, rate, steps=SMOL_STEPS):
    """Train adapters by DPO, two pairs a step; return the last changes."""
    trained = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(trained, weight_decay=0.0)
    rng, seen = np.random.default_rng(0), []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        chosen = rng.choice(len(pairs), 2, replace=False)
        rows = [pairs[i][k] for k in (0, 1) for i in chosen]
        starts = [pairs[i][2] for _ in (0, 1) for i in chosen]
        q = answer_logs(model, rows, starts).view(2, 2)  # (B, C)
        loss = preference_loss(*q, *before[:, chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append((q.detach() - before[:, chosen]).mean(-1).tolist())
    return np.mean(seen[-5:], 0)


def told_of_smol(model, tokenizer):
    """Return how often new answers end, an answer, and a text's loss."""
    ends = []
    for seed, question in enumerate(NEW, start=100):
        rows, start = answers_of(model, tokenizer, question, 4, seed)
        ends += [END in row[start:] for row in rows]
    said = answer_to(model, tokenizer, NEW[2], steps=LONGEST)
    ids = torch.tensor([tokenizer.encode(TEXT).ids])
    return {
        "ends": round(np.mean(ends), 3),
        "answer": said.removesuffix("<|im_end|>"),
        "text": round(text_loss(model, ids), 3),
    }


def smol_by_rate():
    """Return {rate: what DPO did to SmolLM2}."""
    model, tokenizer = load_smol(), smol_tokenizer()
    pairs = short_pairs(model, tokenizer)
    with torch.no_grad():
        before = torch.stack([
            answer_logs(model, rows, [start for *_, start in pairs])
            for rows in ([p[0] for p in pairs], [p[1] for p in pairs])
        ])  # fmt: skip
    found = {"before": told_of_smol(model, tokenizer) | dict(won=0, lost=0)}
    for rate in RATES:
        tuned = add_lora(copy.deepcopy(model), rank=8, alpha=16)
        won, lost = prefer_short(tuned, pairs, before, rate)
        said = told_of_smol(tuned, tokenizer)
        moved = dict(won=round(won, 1), lost=round(lost, 1))
        found[f"rate {rate:g}"] = said | moved
        print(rate, found[f"rate {rate:g}"], flush=True)
    return found | {"pairs": len(pairs)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    smol = smol_by_rate()
    numbers = {
        "pairs": smol.pop("pairs"),
        "weights": sum(w.numel() for w in small_student(0).parameters()),
        "steps": STEPS,
        "smol_steps": SMOL_STEPS,
    }
    taught = {"ways": ways_to_learn(), "smol": smol, **numbers}
    FILE.write_text(json.dumps(taught, indent=1) + "\n", "utf-8")
    print("written:", FILE.name)
