"""Fewer bits: its common part, for what comes after it.

Built and explained in the chapter *Fewer bits* of the book.
Written by `make package`: change it in the chapter.
"""

import math
import struct

import numpy as np


class FileBytes:
    """The bytes of a file, from the first to the last, and never beyond."""

    def __init__(self, data, name):
        self.data, self.name, self.place = data, name, 0

    def fault(self, words):
        return ValueError(f"{self.name} {words}: download the file again.")

    def take(self, size):
        if size > len(self.data) - self.place:
            raise self.fault("is cut off")
        self.place += size
        return self.data[self.place - size : self.place]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def text(self):
        try:
            return self.take(self.number("Q")).decode()
        except UnicodeDecodeError:
            raise self.fault("has a text that is not UTF-8") from None

    def value(self, kind, depth=0):
        if kind == 8:
            return self.text()
        if kind == 9 and depth < 4:  # a list
            kind, size = self.number("I"), self.number("Q")
            # Each takes a byte or more: no list is longer than what is left.
            if size > len(self.data) - self.place:
                raise self.fault("is cut off")
            return [self.value(kind, depth + 1) for _ in range(size)]
        if kind == 9 or kind > 12:
            raise self.fault(f"has an entry of the unknown type {kind}")
        return self.number("BbHhIif?..Qqd"[kind])


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


BLOCKS = {  # a type's number: its name, weights and bytes of a block, reader
    0: ("F32", 1, 4, lambda blocks: np.frombuffer(blocks, "<f4").copy()),
    1: ("F16", 1, 2, lambda blocks: np.frombuffer(blocks, "<f2")),
    2: ("Q4_0", 32, 18, from_q4_0),
    3: ("Q4_1", 32, 20, from_q4_1),
    8: ("Q8_0", 32, 34, from_q8_0),
}


def read_tensor(file, name, shape, kind, place):
    """Return a tensor in float32 from the bytes of its file."""
    if kind not in BLOCKS:
        known = ", ".join(own for own, *_ in BLOCKS.values())
        raise ValueError(
            f"{name} has the type {kind}, and {known} are read: take the "
            "model's file in one of these."
        )
    _, weights, size, read = BLOCKS[kind]
    if math.prod(shape) % weights or shape and shape[-1] % weights:
        raise file.fault(f"has {name} in blocks that do not fill its rows")
    file.place = place
    blocks = file.take(math.prod(shape) // weights * size)
    blocks = np.frombuffer(blocks, np.uint8).reshape(-1, size)  # (C, F)
    weights = read(blocks).astype(np.float32, copy=False)
    return weights.reshape(shape)  # (..., D)
