"""Is each position trained for the next token, and can a batch be learned?"""

from __future__ import annotations

import math

import numpy as np

from .context import CheckContext
from .gradients import draw_cotangent
from .model_io import IGNORED
from .verdicts import Failed, MissingArgument, Warned, first_line

# How far from ln N the loss of an untrained model may be.
FAR = 2.0
# How far above its floor the loss of one batch may end.
LEARNED = 0.1
# Adam's learning rates, tried in turn, and the most steps for each.
RATES, STEPS = (0.03, 0.01, 0.001), 200
# Fewer logits say nothing; how far a gradient is from what it may be; and
# what the logits may have been divided by.
FEW, UNLIKE, HEATS = 8, 0.02, np.geomspace(0.1, 10, 93)
# Which token is the target instead of the next one, and why.
SHIFTS = {
    0: "the token that it reads: shift the targets by one",
    2: "the token after the next: the targets are shifted, and the loss "
    "shifts them again",
    -1: "the previous token: the targets are shifted the wrong way",
    3: "the third token after it: the targets are shifted too often",
}


def aims(context: CheckContext) -> tuple[np.ndarray, np.ndarray]:
    """Return which positions are trained, and for which tokens, (B, T)."""
    _, grad = gradient_of_loss(context)
    return np.abs(grad).max(axis=-1) > 0, grad.argmin(axis=-1)


def gradient_of_loss(context: CheckContext) -> tuple[np.ndarray, np.ndarray]:
    """Return logits and the gradient of the loss there, (B, T, N).

    The gradient of the loss is negative at a logit that should rise, and
    lowest at the target. The logits are random, so that they know no answer,
    or those of a model that computes its loss itself.
    """
    targets, function = context.needs_targets(), context.loss
    if function is None and context.model.has_labels():
        logits = context.base
        loss, grad = context.copy().loss_of_labels(context.ids, targets)
    else:
        logits = np.random.default_rng(0).normal(size=context.base.shape)
        copy = context.copy()
        try:
            loss, grad = copy.loss_at(logits, targets, function)
        except Exception as error:
            raise ValueError(
                f"loss= raises {type(error).__name__} for logits "
                f"{logits.shape} and targets {targets.shape}: "
                f"{first_line(error)}{hint_of(error)}"
            ) from error
    if np.size(np.asarray(loss)) != 1:
        raise ValueError(
            f"the loss should be one number; its shape is {np.shape(loss)}"
        )
    if grad is None:
        raise Failed(
            "No gradient of the loss reaches the logits: the loss is "
            "detached, or computed from something else."
        )
    return logits, grad.reshape(context.base.shape)


def hint_of(error: Exception) -> str:
    """Return what to do about a loss that does not know -100."""
    if str(IGNORED) not in str(error):
        return ""
    return f" Where there is no target, loss= gets {IGNORED}, not -1."


def target_alignment(context: CheckContext) -> str:
    """Does the loss train each position for the next token?"""
    targets, rows = context.needs_targets(), context.rows
    if not context.causal:
        raise MissingArgument(
            "causal=False: targets need not be the next tokens.", "causal=True"
        )
    logits, grad = gradient_of_loss(context)
    on, aimed = np.abs(grad).max(axis=-1) > 0, grad.argmin(axis=-1)
    following = np.pad(rows[:, 1:], [(0, 0), (0, 1)])
    follows = np.pad(context.real[:, 1:], [(0, 0), (0, 1)])
    wanted = context.real & follows  # positions with a next token
    wrong = wanted & on & (aimed != following)
    if wrong.any():
        say_aim(context, wanted & on, aimed)
    stray = on & ~context.real
    if stray.any():
        raise Failed(
            f"{stray.sum()} pads are trained, the first at position "
            f"{np.argwhere(stray)[0][1]}: set their targets to {IGNORED}, or "
            "take the mean of the loss over tokens only."
        )
    # Targets of -100 are left out on purpose, except for the last of a row:
    # without it the model cannot learn to end.
    left_out = targets == IGNORED
    left_out |= np.pad(left_out[:, 1:], [(0, 0), (0, 1)])
    last = wanted & (wanted[:, ::-1].cumsum(axis=1)[:, ::-1] == 1)
    missing = wanted & ~on & (~left_out | last)
    if missing.any() or not on.any():
        b, t = np.argwhere(missing)[0] if missing.any() else (0, 0)
        raise Failed(
            f"{missing.sum()} of {wanted.sum()} positions are not trained, "
            f"the first is position {t} of sequence {b}: check which targets "
            "count as pads (an end token with the id of pads does), and which "
            "positions the logits are taken from."
        )
    ignored = on & (targets == IGNORED)
    if context.pad_id is not None:
        ignored |= on & (targets == context.pad_id) & (aimed != context.pad_id)
    if context.loss is not None and ignored.any():
        b, t = np.argwhere(ignored)[0]
        raise Failed(
            f"{ignored.sum()} positions without a target are trained, the "
            f"first is position {t} of sequence {b}: does the smoothing of "
            "labels leave out what the loss ignores?"
        )
    said = f"{(wanted & on).sum()} positions are trained for the next token"
    return said + how_much(logits[on], grad[on], np.argwhere(on)[:, 0])


def how_much(logits: np.ndarray, grads: np.ndarray, rows: np.ndarray) -> str:
    """Return how the loss weighs positions, or raise Warned.

    The gradient of cross-entropy is a position's weight times its softmax
    less its target; smoothed labels add a constant, and a penalty of large
    logits some of the softmax. logits, grads: (K, N); rows: (K,).
    """
    if grads.shape[-1] < FEW:
        return "."
    chosen = np.linspace(0, len(grads) - 1, min(len(grads), 64)).astype(int)
    logits, grads, rows = logits[chosen], grads[chosen], rows[chosen]
    heat, fits = 1.0, fit(logits, grads, 1.0)
    if fits[0] > UNLIKE:
        heat = min(HEATS, key=lambda heat: fit(logits, grads, heat)[0])
        near = heat * np.geomspace(0.95, 1.05, 21)
        heat = min(near, key=lambda heat: fit(logits, grads, heat)[0])
        fits = fit(logits, grads, heat)
    if fits[0] > UNLIKE:
        return ", by a loss that is not cross-entropy."
    if abs(math.log(heat)) > 0.02:
        raise Warned(
            f"The loss divides the logits by {heat:.2f}: a temperature is for "
            "sampling, and a model trained with it is wrong without it."
        )
    weights = fits[1]
    counts = np.array([(rows == row).sum() for row in rows])
    even = np.ptp(weights) < UNLIKE * weights.max()
    whole = weights * counts
    if not even and np.ptp(whole) < UNLIKE * whole.max():
        low, high = rows[weights.argmin()], rows[weights.argmax()]
        raise Warned(
            f"A token of sequence {high} counts {weights.max():.3g} in the "
            f"loss, and one of sequence {low} {weights.min():.3g}: it is a "
            "mean of the sequences' means. Is that meant? Short sequences "
            "count more, and batches of other lengths give another loss."
        )
    return ", each alike." if even else ", with weights."


def fit(
    logits: np.ndarray, grads: np.ndarray, heat: float
) -> tuple[float, np.ndarray]:
    """Return how unlike cross-entropy gradients are, and their weights (K,).

    heat: what the logits are divided by.
    """
    far, weights = [], []
    for x, g in zip(logits / heat, grads, strict=True):
        share = np.exp(x - x.max())
        target = np.arange(len(g)) == g.argmin()
        terms = np.stack([share / share.sum(), target, np.ones(len(g))], 1)
        found, *_ = np.linalg.lstsq(terms, g, rcond=None)
        far.append(np.abs(terms @ found - g).max() / np.abs(g).max())
        # The target's own part, and what smoothing took from it.
        weights.append(-found[1] - len(g) * found[2])
    return max(far), np.array(weights)


def say_aim(
    context: CheckContext, where: np.ndarray, aimed: np.ndarray
) -> None:
    """Raise Failed with the tokens that positions are trained for."""
    for shift, said in SHIFTS.items():
        there = np.roll(context.rows, -shift, axis=1)
        known = where & np.roll(context.real, -shift, axis=1)
        places = np.arange(known.shape[1]) + shift
        known &= (places >= 0) & (places < known.shape[1])
        if known.any() and (aimed == there)[known].mean() > 0.9:
            raise Failed(f"Each position is trained for {said}.")
    following = np.roll(context.rows, -1, axis=1)
    b, t = np.argwhere(where & (aimed != following))[0]
    raise Failed(
        f"Position {t} of sequence {b} is trained for token {aimed[b, t]}, "
        f"but the next is {following[b, t]}: check whether targets and "
        "inputs come from the same row, and use the same ids."
    )


def loss_padding_invariance(context: CheckContext) -> str:
    """Do more pads leave the loss unchanged?"""
    targets, function = context.needs_targets(), context.loss
    if function is None and not context.model.has_labels():
        raise MissingArgument(
            "give loss=, a function of logits and targets.", "loss="
        )
    if context.pad_id is None:
        raise MissingArgument("pad_id=None: the model has no pads.", "pad_id=")
    context.refuse_random()
    *rest, rows = context.ids
    size = min(3, rows.shape[1] - 2)
    if size < 1:
        raise MissingArgument(
            "give sequences of three tokens or more.", "three tokens"
        )
    if takes_softmax_twice(context, targets, function):
        raise Failed(
            "The outputs are already probabilities, and the loss takes their "
            "softmax again: give it the logits."
        )

    def padded(ids, pad):
        width = [(0, 0), (0, size)]
        return np.pad(ids[:, :-size], width, constant_values=pad)

    def value(ids, targets):
        return float(context.copy().loss((*rest, ids), targets, function))

    plain = value(rows[:, :-size], targets[:, :-size])
    # If no target shows what pads have, either may be meant.
    pads = [IGNORED] if (targets == IGNORED).any() else [context.pad_id]
    if context.real.all() and (targets != context.pad_id).all():
        pads = [context.pad_id, IGNORED]
    for pad in pads:
        more = value(padded(rows, context.pad_id), padded(targets, pad))
        gap = abs(plain - more) / max(abs(plain), 1e-6)
        if gap <= max(context.tolerance, 3e-4):
            return f"{size} more pads leave the loss at {plain:.4f}."
    raise Failed(
        f"{size} more pads change the loss from {plain:.4f} to {more:.4f}: "
        "check whether pads count as targets, and by how many positions the "
        "sum is divided."
    )


def takes_softmax_twice(
    context: CheckContext, targets: np.ndarray, function
) -> bool:
    """Return whether outputs are probabilities and the loss wants logits.

    A loss of logits does not change if all of them grow by one.
    """
    base = context.base[context.real]
    if (base < 0).any() or not np.allclose(base.sum(axis=-1), 1, atol=1e-3):
        return False
    if function is None:
        return False
    copy = context.copy()
    plain = copy.loss(context.ids, targets, function)
    added = copy.loss(
        context.ids, targets, lambda found, y: function(found + 1, y)
    )
    return bool(np.isclose(plain, added, rtol=1e-3))


def initial_loss(context: CheckContext) -> str:
    """Is the loss of an untrained model near that of guessing, ln N?"""
    if not context.untrained:
        raise MissingArgument(
            "only for an untrained model: pass untrained=True.",
            "untrained=True",
        )
    targets, function = context.needs_targets(), context.loss
    vocab_size = context.vocab_size or int(context.columns.sum())
    copy = context.model.copy(as_is=True)
    found = float(copy.loss(context.ids, targets, function))
    wanted = math.log(vocab_size)
    said = f"The loss is {found:.2f}, and ln {vocab_size} is {wanted:.2f}"
    if found > wanted and is_tied(context):
        return f"{said}; a last layer tied to the embedding starts higher."
    if not abs(found - wanted) < FAR:
        raise Failed(
            f"{said}: check the initialisation of the last layer and of the "
            "embedding, and whether the loss is a mean over tokens."
        )
    return f"{said}."


def is_tied(context: CheckContext) -> bool:
    """Return whether the table of tokens is also the last layer.

    If so, a gradient also reaches the rows of tokens that do not occur.
    """
    name = context.copy().table(context.ids)
    if name is None:
        return False
    grad = context.copy().gradient(
        name, context.ids, lambda shape: draw_cotangent(shape, context.real)
    )
    if grad is None:
        return False
    taken = np.unique(np.concatenate([x.ravel() for x in context.ids]))
    others = np.setdiff1d(np.arange(len(grad)), taken)
    return bool(grad[others].any())


def overfit_one_batch(context: CheckContext) -> str:
    """Does the loss of one batch come near its floor?"""
    steps = context.overfit
    if not steps:
        raise MissingArgument(
            "trains a copy, only on request: pass overfit=True.",
            "overfit=True",
        )
    steps = STEPS if steps is True else steps
    targets, function = context.needs_targets(), context.loss
    floor = lowest_loss(context, targets, function)
    ends = []
    for rate in RATES:
        copy = context.model.copy(as_is=True)
        goal = floor + LEARNED
        ends.append(
            copy.train(context.ids, targets, function, rate, steps, goal)
        )
        if ends[-1] < goal:
            return f"The loss of the batch falls to {ends[-1]:.2f}."
    raise Failed(
        f"After {steps} steps the loss of the batch is {min(ends):.2f}, but "
        f"{floor:.2f} is possible: check the gradients, the targets, and "
        "whether the model reads its source."
    )


def lowest_loss(context: CheckContext, targets: np.ndarray, function) -> float:
    """Return the lowest loss that is possible on the batch.

    If two rows begin alike and continue differently, the best prediction is
    the share of each token. A loss that smooths its labels is lowest at
    smoothed shares, so some smoothings are tried.
    """
    on, aimed = aims(context)
    seen: dict[tuple, list[tuple[int, int]]] = {}
    for b, t in np.argwhere(on):
        end = t + 1 if context.causal else None
        sources = (tuple(x[b]) for x in context.ids[:-1])
        seen.setdefault(
            (t, *sources, tuple(context.rows[b, :end])), []
        ).append((b, t))
    shares = np.zeros(context.base.shape)  # (B, T, N)
    total = 0.0
    for places in seen.values():
        tokens, counts = np.unique(
            [aimed[place] for place in places], return_counts=True
        )
        for b, t in places:
            shares[b, t, tokens] = counts / counts.sum()
        total -= (counts * np.log(counts / counts.sum())).sum()
    if function is None:
        return float(total / max(on.sum(), 1))
    losses = []
    for smoothing in (0.0, *np.geomspace(1e-3, 0.5, 24)):
        mixed = (1 - smoothing) * shares + smoothing / shares.shape[-1]
        logits = np.log(np.maximum(mixed, 1e-12))
        found, _ = context.copy().loss_at(logits, targets, function)
        losses.append(float(found))
    return min(losses)
