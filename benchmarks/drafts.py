"""Let SmolLM2's own text draft for it: calls, guesses, and a ratio of times.

    python -m benchmarks.drafts

It writes what *A draft and a judge* shows. The counts are the same on any
machine; the ratio is that of one run, on one thread.
"""

import json
import time

import torch

from cellbycell.figures.speculative import FILE, SENTENCE
from cellbycell.pytorch import generate, look_up, speculate
from cellbycell.smol import chat, load_smol, smol_tokenizer

PROMPTS = {
    "copy": f"Repeat this text word for word:\n{SENTENCE}",
    "a question": "Why is the sky blue?",
    "a story": "Write a short story about a harbour master.",
}
TOKENS, COUNT = 40, 8


def ids_of(prompt):
    """Return the ids (1, T) of a prompt in the model's template."""
    return torch.tensor([smol_tokenizer().encode(chat(prompt)).ids])


def by_lookup(prompt):
    """Return the ids that are written with guesses, and the rounds."""
    given = dict(count=COUNT, temperature=0)
    return speculate(load_smol(), look_up, ids_of(prompt), TOKENS, **given)


def timed(run):
    """Return what a function returns, and the seconds that it worked."""
    start = time.process_time()
    return run(), time.process_time() - start


def measured(prompt):
    """Return the counts of a prompt, and how many times as fast it was."""
    ids = ids_of(prompt)
    alone, plain = timed(lambda: generate(load_smol(), ids, TOKENS))
    (found, rounds), drafted = timed(lambda: by_lookup(prompt))
    if not torch.equal(found, alone):
        raise ValueError(f"the text of {prompt!r} is not the model's own.")
    guessed, right = (sum(counts) for counts in zip(*rounds, strict=True))
    ratio = f"{plain / drafted:.1f}"
    return dict(calls=len(rounds), guessed=guessed, right=right, ratio=ratio)


if __name__ == "__main__":
    torch.set_num_threads(1)
    generate(load_smol(), ids_of("Hello."), 3)  # the first calls are slower
    rows = {name: measured(prompt) for name, prompt in PROMPTS.items()}
    FILE.write_text(json.dumps(rows) + "\n", "utf-8")
    print("written:", FILE.name, rows)
