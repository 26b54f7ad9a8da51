"""Does a gradient reach each parameter?"""

from __future__ import annotations

import numpy as np

from .backends.base import Cotangent, Ids, WrappedModel
from .context import CheckContext
from .verdicts import Failed, NotRun, Warned, first_line, listed


def draw_cotangent(shape: tuple[int, ...], where: np.ndarray) -> np.ndarray:
    """Return random factors (B, T, ...), zero where (B, T) is False.

    Equal factors would not do: after a norm, the sum is constant.
    """
    numbers = np.random.default_rng(0).normal(size=shape)
    return numbers * where.reshape(where.shape + (1,) * (len(shape) - 2))


def gradient_of(
    copy: WrappedModel, name: str, ids: Ids, cotangent: Cotangent
) -> np.ndarray | None:
    """Return a weight's gradient; raise NotRun if none can be computed."""
    try:
        return copy.gradient(name, ids, cotangent)
    except Exception as error:
        raise NotRun(
            f"no gradient of {name} can be computed here: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error


def gradient_flow(context: CheckContext) -> str:
    """Does a gradient, finite and not zero, reach each parameter?"""
    if hidden := context.model.unregistered():
        raise Failed(
            f"{hidden} is a list of modules that parameters() does not "
            "reach, so they do not train, and eval() does not reach them: "
            "make it an nn.ModuleList."
        )
    base = context.base
    kept = np.isfinite(base).all(axis=(0, 1)) & context.columns

    def cotangent(shape):
        return draw_cotangent(shape, context.real) * kept.reshape(shape[2:])

    found = states(context, context.ids, cotangent)
    frozen = frozen_of(context, [*found])
    trained = {n: g for n, g in found.items() if n not in frozen}
    unused = [n for n, g in trained.items() if g == "none"]
    if unused:  # other tokens may reach another expert
        rng = np.random.default_rng(0)
        rows = [
            context.exchange(x, rng.random(x.shape) < 0.7) for x in context.ids
        ]
        more = states(context, tuple(rows), cotangent)
        unused = [n for n in unused if more[n] == "none"]
    wild = [n for n, g in trained.items() if g == "wild"]
    if wild:
        raise Failed(
            f"The gradient of {listed(wild)} is not finite: look for a "
            "query that may attend to no key, also at pads."
        )
    if unused and acts(context, unused):
        detached = [n for n in unused if acts(context, [n])] or unused
        if chosen := context.model.selects(context.rows.shape[1]):
            raise Warned(
                f"No gradient reaches {listed(detached)}: by selection "
                f"({chosen}), whose choice has none?"
            )
        raise Failed(
            f"No gradient reaches {listed(detached)}, although the outputs "
            "depend on it: look for a detached tensor."
        )
    zero = [n for n, g in trained.items() if g == "zero"]
    for name in zero:
        # The bias of keys has no effect, because the softmax ignores it; small
        # steps do not change the choice of an expert.
        if acts(context, [name]):
            raise Failed(
                f"The gradient of {name} is zero, although the outputs "
                "depend on it: look for an operation that loses the gradient."
            )
    idle = [n for n in unused if "expert" in n.lower()]
    note = f" Frozen, not tested: {listed(frozen)}." if frozen else ""
    note += f" No effect here: {listed(zero)}." if zero else ""
    note += f" Experts without a token here: {listed(idle)}." if idle else ""
    said = f"A gradient reaches {len(trained) - len(unused)} parameters."
    unused = [n for n in unused if n not in idle]
    if unused:
        raise Warned(
            f"{said} No output depends on {listed(unused)}: parts for another "
            f"task or for longer rows, or a forgotten layer.{note}"
        )
    return said + note


def frozen_of(context: CheckContext, names: list[str]) -> list[str]:
    """Return which weights are frozen; none if all are, to test them all."""
    frozen = context.model.frozen()
    return frozen if len(frozen) < len(names) else []


def acts(context: CheckContext, names: list[str]) -> bool:
    """Return whether a small step of these weights changes the outputs."""
    copy = context.copy()
    weights = dict(copy.weights())
    for name in names:
        weight = weights[name]
        step = np.random.default_rng(0).normal(size=weight.shape)
        copy.assign(name, weight + 1e-3 * (weight.std() + 1e-2) * step)
    after = copy.outputs(context.ids).reshape(context.base.shape)
    return bool(context.say_change(context.base, after, context.real))


def states(
    context: CheckContext, ids: Ids, cotangent: Cotangent
) -> dict[str, str]:
    """Return the gradients' states; raise NotRun if there is an error."""
    try:
        return context.copy().gradients(ids, cotangent)
    except Exception as error:
        raise NotRun(
            "the outputs can be computed here, but not their gradient: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error
