"""Positional encoding: its common part, for what comes after it.

Built and explained in the chapter *Positional encoding* of the book.
Written by `make package`: change it in the chapter.
"""

from itertools import combinations


def smallest_sets(results):
    """Return the smallest sets of checks that fail every row somewhere.

    Raises ValueError if a row passes every check.
    """
    if passed := [name for name, row in results.items() if all(row.values())]:
        raise ValueError(f"every check passes {' and '.join(passed)}")
    checks = next(iter(results.values()))
    for size in range(1, len(checks) + 1):
        found = [
            names
            for names in combinations(checks, size)
            if all(not all(row[n] for n in names) for row in results.values())
        ]
        if found:
            return found
