"""Rotary positions: its common part, for what comes after it.

Built and explained in the chapter *Rotary positions* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import numpy as np


def stretched(turns, factor=8.0, low=1.0, high=4.0, old_length=8192):
    """Return the frequencies of Llama 3.1 from the plain ones, (C,)."""
    rounds = old_length * turns / (2 * math.pi)  # (C,)
    share = np.clip((rounds - low) / (high - low), 0, 1)  # (C,)
    return share * turns + (1 - share) * turns / factor
