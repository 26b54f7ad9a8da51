"""Rotary positions: its pytorch part, for what comes after it.

Built and explained in book/rotary.ipynb.
Written by `make package`: change it in the chapter.
"""

import numpy as np
import torch

from cellbycell.common.position_similarity import frequencies


def cosines_and_sines(x: torch.Tensor, positions, base: float = 10000.0):
    """Return the cosines and sines of the angles for x, each (..., T, C).

    x (..., T, K) says the width K = 2 C and the dtype, which is float32 at
    least; positions (..., T); base: a number, or the C frequencies
    themselves. Raises ValueError if K is odd.
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    turns = frequencies(x.shape[-1], base) if np.ndim(base) == 0 else base
    turns = torch.tensor(turns, dtype=dtype)  # (C,)
    angles = positions[..., None] * turns.to(x.device)  # (..., T, C)
    return angles.cos(), angles.sin()


def rotary(x: torch.Tensor, positions, base: float = 10000.0):
    """Rotate each pair of neighbouring columns by its position.

    x (..., T, K) with an even K; positions (..., T); the result has the
    shape and the dtype of x. Raises ValueError if K is odd.
    Source: Su et al. 2021, section 3.4.
    """
    cos, sin = cosines_and_sines(x, positions, base)  # (..., T, C)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., T, C)
    pairs = [first * cos - second * sin, first * sin + second * cos]
    return torch.stack(pairs, dim=-1).flatten(-2).to(x.dtype)  # (..., T, K)


def rotary_halves(x: torch.Tensor, positions, base: float = 10000.0):
    """Rotate the pairs of a column of the first half and one of the second.

    x (..., T, K) with an even K; positions (..., T); the result has the
    shape and the dtype of x. Raises ValueError if K is odd.
    """
    cos, sin = cosines_and_sines(x, positions, base)  # (..., T, C)
    first, second = x.chunk(2, dim=-1)  # (..., T, C)
    halves = [first * cos - second * sin, first * sin + second * cos]
    return torch.cat(halves, dim=-1).to(x.dtype)  # (..., T, K)


def pairs_to_halves(weight, num_heads: int):
    """Sort the outputs of a projection, per head: even ones, then odd ones.

    weight (D, D) of query_proj or key_proj, laid out as the framework has it.
    """
    heads = weight.unflatten(0, (num_heads, -1))  # (H, K, D)
    parts = [heads[:, 0::2], heads[:, 1::2]]
    return torch.cat(parts, dim=1).flatten(0, 1)  # (D, D)
