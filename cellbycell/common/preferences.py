"""Learn from your own text: its common part, for what comes after it.

Built and explained in the chapter *Learn from your own text* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np


def written(rows, first=1):
    """Return True for each token but the first that was written, (B, T).

    rows (B, C): up to the dot that ends a name; what comes before place
    first was given.
    """
    is_end = rows[:, 1:] == 0  # (B, T)
    ends_before = np.cumsum(is_end, -1) - is_end  # (B, T)
    kept = ends_before == 0  # (B, T)
    kept[:, : first - 1] = False
    return kept
