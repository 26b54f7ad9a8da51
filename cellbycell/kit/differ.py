"""Where two models, or two runs of one model, first differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import Case


@dataclass(frozen=True)
class Difference:
    """How far the output of a module is from the reference's.

    Parameters
    ----------
    module, reference
        The names of the two modules; a later call of the same module has
        its number in the name, as in "norm, call 2".
    change
        The largest difference, relative to the reference's largest output.
    """

    module: str
    reference: str
    change: float


def distance(one: np.ndarray, two: np.ndarray) -> float:
    """Return the largest difference, relative to the largest of `two`."""
    with np.errstate(invalid="ignore"):
        gap = np.where(one == two, 0, np.abs(one - two))
    size = np.abs(two[np.isfinite(two)]).max(initial=1e-30)
    return float(np.nan_to_num(gap.max(initial=0), nan=np.inf) / size)


def numbered(calls: list[tuple]) -> list[tuple[str, np.ndarray]]:
    """Return (name, output) of calls; later calls have a number."""
    seen: Counter[str] = Counter()
    found = []
    for name, output, _ in calls:
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name}, call {seen[name]}"
        found.append((label, output))
    return found


def differences(
    model: Any, reference: Any, ids: tuple[np.ndarray, ...]
) -> list[Difference]:
    """Return a Difference for each module, in the order of their outputs.

    model and reference: TorchModel or KerasModel. Modules are matched by
    name if most names agree; otherwise, each module is matched with the
    reference's module whose output has the same shape and is nearest.
    Modules without a match are left out.
    """
    ours = numbered(model.copy(as_is=True).trace(ids))
    theirs = numbered(reference.copy(as_is=True).trace(ids))
    by_name: dict[tuple[str, tuple], np.ndarray] = {
        (name, output.shape): output for name, output in theirs
    }
    common = [pair for pair in ours if (pair[0], pair[1].shape) in by_name]
    if 2 * len(common) > min(len(ours), len(theirs)):
        return [
            Difference(name, name, distance(x, by_name[name, x.shape]))
            for name, x in common
        ]
    found = []
    for name, output in ours:
        near = [
            Difference(name, other, distance(output, x))
            for other, x in theirs
            if x.shape == output.shape
        ]
        if near:
            found.append(min(near, key=lambda d: d.change))
    return found


def first_difference(
    rows: list[Difference], tolerance: float
) -> Difference | None:
    """Return where the difference begins; None if the last rows agree.

    For modules matched by name, it is the first row beyond tolerance. For
    others, it is the first row after the last one that agrees, because the
    modules that differ before it have no counterpart.
    """
    if all(row.module == row.reference for row in rows):
        return next((row for row in rows if row.change > tolerance), None)
    first = None
    for row in reversed(rows):
        if row.change <= tolerance:
            break
        first = row
    return first


def first_moved(
    case: Case,
    one: tuple[np.ndarray, ...],
    other: tuple[np.ndarray, ...],
    position: int,
    **options: Any,
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
        return distance(x, y) > case.tolerance

    try:
        both = [case.copy().trace(ids, **options) for ids in (one, other)]
    except Exception:  # no layer can be watched
        return None
    return first_apart(*both, moves)


def first_apart(one: list[tuple], two: list[tuple], apart: Any) -> str | None:
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
