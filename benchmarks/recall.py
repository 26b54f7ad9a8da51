"""Train one head to recall more and more things, by a state or by softmax.

    python -m benchmarks.recall

It writes, in ten minutes, what *Attention without softmax* draws: the share
of questions that are answered, by the number of things in a text.
"""

import json
import sys

import torch

from cellbycell.common import recall_rows
from cellbycell.figures.linear_attention_plots import RECALL as FILE
from cellbycell.names import initialise
from cellbycell.pytorch import StateModel, learn, recall_loss

THINGS = (4, 8, 12, 16, 24, 32)
MODELS = (("delta", 8), ("delta", 16), ("rotary", 8))  # rule, width of a key
# The better of the two: with 0.02 some trainings of softmax never begin.
RATES = {"delta": 0.02, "rotary": 0.01}
LONGER = (("delta", 8, 16),)


def answered(rule, d_head, things, steps=1000, seed=0):
    """Return the share of right answers about 500 new texts."""
    model = StateModel(9 * things, 32, d_head, rule)
    initialise(model, seed)
    texts = recall_rows(4000, 1, things)
    rate = RATES[rule]
    learn(model, texts, steps, rate, seed=seed, loss_of=recall_loss)
    rows = torch.tensor(recall_rows(500, 2, things))
    with torch.no_grad():
        logits = model(rows[:, :-things])[:, -things:]  # (B, T, N)
    right = logits.argmax(-1) == rows[:, -things:]
    return round(right.double().mean().item(), 3)


def shares(seeds=(0, 1)):
    """Return what the picture shows, as JSON has it."""
    return {
        "things": THINGS,
        "steps": 1000,
        "shares": {
            f"{rule} {d_head}": [
                [answered(rule, d_head, n, seed=seed) for n in THINGS]
                for seed in seeds
            ]
            for rule, d_head in MODELS
        },
        "longer": {
            f"{rule} {d_head} {n}": [
                answered(rule, d_head, n, 3000, seed) for seed in seeds
            ]
            for rule, d_head, n in LONGER
        },
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    FILE.write_text(json.dumps(shares()) + "\n", "utf-8")
    print("written:", FILE.name, file=sys.stderr)
