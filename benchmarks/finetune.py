"""Teach SmolLM2 otherwise, for the tables of *Teach an old model*.

    python -m benchmarks.finetune

It writes, in six minutes, what `cellbycell.figures.finetune` reads: after
as many steps as in the chapter, with adapters elsewhere, at other rates,
without the ends, with old text, or of the whole model.
"""

import copy
import json

import numpy as np
import torch

from cellbycell.breaks import TEXT
from cellbycell.common import chat_batches, chat_row, pack_rows
from cellbycell.figures.finetune import FILE, QUESTIONS, parrot_chats
from cellbycell.pytorch import add_lora, answer_to, teach, text_loss
from cellbycell.smol import END, load_smol, smol_tokenizer

# A text of no parrot, a piece of which may stand in each row.
OLD = """\
The harbour master kept two books. In the first he wrote down every ship \
that came in: its name, its flag, what it carried, and how many men were \
on board. In the second he wrote down what he thought of it. The first \
book was read by the port authority in the capital once a year. The second \
book was read by nobody, and that was why he liked it better.

One morning in late October a small grey ship came in without a flag. It \
moved slowly past the lighthouse, turned once around the old buoy, and \
dropped its anchor in the middle of the bay, where no ship had ever \
anchored before. The harbour master took his telescope and looked for a \
name, but the paint on the bow had been scraped away. There were no men on \
the deck. He opened the first book, wrote the date and the hour, and then \
stopped, because he did not know what to write next.

He sent his assistant out in the rowing boat. The boy came back after an \
hour, wet and pale. "There is nobody on board," he said. "But the stove is \
warm, and there are six plates on the table, and the soup is still hot." \
The harbour master thought about this for a long time. Then he put the \
first book back on the shelf and opened the second.
"""
SOME = "query_proj", "value_proj"
LORA = dict(rank=8, alpha=16)
WAYS = {
    "LoRA, rate 0.01": dict(rate=0.01, lora=LORA),
    "LoRA, rate 0.0001": dict(rate=0.0001, lora=LORA),
    "whole, rate 0.001": dict(rate=0.001),
    "whole, rate 0.0001": dict(rate=0.0001),
    "whole, rate 0.00001": dict(rate=0.00001),
    "q and v, rank 8": dict(rate=0.001, lora=LORA | dict(names=SOME)),
    "q and v, rank 42": dict(
        rate=0.001, lora=dict(rank=42, alpha=84, names=SOME)
    ),
    "no end is asked": dict(rate=0.001, lora=LORA, ends=False),
    "old text beside it": dict(rate=0.001, lora=LORA, old=True),
}


def batches_of(ends=True, old=False):
    """Return the chapter's 30 packed rows, with or without ends asked.

    old: each row has 40 tokens of OLD as well, all of them asked.
    """
    tokenizer = smol_tokenizer()
    rows = [chat_row(tokenizer, turns) for turns in parrot_chats()]
    batches = chat_batches(rows, steps=30, length=64)
    if not ends:
        for _, targets, _, _ in batches:
            targets[targets == END] = 0
    if old:
        ids = tokenizer.encode(OLD).ids
        starts = [40 * (i % (len(ids) // 40)) for i in range(len(batches))]
        texts = [ids[start : start + 41] for start in starts]
        pieces = [pack_rows([(x[:-1], x[1:])], 40) for x in texts]
        for (_, _, text, _), piece in zip(batches, pieces, strict=True):
            piece[2] = text.max() + 1
        both = zip(batches, pieces, strict=True)
        batches = [np.concatenate(pair, axis=-1) for pair in both]
    return batches


def student_of(lora=None):
    """Return SmolLM2, all of it trained, or with adapters."""
    model = copy.deepcopy(load_smol())
    return add_lora(model, **lora) if lora else model.requires_grad_()


def found(rate, lora=None, **rows):
    """Return a training's losses, a text's loss after it, and answers."""
    model, tokenizer = student_of(lora), smol_tokenizer()
    losses = teach(model, batches_of(**rows), rate)
    text_ids = torch.tensor([tokenizer.encode(TEXT).ids])
    return {
        "losses": np.round(losses, 3).tolist(),
        "text": round(text_loss(model, text_ids), 3),
        "answers": {q: answer_to(model, tokenizer, q) for q in QUESTIONS[:4]},
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    FILE.write_text(
        json.dumps({name: found(**way) for name, way in WAYS.items()}) + "\n",
        "utf-8",
    )
    print("written:", FILE.name)
