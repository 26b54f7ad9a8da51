"""Rotary positions: its common part, for what comes after it.

Built and explained in book/rotary.ipynb.
Written by `make package`: change it in the chapter.
"""

import math

import numpy as np


def stretched(
    turns,
    factor: float = 8.0,
    low: float = 1.0,
    high: float = 4.0,
    old_length: int = 8192,
):
    """Return the frequencies of Llama 3.1 from the plain ones, (C,)."""
    rounds = old_length * turns / (2 * math.pi)  # (C,)
    share = np.clip((rounds - low) / (high - low), 0, 1)  # (C,)
    return share * turns + (1 - share) * turns / factor
