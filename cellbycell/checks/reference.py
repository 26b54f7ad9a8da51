"""Does another model with the same weights give the same outputs?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from .backends.base import WrappedModel
from .context import CheckContext
from .traces import distance
from .verdicts import Failed, MissingArgument, listed


def reference_parity(context: CheckContext) -> str:
    """Does another model with the same weights give the same outputs?"""
    other = context.reference
    if other is None:
        raise MissingArgument(
            "give reference=, a model with the same weights.", "reference="
        )
    theirs = other.copy(as_is=True).outputs(context.ids)
    ours = context.first
    if theirs.shape != ours.shape:
        raise Failed(
            f"Outputs are {ours.shape}, the reference's {theirs.shape}."
        )
    theirs, ours = (x.reshape(*context.rows.shape, -1) for x in (theirs, ours))
    moved = context.say_change(theirs, ours, context.real)
    if not moved:
        return "The outputs equal those of the reference." + buffers(context)
    rows = differences(context.model, other, context.ids)
    where = first_difference(rows, context.tolerance)
    said = f"The reference differs in {moved}."
    if where is None:
        raise Failed(f"{said} All modules that can be compared agree.")
    named = where.module == where.reference
    hint = "" if named else " This is a hint: modules are matched by outputs."
    raise Failed(
        f"{said} The first module to differ is {where.module} "
        f"({where.reference} there), by {where.change:.1e}.{hint}"
    )


def buffers(context: CheckContext) -> str:
    """Return which buffers of both models act alike, or raise Failed.

    A number that both hold and only one of them reads makes no difference as
    long as it is one, and a file's value is then lost.
    """
    assert context.reference is not None
    both = [context.model.copy(as_is=True), context.reference.copy(as_is=True)]
    ours, theirs = (model.buffers() for model in both)
    shared = [
        name
        for name in ours
        if name in theirs and ours[name].shape == theirs[name].shape
    ]
    if not shared:
        return ""
    found = []
    for model in both:
        rng = np.random.default_rng(0)
        for name in shared:
            factor = 1 + 0.3 * rng.uniform(size=ours[name].shape)
            model.assign_buffer(name, ours[name] * factor)
        outputs = model.outputs(context.ids)
        found.append(outputs.reshape(*context.rows.shape, -1))
    if moved := context.say_change(*found[::-1], context.real):
        raise Failed(
            f"With other numbers in the buffers {listed(shared)} the "
            f"reference differs in {moved}: one of the models does not read "
            "them, and would lose what a file has in them."
        )
    return f" They do also with other numbers in {listed(shared)}."


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
    model: WrappedModel, reference: WrappedModel, ids: tuple[np.ndarray, ...]
) -> list[Difference]:
    """Return a Difference for each module, in the order of their outputs.

    Modules are matched by
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
