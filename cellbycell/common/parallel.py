"""One model, several machines: its common part, for what comes after it.

Built and explained in the chapter *One model, several machines* of the book.
Written by `make package`: change it in the chapter.
"""

from dataclasses import replace

import numpy as np


def count_letters(rows):
    """Return how many letters and ends of names follow in rows (B, T)."""
    return int(((rows[:, 1:] != 0) | (rows[:, :-1] != 0)).sum())


def part_config(config, size):
    """Return the sizes of a machine's part of a Llama with these sizes.

    Raises ValueError if size does not divide the key heads.
    """
    if config.key_heads % size:
        raise ValueError(f"{config.key_heads} key heads on {size} machines")
    names = "num_heads", "key_heads", "d_ff"
    sizes = {name: getattr(config, name) // size for name in names}
    return replace(config, **sizes)


def cut_weights(tensors, rank, size):
    """Return a machine's part of a Llama's tensors, {name: (out, in)}.

    Raises ValueError if a matrix cannot be cut into equal parts.
    """
    found = dict(tensors)
    for name, w in tensors.items():
        part = name.split(".")[-2]
        if part in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"):
            found[name] = np.split(w, size)[rank]
        elif part in ("o_proj", "down_proj"):
            found[name] = np.split(w, size, axis=1)[rank]
    return found
