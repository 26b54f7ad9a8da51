"""Look inside SmolLM2 once, for the moving pictures of *Look inside*.

    python -m benchmarks.inside

It writes, in ten seconds, what `cellbycell.figures.inside` shows.
"""

import json

import torch

from cellbycell.figures.inside import FILE, TEXT
from cellbycell.pytorch import attend, rotary_halves, split_heads
from cellbycell.smol import load_smol, smol_tokenizer

PROMPTS = {
    "The capital of France is": " Paris",
    "The opposite of hot is": " cold",
    "The Eiffel Tower is in the city of": " Paris",
    "Bees collect nectar and make": " honey",
}
SHOWN = 4  # of the likeliest words


@torch.no_grad()
def look(model, ids):
    """Return the streams (T, D) of a text, and the weights (H, T, S)."""
    x = model.embedding(torch.tensor([ids]))  # (1, T, D)
    steps = torch.arange(len(ids))
    mask = steps <= steps[:, None]  # (T, S)
    streams, weights = [x[0]], []
    for layer in model.layers:
        part, given = layer.attention, layer.attention_norm(x)
        query = split_heads(part.query_proj(given), part.num_heads)
        key = split_heads(part.key_proj(given), part.key_heads)
        query = rotary_halves(query, steps, part.base)
        key = rotary_halves(key, steps, part.base)
        key = key.repeat_interleave(part.num_heads // part.key_heads, 1)
        weights.append(attend(query, key, key, mask)[1][0])
        x, _ = layer(x, steps, mask)
        streams.append(x[0])
    return streams, weights


@torch.no_grad()
def early(model, tokenizer, prompt, word):
    """Return for each layer the likeliest words and the rank of one."""
    streams, _ = look(model, tokenizer.encode(prompt).ids)
    (answer,) = tokenizer.encode(word).ids
    steps = []
    for x in streams:
        logits = model.norm(x[-1]) @ model.embedding.weight.T  # (N,)
        best = logits.softmax(-1).topk(SHOWN)
        words = [tokenizer.decode([i]) for i in best.indices.tolist()]
        shares = [round(share, 2) for share in best.values.tolist()]
        rank = int((logits > logits[answer]).sum()) + 1
        steps.append({"words": words, "shares": shares, "rank": rank})
    return steps


def states():
    """Return what the pictures show, as JSON has it."""
    model, tokenizer = load_smol(), smol_tokenizer()
    ids = tokenizer.encode(TEXT).ids
    _, weights = look(model, ids)
    return {
        "early": [
            {"prompt": prompt, "answer": word}
            | {"layers": early(model, tokenizer, prompt, word)}
            for prompt, word in PROMPTS.items()
        ],
        "tokens": [tokenizer.decode([i]) for i in ids],
        "weights": [
            [
                [round(100 * w) for t, row in enumerate(head)
                 for w in row[: t + 1]]
                for head in layer.tolist()
            ]
            for layer in weights
        ],
    }  # fmt: skip


if __name__ == "__main__":
    FILE.write_text(json.dumps(states()) + "\n", "utf-8")
    print("written:", FILE.name)
