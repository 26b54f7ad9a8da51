"""Fewer bits: its pytorch part, for what comes after it.

Built and explained in the chapter *Fewer bits* of the book.
Written by `make package`: change it in the chapter.
"""

import torch


def quantise(w, bits=8, group=32):
    """Return whole numbers (..., C) in int8, and scales (..., 1).

    w (..., D), finite: D columns in groups of C; bits: 2 to 8. A group
    of zeros gets a tiny scale.
    """
    top = 2 ** (bits - 1) - 1
    parts = w.float().unflatten(-1, (-1, group))  # (..., C)
    largest = parts.abs().amax(-1, keepdim=True)  # (..., 1)
    scale = (largest / top).clamp_min(1e-30)
    return (parts / scale).round().to(torch.int8), scale


def restore(whole, scale):
    """Return weights (..., D) from whole numbers (..., C) and scales."""
    return (whole * scale).flatten(-2)  # (..., D)


def int8_product(x, w):
    """Return x @ w.T from whole numbers: (B, F) for x (B, D), w (F, D).

    Each row has a scale of its own; D is at most 133,144.
    """
    x_whole, x_scale = quantise(x, group=x.shape[-1])  # (B, 1, D), (..., 1)
    w_whole, w_scale = quantise(w, group=w.shape[-1])  # (F, 1, D), (..., 1)
    sums = x_whole[:, 0].int() @ w_whole[:, 0].int().T  # (B, F)
    return sums * (x_scale[:, 0] * w_scale[:, 0].T)
