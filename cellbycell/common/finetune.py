"""Teach an old model: its common part, for what comes after it.

Built and explained in the chapter *Teach an old model* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def chat_parts(turns):
    """Return the text of turns (role, words) in parts: (text, learned)."""
    parts = []
    for role, words in turns:
        parts.append((f"<|im_start|>{role}\n", False))
        parts.append((f"{words}<|im_end|>", role == "assistant"))
        parts.append(("\n", False))
    return parts


def prompt_ids(tokenizer, question):
    """Return the ids of a question, up to where the answer begins."""
    parts = [*chat_parts([("user", question)]), ("<|im_start|>assistant\n", 0)]
    return tokenizer.encode("".join(text for text, _ in parts)).ids


def answer_targets(parts):
    """Return input ids and targets of a text: 0 where nothing is asked.

    parts: (ids, asked) in turn; an answer has its end. Raises ValueError if
    no token is asked that has one before it.
    """
    ids = [i for part, _ in parts for i in part]
    asked = [yes for part, yes in parts for _ in part]
    if not any(asked[1:]):
        raise ValueError("nothing is asked in this text: leave it out.")
    return ids[:-1], [i * yes for i, yes in zip(ids, asked, strict=True)][1:]


def chat_row(tokenizer, turns):
    """Return input ids and targets of a chat; turns: (role, words)."""
    parts = [(tokenizer.encode(t).ids, yes) for t, yes in chat_parts(turns)]
    return answer_targets(parts)


def pack_rows(texts, length):
    """Return input ids, targets, texts and positions, (4, B, T).

    texts: (ids, targets), which fill rows of this length T in turn; the
    texts of a row are numbered from 1. Pads are 0. Raises ValueError if a
    text is longer than a row.
    """
    rows, start, number = [], length, 0  # as if a row were full
    for ids, targets in texts:
        size = len(ids)
        if size > length:
            raise ValueError(f"a text of {size} tokens, in rows of {length}.")
        if start + size > length:
            rows.append(np.zeros((4, length), dtype=np.int64))
            start, number = 0, 0
        number += 1
        text = ids, targets, [number] * size, range(size)
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


def chat_batches(rows, steps, length):
    """Return packed rows (4, 1, T), one a step: two chats, all in turn."""
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(steps)])
    chosen = order[: 2 * steps].reshape(steps, 2)  # (B, 2)
    return [pack_rows([rows[i] for i in two], length) for two in chosen]
