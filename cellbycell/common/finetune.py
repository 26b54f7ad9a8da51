"""Teach an old model: its common part, for what comes after it.

Built and explained in the chapter *Teach an old model* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def answer_targets(prompt, answer):
    """Return the input ids and the targets of a text: 0 within the prompt.

    prompt, answer: ids, at least one each; the answer has its end. Raises
    ValueError if one of them is empty.
    """
    if len(prompt) == 0 or len(answer) == 0:
        raise ValueError("a prompt or an answer is empty: leave it out.")
    ids = [*prompt, *answer]
    return ids[:-1], [0] * (len(prompt) - 1) + [*answer]


def pack_rows(pairs, length):
    """Return input ids, targets, texts and positions, (4, B, T).

    pairs: (prompt, answer), which fill rows of this length T in turn; the
    texts of a row are numbered from 1. Pads are 0. Raises ValueError if a
    text is longer than a row.
    """
    rows, start, number = [], length, 0  # as if a row were full
    for prompt, answer in pairs:
        ids, targets = answer_targets(prompt, answer)
        size = len(ids)
        if size > length:
            raise ValueError(f"a text of {size} tokens, in rows of {length}.")
        if start + size > length:
            rows.append(np.zeros((4, length), dtype=np.int64))
            start, number = 0, 0
        number += 1
        positions = range(size)
        text = ids, targets, [number] * size, positions
        rows[-1][:, start : start + size] = text
        start += size
    return np.stack(rows, axis=1)  # (4, B, T)


def block_mask(texts):
    """Return the mask of packed rows, (B, T, S): own text, not the future.

    texts (B, T): the number of each token's text.
    """
    same = texts[:, :, None] == texts[:, None, :]  # (B, T, S)
    return same & np.tri(texts.shape[1], dtype=bool)


def projections(model, names=None):
    """Return (part, name) of each matrix of a Llama, or of those named."""
    attention = "query_proj", "key_proj", "value_proj", "output_proj"
    names = names or (*attention, "gate", "up", "down")
    layers = model.layers
    parts = [p for x in layers for p in (x.attention, x.feed_forward)]
    return [(p, name) for p in parts for name in names if hasattr(p, name)]
