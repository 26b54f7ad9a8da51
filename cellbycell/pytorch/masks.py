"""Masks: its pytorch part, for what comes after it.

Built and explained in the chapter *Masks* of the book.
Written by `make package`: change it in the chapter.
"""

import torch


def make_causal_mask(seq_len):
    """Return the mask that lets a position see itself and the past, (T, T)."""
    positions = torch.arange(seq_len)  # (T,)
    return positions <= positions[:, None]  # (T, T)
