"""Fewer bits: its common part, for what comes after it.

Built and explained in the chapter *Fewer bits* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def read_head(file):
    """Return the metadata of a GGUF file's bytes, and what tensors it has.

    file: FileBytes, which stand behind the word GGUF. The second result is
    {name: (shape, number of the type, place of the first byte)}.
    """
    version = file.number("I")
    if version not in (2, 3):
        raise ValueError(
            f"{file.name} is GGUF of version {version}, and 2 and 3 are read: "
            "convert the model with llama.cpp of today."
        )
    tensors, entries = file.number("Q"), file.number("Q")
    meta, listed = {}, {}
    for _ in range(entries):
        name = file.text()
        meta[name] = file.value(file.number("I"))
    for _ in range(tensors):
        name, axes = file.text(), file.number("I")
        if axes > 4 or name in listed:
            raise file.fault(f"has a broken entry for the tensor {name!r:.60}")
        shape = [file.number("Q") for _ in range(axes)][::-1]
        listed[name] = shape, file.number("I"), file.number("Q")
    step = meta.get("general.alignment", 32)
    if type(step) is not int or not 0 < step <= 2**16:
        raise file.fault("has no alignment for its tensors")
    start = file.place + -file.place % step
    return meta, {n: (s, k, start + at) for n, (s, k, at) in listed.items()}


def nibbles(packed):
    """Return whole numbers (C, 32), 0 to 15, from bytes (C, 16)."""
    return np.hstack([packed & 15, packed >> 4]).astype(np.int8)  # (C, 32)


def from_q4_1(blocks):
    """Return weights (C, 32) in float32 from blocks of bytes (C, 20)."""
    head = blocks[:, :4].copy().view("<f2").astype(np.float32)  # (C, 2)
    return head[:, :1] * nibbles(blocks[:, 4:]) + head[:, 1:]


def from_q4_0(blocks):
    """Return weights (C, 32) in float32 from blocks of bytes (C, 18)."""
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)  # (C, 1)
    return scale * (nibbles(blocks[:, 2:]) - 8)


def from_q8_0(blocks):
    """Return weights (C, 32) in float32 from blocks of bytes (C, 34)."""
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)  # (C, 1)
    return scale * blocks[:, 2:].view(np.int8)  # (C, 32)
