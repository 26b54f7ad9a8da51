"""Masks: its common part, for what comes after it.

Built and explained in the chapter *Masks* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def largest_change(before, after):
    """Return the largest absolute difference of two arrays, rounded."""
    gap = np.abs(np.asarray(before) - np.asarray(after)).max()
    return round(float(gap), 4)
