"""Fewer bits: its common part, for what comes after it.

Built and explained in the chapter *Fewer bits* of the book.
Written by `make package`: change it in the chapter.
"""

import math
import struct
from pathlib import Path

import numpy as np


def to_q8_0(w):
    """Return bytes (C, 34) for w (..., D): a float16 scale, then 32 int8.

    D is a multiple of 32; w within 500,000, so that float16 holds the scale.
    """
    blocks = np.asarray(w, np.float32).reshape(-1, 32)  # (C, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    inverse = np.where(scale == 0, 0, 1 / np.where(scale == 0, 1, scale))
    steps = (blocks * inverse).astype(float)
    whole = np.trunc(steps + np.copysign(0.5, steps)).astype(np.int8)
    head = scale.astype("<f2").view(np.uint8)  # (C, 2)
    return np.hstack([head, whole.view(np.uint8)])  # (C, 34)


def to_q4_0(w):
    """Return bytes (C, 18) for w (..., D): a float16 scale, then 32 nibbles.

    D is a multiple of 32; w within 500,000, so that float16 holds the scale.
    """
    blocks = np.asarray(w, np.float32).reshape(-1, 32)  # (C, 32)
    largest = np.abs(blocks).argmax(1)[:, None]  # (C, 1)
    scale = np.take_along_axis(blocks, largest, 1) / np.float32(-8)
    inverse = np.where(scale == 0, 0, 1 / np.where(scale == 0, 1, scale))
    levels = (blocks * inverse + np.float32(8.5)).astype(np.uint8).clip(0, 15)
    nibbles = levels[:, :16] | levels[:, 16:] << 4  # (C, 16)
    head = scale.astype("<f2").view(np.uint8)  # (C, 2)
    return np.hstack([head, nibbles])  # (C, 18)


def from_q8_0(blocks):
    """Return weights (C, 32) in float32 from blocks of bytes (C, 34)."""
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)  # (C, 1)
    return scale * blocks[:, 2:].view(np.int8)  # (C, 32)


def from_q4_0(blocks):
    """Return weights (C, 32) in float32 from blocks of bytes (C, 18)."""
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)  # (C, 1)
    low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4  # (C, 16), (C, 16)
    levels = np.hstack([low, high]).astype(np.int8) - 8  # (C, 32)
    return scale * levels


def read_value(file, kind):
    """Return the next value of a GGUF file, of the type with this number.

    kind: 8 for a text, 9 for a list; others index the letters of struct, such
    as 4 for uint32 and 10 for uint64.
    """
    if kind == 9:  # a list
        kind, count = struct.unpack("<IQ", file.read(12))
        return [read_value(file, kind) for _ in range(count)]
    if kind == 8:  # a text
        return file.read(read_value(file, 10)).decode()
    form = "<" + "BbHhIif?..Qqd"[kind]
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def read_tensor(data, shape, kind, place):
    """Return a tensor in float32 from its bytes in a GGUF file.

    kind: 0 for F32, 1 for F16, 2 for Q4_0, 8 for Q8_0. Raises ValueError for
    another type.
    """
    floats = {0: "<f4", 1: "<f2"}
    if kind in floats:
        return np.ndarray(shape, floats[kind], data, place).astype(np.float32)
    blocks = {2: (18, from_q4_0), 8: (34, from_q8_0)}
    if kind not in blocks:
        raise ValueError(f"type {kind} is not one of F32, F16, Q4_0 and Q8_0")
    size, read = blocks[kind]
    blocks = np.ndarray((math.prod(shape) // 32, size), np.uint8, data, place)
    return read(blocks).reshape(shape)  # (..., D)


def read_gguf(path):
    """Return the metadata of a GGUF file, and its tensors in float32.

    Raises ValueError for another kind of file, or another type of block.
    """
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF" or read_value(file, 4) not in (2, 3):
            raise ValueError(f"{Path(path).name} is no GGUF file of today.")
        count, entries = read_value(file, 10), read_value(file, 10)
        meta, places = {}, {}
        for _ in range(entries):
            name = read_value(file, 8)
            meta[name] = read_value(file, read_value(file, 4))
        for _ in range(count):
            name, axes = read_value(file, 8), read_value(file, 4)
            shape = [read_value(file, 10) for _ in range(axes)][::-1]
            places[name] = shape, read_value(file, 4), read_value(file, 10)
        file.seek(-file.tell() % meta.get("general.alignment", 32), 1)
        data = file.read()
    return meta, {name: read_tensor(data, *x) for name, x in places.items()}


def packed_text(text):
    """Return a text as the bytes of a GGUF file."""
    return struct.pack("<Q", len(text.encode())) + text.encode()


def packed_value(value):
    """Return a text, a float or a whole number, and its type before it."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + packed_text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value)


def write_gguf(path, meta, tensors, kind):
    """Write a GGUF file: matrices in blocks of this type, vectors in float32.

    meta: {name: text, float or whole number}; tensors: {name: array}; kind: 0
    for F32, 2 for Q4_0, 8 for Q8_0.
    """
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for name, value in meta.items():
        head += packed_text(name) + packed_value(value)
    body, to = b"", {2: to_q4_0, 8: to_q8_0}
    for name, w in tensors.items():
        own = kind if w.ndim > 1 else 0
        if own and w.shape[-1] % 32:
            raise ValueError(f"{name} has rows of {w.shape[-1]}, not of 32 n.")
        head += packed_text(name)
        head += struct.pack(f"<I{w.ndim}Q", w.ndim, *w.shape[::-1])
        head += struct.pack("<IQ", own, len(body))
        w = np.ascontiguousarray(w, "<f4")
        data = to[own](w).tobytes() if own else w.tobytes()
        body += data + bytes(-len(data) % 32)
    Path(path).write_bytes(head + bytes(-len(head) % 32) + body)
