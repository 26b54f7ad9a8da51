"""Where two runs of a model first differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .context import CheckContext


def distance(one: np.ndarray, two: np.ndarray) -> float:
    """Return the largest difference, relative to the largest of `two`."""
    with np.errstate(invalid="ignore"):
        gap = np.where(one == two, 0, np.abs(one - two))
    size = np.abs(two[np.isfinite(two)]).max(initial=1e-30)
    return float(np.nan_to_num(gap.max(initial=0), nan=np.inf) / size)


def first_moved(
    context: CheckContext,
    one: tuple[np.ndarray, ...],
    other: tuple[np.ndarray, ...],
    position: int,
    **options: bool,
) -> str | None:
    """Return the first module whose outputs before a position change.

    one and other: ids (1, T) that are equal before the position. A module
    whose input does not change is preferred. None if no module has outputs
    (1, T, ...), or no such output changes.
    """
    length = one[-1].shape[1]

    def moves(x, y):
        if x is None or y is None or x.shape != y.shape:
            return False
        if length not in x.shape[1:]:
            return False
        axis = x.shape.index(length, 1)  # 1, or 2 of a convolution
        x, y = (np.swapaxes(z, 0, axis)[:position] for z in (x, y))
        return distance(x, y) > context.tolerance

    try:
        both = [context.copy().trace(ids, **options) for ids in (one, other)]
    except Exception:  # no layer can be watched
        return None
    return first_apart(*both, moves)


def first_apart(
    one: list[tuple], two: list[tuple], apart: Callable
) -> str | None:
    """Return the first module of two traces whose outputs are apart.

    A module whose inputs are not is preferred. None if there is none.
    """
    found = [
        (name, apart(given, given_then))
        for (name, x, given), (_, y, given_then) in zip(one, two, strict=False)
        if apart(x, y)
    ]
    origins = [name for name, before in found if not before]
    return next(iter(origins + [name for name, _ in found]), None)


def matches(key: str, kind: str) -> bool:
    """Return whether the name of a class contains a part of the key."""
    return any(part in kind.lower() for part in key.split("|"))
