"""Where two models with the same weights first differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """How far the output of a module is from the reference's.

    Parameters
    ----------
    module, reference
        The names of the two modules.
    change
        The largest difference, in parts of the reference's largest output.
    """

    module: str
    reference: str
    change: float


def distance(one: np.ndarray, two: np.ndarray) -> float:
    """Return the largest difference in parts of the largest of `two`."""
    with np.errstate(invalid="ignore"):
        gap = np.where(one == two, 0, np.abs(one - two))
    size = np.abs(two[np.isfinite(two)]).max(initial=1e-30)
    return float(np.nan_to_num(gap.max(initial=0), nan=np.inf) / size)


def differences(
    model: Any, reference: Any, ids: tuple[np.ndarray, ...]
) -> list[Difference]:
    """Return a Difference for each module, in the order of their outputs.

    model and reference: TorchModel or KerasModel. Modules are matched by
    name if most of them have the same names; if not, each module is matched
    with the reference's module whose output has the same shape and is
    nearest. Modules without a match are left out.
    """
    ours, theirs = model.trace(ids), reference.trace(ids)
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
    """Return where the difference arises; None if all agree in the end.

    Of modules matched by name it is the first row beyond tolerance. Of
    others it is the first behind the last row that agrees, for what differs
    before was a module without a counterpart.
    """
    if all(row.module == row.reference for row in rows):
        return next((row for row in rows if row.change > tolerance), None)
    first = None
    for row in reversed(rows):
        if row.change <= tolerance:
            break
        first = row
    return first
