"""Positional encoding: its pytorch part, for what comes after it.

Built and explained in the chapter *Positional encoding* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import torch
from torch import nn


def position_table(seq_len, d_model, base=10000.0, dtype=torch.float32):
    """Return the sinusoidal position table, (T, D).

    Sines are in the even columns, cosines in the odd ones; an odd d_model
    ends with a sine. Computed in float64, then cast to dtype.
    Source: Vaswani et al. 2017, section 3.5.
    """
    position = torch.arange(seq_len).double()[:, None]  # (T, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # (C,)
    angles = position / base ** (even / d_model)  # (T, C)
    pairs = torch.stack([angles.sin(), angles.cos()], -1)  # (T, C, 2)
    return pairs.flatten(1)[:, :d_model].to(dtype)  # (T, D)


class AddPositions(nn.Module):
    """Multiply vectors by the square root of their width; add positions.

    x (B, T, D); result (B, T, D).
    """

    def forward(self, x):
        seq_len, d_model = x.shape[1:]
        return x * math.sqrt(d_model) + position_table(seq_len, d_model)
