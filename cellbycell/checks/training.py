"""Do gradients and one step in the model's own training mode do their work?

The other checks run a copy whose parts are all trainable, without dropout
and in float32, and so see nothing that goes wrong in training alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .backends.base import WrappedModel
from .context import CheckContext
from .gradients import draw_cotangent
from .verdicts import Failed, NotRun, Warned, first_line, listed

# Steps along a direction, relative to the weights' own size, and how far a
# slope by gradients may be from the difference quotient of one of them; in a
# direction with a small slope a few kinks weigh more, so more are asked.
STEPS, OFF, DIRECTIONS = (1e-3, 1e-4), 0.05, 4
# The most weights that are tried; each is held some six times.
MOST = 5 * 10**7
# The least share of weights that one step should change.
MOVED = 0.5


def training_gradients(context: CheckContext) -> str:
    """Are the gradients in training mode those of what is computed?

    The slope of the outputs along a random direction, by the gradient and
    by a difference quotient: with the model's own dropout, its own frozen
    parts, and one seed.
    """
    kept = np.isfinite(context.base).all(axis=(0, 1)) & context.columns
    copy = own_copy(context)

    def cotangent(shape):
        return draw_cotangent(shape, context.real) * kept.reshape(shape[2:])

    try:
        value, grads = copy.slope(context.ids, cotangent)
    except Exception as error:
        raise NotRun(
            "the outputs can be computed in training mode, but not their "
            f"gradient: {type(error).__name__}: {first_line(error)}"
        ) from error
    if not grads:
        raise NotRun("no parameter is trainable in training mode.")
    lost = [n for n, g in grads.items() if g is None]
    reached = {n: g for n, g in grads.items() if g is not None}
    if lost and (not reached or changes(context, lost, value, cotangent)):
        raise Failed(
            f"In training mode no gradient reaches {listed(lost)}, although "
            "the outputs depend on it: look for re-entrant checkpointing "
            "around inputs without a gradient (use_reentrant=False, or "
            "enable_input_require_grads), for no_grad, or for a detached "
            "tensor."
        )
    slope, quotients = slopes(context, reached, cotangent)
    if not np.isfinite([slope, *quotients]).all():
        raise Failed("The gradient in training mode is not finite.")
    if not slope:
        raise NotRun("all gradients are zero: see gradient_flow.")
    off = apart([slope], [quotients])
    said = f"along a random direction the outputs' slope is {quotients[0]:.3g}"
    said += f" by a difference quotient, and {slope:.3g} by the gradient"
    if min(off) <= OFF:
        return f"In training mode, {said}."
    more = [slopes(context, reached, cotangent, n) for n in range(DIRECTIONS)]
    if min(apart(*zip(*more, strict=True))) <= OFF:
        return f"In training mode {DIRECTIONS} slopes agree, taken together."
    if abs(quotients[0] - quotients[1]) > OFF * max(map(abs, quotients)):
        raise NotRun(f"the outputs are not smooth in the weights: {said}.")
    if chosen := context.model.selects(context.rows.shape[1]):
        raise Warned(
            f"In training mode, {said}: by selection ({chosen}), whose choice "
            "has no gradient?"
        )
    if not all(quotients):
        raise Warned(
            f"In training mode, {said}: a rounded model, with an estimated "
            "gradient?"
        )
    raise Failed(
        f"In training mode, {said}: look for a recomputation that draws "
        "another dropout (checkpointing with preserve_rng_state=False), for "
        "a detached tensor, or for a backward pass of your own."
    )


def own_copy(context: CheckContext) -> WrappedModel:
    """Return a copy in training mode with its own frozen parts, or refuse."""
    copy = context.model.training_copy()
    weights = [values for _, values in copy.weights()]
    if sum(values.size for values in weights) > MOST:
        raise NotRun(
            f"the model has more than {MOST:,} weights: ask a small one."
        )
    if not all(np.isfinite(values).all() for values in weights):
        raise NotRun("the weights are not finite; see output_shape.")
    outputs = [
        copy.outputs(context.ids, training=True, seed=0) for _ in range(2)
    ]
    if not np.array_equal(*outputs, equal_nan=True):
        raise NotRun(
            "in training mode the model draws random numbers that no seed "
            "repeats, so nothing can be compared."
        )
    return copy


def changes(
    context: CheckContext, names: list[str], value: float, cotangent: Callable
) -> bool:
    """Return whether the outputs depend on any of these weights."""
    copy = context.model.training_copy()
    move(copy, dict.fromkeys(names), 0.1)
    after, _ = copy.slope(context.ids, cotangent, gradients=False)
    return not np.isclose(after, value, rtol=1e-6)


def move(
    copy: WrappedModel, names: dict, step: float, direction: int = 0
) -> float:
    """Move weights along a random direction; return its slope, if known.

    names: {weight: its gradient, or None}; step: relative to each weight's
    own spread; direction: its seed.
    """
    rng, slope = np.random.default_rng(direction), 0.0
    weights, rows = dict(copy.weights()), copy.padding_rows()
    for name, grad in names.items():
        weight = weights[name]
        way = (weight.std() + 1e-2) * rng.normal(size=weight.shape)
        if name in rows:  # its gradient is dropped, on purpose
            way[rows[name]] = 0
        if grad is not None:
            slope += float(np.sum(grad * way, dtype=np.float64))
        copy.assign(name, weight + step * way)
    return slope


def apart(slopes: list, quotients: list) -> list[float]:
    """Return how far slopes (C,) are from quotients (C, 2), for each length.

    Relative to the larger of both, over all directions together.
    """
    by_length, norm = np.transpose(quotients), np.linalg.norm
    sizes = [max(norm(slopes), norm(own), 1e-30) for own in by_length]
    return [
        norm(own - slopes) / size
        for own, size in zip(by_length, sizes, strict=True)
    ]


def slopes(
    context: CheckContext, grads: dict, cotangent: Callable, direction: int = 0
) -> tuple[float, list[float]]:
    """Return a slope by gradients, and by quotients of two lengths."""
    quotients = []
    for length in STEPS:
        ends = []
        for sign in (1, -1):
            copy = context.model.training_copy()
            slope = move(copy, grads, sign * length, direction)
            value, _ = copy.slope(context.ids, cotangent, gradients=False)
            ends.append(value)
        quotients.append((ends[0] - ends[1]) / (2 * length))
    return slope, quotients


def weights_move(context: CheckContext) -> str:
    """Does one step of the optimiser change the weights, in their own type?

    optimizer= makes it; AdamW at a rate of 3e-4 is taken if none is given.
    """
    try:
        before, after, grads = context.model.one_step(
            context.ids, context.targets, context.loss, context.optimizer
        )
    except NotRun:
        raise
    except Exception as error:
        raise NotRun(
            "no step can be taken here: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error
    still, total, moved = [], 0, 0
    for name, grad in grads.items():
        wanted = grad != 0
        changed = (before[name] != after[name]) & wanted
        total += wanted.sum()
        moved += changed.sum()
        if wanted.any() and changed.sum() < MOVED * wanted.sum():
            still.append((changed.sum() / wanted.sum(), name))
    if not total:
        raise NotRun("no weight has a gradient.")
    dead = [
        name
        for name, grad in grads.items()
        if grad.ndim > 1 and not before[name].any() and not grad.any()
    ]
    if dead:
        raise Warned(
            f"{listed(dead)}: all zero, and without a gradient, because what "
            "follows is zero, too. One of the two matrices of an adapter has "
            "to be drawn."
        )
    own = context.optimizer is not None
    said = f"One step of {'the optimizer' if own else 'AdamW at 3e-4'} changes"
    said += f" {moved / total:.0%} of the weights that have a gradient"
    if not still:
        return f"{said}."
    share, _ = min(still)
    said += f", and of {listed([n for _, n in sorted(still)])} {share:.0%}"
    reason = "the step is smaller than the rounding of their type"
    if share == 0 and not own and moved > MOVED * total:
        # A norm's scales of one lose 3e-4 in half precision, as most do.
        raise Warned(f"{said}: {reason}? Keep them in float32.")
    verdict = Failed if own else Warned
    raise verdict(
        f"{said}: {reason}, or the optimizer has other parameters. Keep "
        "float32 weights, and compute in half precision by autocast."
    )
