"""Is each parameter there once?"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .context import CheckContext
from .gradients import frozen_of
from .verdicts import Failed, MissingArgument, Warned, listed


def duplicate_weights(context: CheckContext) -> str:
    """Are no two weight matrices equal?"""
    seen: dict[tuple, list[tuple[str, np.ndarray]]] = {}
    copy = context.model.copy(as_is=True)
    weights = [*copy.weights()]
    frozen = frozen_of(context, [name for name, _ in weights])
    number = 0
    for name, weight in weights:
        if weight.ndim < 2 or name in frozen:
            continue
        if len(np.unique(weight[0])) < 3 or (weight[0] == weight[-1]).all():
            continue  # constant or fixed, not initialised at random
        key = (weight.shape, weight[0].tobytes())
        for other, same in seen.setdefault(key, []):
            if np.array_equal(weight, same):
                say_equal(context, other, name)
        seen[key].append((name, weight))
        number += 1
    said = f"No two of {number} weight matrices are equal."
    calls = Counter(name for name, *_ in copy.trace(context.ids))
    own = {name.replace("/", ".").rpartition(".")[0] for name, _ in weights}
    shared = [
        name
        for name, times in calls.items()
        if times > 1 and name.replace("/", ".") in own
    ]
    if shared:
        # This is correct in a model such as ALBERT, so it is no verdict.
        said += f" Called more than once in a pass: {listed(shared)}."
    return said


def say_equal(context: CheckContext, one: str, two: str) -> None:
    """Raise Failed for two equal matrices, or Warned for a new model."""
    said = f"{one} and {two} have the same values"
    if context.model.copy().table(context.ids) in (one, two):
        raise Failed(
            f"{said}: the table was copied to the last layer, not tied to it, "
            "so training will make them differ."
        )
    if context.untrained or looks_new(context):
        raise Warned(
            f"{said} until training makes them differ: look for a seed in a "
            "loop, or for a copied layer, as in nn.TransformerEncoder."
        )
    raise Failed(
        f"{said}. Unless this is intended, look for a seed in a loop, or for "
        "a copied layer, as in nn.TransformerEncoder, and initialise them "
        "again. For a new model, pass untrained=True."
    )


def looks_new(context: CheckContext) -> bool:
    """Return whether all scales of norms are one, as in a new model."""
    weights = context.model.copy(as_is=True).weights()
    scales = [w for name, w in weights if w.ndim == 1 and "norm" in name]
    return bool(scales) and all((w == 1).all() or not w.any() for w in scales)


def parameter_count(context: CheckContext) -> str:
    """Are there as many parameters as expected?"""
    copy = context.model.copy(as_is=True)
    found = sum(weight.size for _, weight in copy.weights())
    wanted = context.count
    if wanted is None:
        raise MissingArgument(
            f"there are {found:,} parameters: give count=.", "count="
        )
    if found != wanted:
        raise Failed(
            f"There are {found:,} parameters, not {wanted:,}: look for "
            "modules that are shared, missing or made twice."
        )
    return f"There are {found:,} parameters."
