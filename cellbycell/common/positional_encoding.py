"""Positional encoding: its common part, for what comes after it.

Built and explained in book/positional_encoding.ipynb.
Written by `make package`: change it in the chapter.
"""

from itertools import combinations


def smallest_sets(results, size: int = 1):
    """Return the smallest sets of checks that fail every row somewhere."""
    checks = next(iter(results.values()))
    found = [
        names
        for names in combinations(checks, size)
        if all(not all(row[n] for n in names) for row in results.values())
    ]
    return found or smallest_sets(results, size + 1)
