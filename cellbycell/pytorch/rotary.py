"""Rotary positions: its pytorch part, for what comes after it.

Built and explained in the chapter *Rotary positions* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np
import torch

from cellbycell.common.position_similarity import frequencies


def cosines_and_sines(x, positions, base=10000.0):
    """Return the cosines and sines of the angles for x, each (..., T, C).

    x (..., T, K) says the width K = 2 C and the dtype, which is float32 at
    least; positions (..., T); base: a number, or the C frequencies
    themselves. Raises ValueError if K is not 2 C.
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    turns = frequencies(x.shape[-1], base) if np.ndim(base) == 0 else base
    if x.shape[-1] != 2 * len(turns):
        raise ValueError(f"x has {x.shape[-1]} columns, not {2 * len(turns)}")
    turns = torch.as_tensor(turns, dtype=dtype, device=x.device)  # (C,)
    angles = positions.to(turns)[..., None] * turns  # (..., T, C)
    return angles.cos(), angles.sin()


def rotary(x, positions, base=10000.0):
    """Rotate each pair of neighbouring columns by its position.

    x (..., T, K) with an even K; positions (..., T); base: a number, or the
    K / 2 frequencies. The result has the shape and the dtype of x; whole
    numbers give float32. Raises ValueError if K does not fit.
    Source: Su et al. 2021, section 3.4.
    """
    cos, sin = cosines_and_sines(x, positions, base)  # (..., T, C)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., T, C)
    pairs = [first * cos - second * sin, first * sin + second * cos]
    pairs = torch.stack(pairs, dim=-1).flatten(-2)  # (..., T, K)
    return pairs.to(torch.result_type(x, 1.0))


def rotary_halves(x, positions, base=10000.0):
    """Rotate the pairs of a column of the first half and one of the second.

    x (..., T, K) with an even K; positions (..., T); base: a number, or the
    K / 2 frequencies. The result has the shape and the dtype of x; whole
    numbers give float32. Raises ValueError if K does not fit.
    """
    cos, sin = cosines_and_sines(x, positions, base)  # (..., T, C)
    first, second = x.chunk(2, dim=-1)  # (..., T, C)
    halves = [first * cos - second * sin, first * sin + second * cos]
    halves = torch.cat(halves, dim=-1)  # (..., T, K)
    return halves.to(torch.result_type(x, 1.0))


def pairs_to_halves(weight, num_heads):
    """Sort the outputs of a projection, per head: even ones, then odd ones.

    weight (D, D) of query_proj or key_proj, laid out as the framework has it.
    """
    heads = weight.unflatten(0, (num_heads, -1))  # (H, K, D)
    parts = [heads[:, 0::2], heads[:, 1::2]]
    return torch.cat(parts, dim=1).flatten(0, 1)  # (D, D)
