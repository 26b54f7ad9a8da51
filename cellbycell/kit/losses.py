"""Checks that need targets or a function: of the loss and of writing."""

from __future__ import annotations

import math

import numpy as np

from .asked import Asked, Failed, Lacks, first_line
from .outputs import IGNORED
from .weights import draw_pull

# How far from ln N the loss of an untrained model may be.
FAR = 2.0
# How far above its floor the loss of one batch may end.
LEARNED = 0.1
# Adam's learning rates, tried in turn, and the steps for each at most.
RATES, STEPS = (0.03, 0.01, 0.001), 200
# What may be meant where another token than the next is the target.
SHIFTS = {
    0: "the token that it reads: shift the targets by one",
    2: "the token after the next: the targets are shifted, and the loss "
    "shifts them once more",
    -1: "the token before: shifted the wrong way",
    3: "the third token after it: shifted too often",
}


def needs_targets(asked: Asked) -> np.ndarray:
    """Return the targets, (B, T), or raise NotAsked."""
    targets = asked.facts.get("targets")
    if targets is None:
        raise Lacks("give targets=, the ids to be predicted, (B, T).")
    return targets


def aims(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Return which positions are trained, and for which tokens, (B, T).

    The gradient of the loss by the logits is negative where a logit should
    rise, and most so at the token that is the target. Random logits are
    asked, so that no answer is known yet, or those of a model that computes
    its loss itself.
    """
    targets, function = needs_targets(asked), asked.facts.get("loss")
    if function is None and asked.model.has_labels():
        loss, grad = asked.copy().loss_of_labels(asked.ids, targets)
    else:
        logits = np.random.default_rng(0).normal(size=asked.base.shape)
        copy = asked.copy()
        try:
            loss, grad = copy.loss_at(logits, targets, function)
        except Exception as error:
            raise ValueError(
                f"loss= is given logits {logits.shape} and targets "
                f"{targets.shape}, and raises {type(error).__name__}: "
                f"{first_line(error)}"
            ) from error
    if np.size(np.asarray(loss)) != 1:
        raise ValueError(
            f"the loss should be one number; its shape is {np.shape(loss)}"
        )
    if grad is None:
        raise Failed(
            "No gradient of the loss reaches the logits: it is detached, or "
            "computed from something else."
        )
    grad = grad.reshape(asked.base.shape)
    return np.abs(grad).max(axis=-1) > 0, grad.argmin(axis=-1)


def aim(asked: Asked) -> str:
    """Does the loss train each position for the next token?"""
    targets, rows = needs_targets(asked), asked.rows
    if not asked.causal:
        raise Lacks("causal=False: targets need not be the next tokens.")
    on, aimed = aims(asked)
    following = np.pad(rows[:, 1:], [(0, 0), (0, 1)])
    follows = np.pad(asked.real[:, 1:], [(0, 0), (0, 1)])
    wanted = asked.real & follows  # positions with a next token
    wrong = wanted & on & (aimed != following)
    if wrong.any():
        say_aim(asked, wanted & on, aimed)
    stray = on & ~asked.real
    if stray.any():
        raise Failed(
            f"{stray.sum()} pads are trained, the first at position "
            f"{np.argwhere(stray)[0][1]}: give their targets as {IGNORED}, or "
            "the loss as a mean over the tokens."
        )
    # Targets that are given as -100 are meant to be left out, but for the
    # last of a row: without it nothing learns to end.
    left_out = targets == IGNORED
    left_out |= np.pad(left_out[:, 1:], [(0, 0), (0, 1)])
    last = wanted & (wanted[:, ::-1].cumsum(axis=1)[:, ::-1] == 1)
    missing = wanted & ~on & (~left_out | last)
    if missing.any() or not on.any():
        b, t = np.argwhere(missing)[0] if missing.any() else (0, 0)
        raise Failed(
            f"{missing.sum()} of {wanted.sum()} positions are not trained, "
            f"the first is position {t} of sequence {b}: look at what is "
            "left out as a pad, an end that has the id of the pads among it, "
            "and at the position whose logits are taken."
        )
    return f"{(wanted & on).sum()} positions are trained for the next token."


def say_aim(asked: Asked, where: np.ndarray, aimed: np.ndarray) -> None:
    """Raise Failed with what positions are trained for, not the next."""
    for shift, said in SHIFTS.items():
        there = np.roll(asked.rows, -shift, axis=1)
        known = where & np.roll(asked.real, -shift, axis=1)
        places = np.arange(known.shape[1]) + shift
        known &= (places >= 0) & (places < known.shape[1])
        if known.any() and (aimed == there)[known].mean() > 0.9:
            raise Failed(f"Each position is trained for {said}.")
    following = np.roll(asked.rows, -1, axis=1)
    b, t = np.argwhere(where & (aimed != following))[0]
    raise Failed(
        f"Position {t} of sequence {b} is trained for token {aimed[b, t]}, "
        f"and the next is {following[b, t]}: look whether targets and inputs "
        "are of the same row, and count ids in the same way."
    )


def loss(asked: Asked) -> str:
    """Do more pads leave the loss as it is?"""
    targets, function = needs_targets(asked), asked.facts.get("loss")
    if function is None and not asked.model.has_labels():
        raise Lacks("give loss=, a function of logits and targets.")
    if asked.pad_id is None:
        raise Lacks("pad_id=None: the model has no pads.")
    asked.refuse_random()
    *rest, rows = asked.ids
    size = min(3, rows.shape[1] - 2)
    if size < 1:
        raise Lacks("give sequences of three tokens or more.")
    if takes_softmax_twice(asked, targets, function):
        raise Failed(
            "The outputs are probabilities already, and the loss takes the "
            "softmax of them once more: give it the logits."
        )

    def padded(ids, pad):
        width = [(0, 0), (0, size)]
        return np.pad(ids[:, :-size], width, constant_values=pad)

    def value(ids, targets):
        return float(asked.copy().loss((*rest, ids), targets, function))

    plain = value(rows[:, :-size], targets[:, :-size])
    # Where no target says what pads have, either may be meant.
    pads = [IGNORED] if (targets == IGNORED).any() else [asked.pad_id]
    if asked.real.all() and (targets != asked.pad_id).all():
        pads = [asked.pad_id, IGNORED]
    for pad in pads:
        more = value(padded(rows, asked.pad_id), padded(targets, pad))
        gap = abs(plain - more) / max(abs(plain), 1e-6)
        if gap <= max(asked.tolerance, 3e-4):
            return f"{size} more pads leave the loss at {plain:.4f}."
    raise Failed(
        f"{size} more pads change the loss from {plain:.4f} to {more:.4f}: "
        "look whether pads count as targets, and by how many positions the "
        "sum is divided."
    )


def takes_softmax_twice(asked: Asked, targets: np.ndarray, function) -> bool:
    """Return whether outputs are probabilities and the loss wants logits.

    A loss of logits does not notice a number that is added to all of them.
    """
    base = asked.base[asked.real]
    if (base < 0).any() or not np.allclose(base.sum(axis=-1), 1, atol=1e-3):
        return False
    if function is None:
        return False
    copy = asked.copy()
    plain = copy.loss(asked.ids, targets, function)
    added = copy.loss(
        asked.ids, targets, lambda found, y: function(found + 1, y)
    )
    return bool(np.isclose(plain, added, rtol=1e-3))


def start(asked: Asked) -> str:
    """Is the loss of an untrained model near that of guessing, ln N?"""
    if not asked.facts.get("untrained"):
        raise Lacks("only of an untrained model: say untrained=True.")
    targets, function = needs_targets(asked), asked.facts.get("loss")
    vocab_size = asked.facts.get("vocab_size") or int(asked.columns.sum())
    copy = asked.model.copy(as_is=True)
    found = float(copy.loss(asked.ids, targets, function))
    wanted = math.log(vocab_size)
    said = f"The loss is {found:.2f}, and ln {vocab_size} is {wanted:.2f}"
    if found > wanted and is_tied(asked):
        return f"{said}; a last layer tied to the embedding starts higher."
    if not abs(found - wanted) < FAR:
        raise Failed(
            f"{said}: look at the spread of the last layer and the table, "
            "and whether the loss is a mean over tokens."
        )
    return f"{said}."


def is_tied(asked: Asked) -> bool:
    """Return whether the table of tokens is the last layer, too.

    Then a gradient reaches the rows of tokens that no sequence has.
    """
    name = asked.copy().table(asked.ids)
    if name is None:
        return False
    grad = asked.copy().gradient(
        name, asked.ids, lambda shape: draw_pull(shape, asked.real)
    )
    if grad is None:
        return False
    taken = np.unique(np.concatenate([x.ravel() for x in asked.ids]))
    others = np.setdiff1d(np.arange(len(grad)), taken)
    return bool(grad[others].any())


def overfit(asked: Asked) -> str:
    """Does the loss of one batch come near its floor?"""
    steps = asked.facts.get("overfit")
    if not steps:
        raise Lacks("it trains a copy: say overfit=True.")
    steps = STEPS if steps is True else steps
    targets, function = needs_targets(asked), asked.facts.get("loss")
    floor = lowest_loss(asked, targets, function)
    ends = []
    for rate in RATES:
        copy = asked.model.copy(as_is=True)
        goal = floor + LEARNED
        ends.append(
            copy.train(asked.ids, targets, function, rate, steps, goal)
        )
        if ends[-1] < goal:
            return f"The loss of the batch falls to {ends[-1]:.2f}."
    raise Failed(
        f"After {steps} steps the loss of the batch is {min(ends):.2f}, and "
        f"{floor:.2f} is possible: look at gradients, at the targets, and "
        "whether the source is read."
    )


def writes(asked: Asked) -> str:
    """Does greedy decoding write what the model predicts?

    What was written is read again, in one pass: the largest logit at each
    position has to be the token that was written next.
    """
    decode = asked.facts.get("decode")
    if decode is None:
        raise Lacks("give decode=, a function of the model and its ids.")
    asked.refuse_random()
    given, begins = asked.ids[0], asked.rows[:, :1]
    if len(asked.ids) == 1:
        length = max(1, int(asked.real.sum(axis=1).min()) // 2)
        given = begins = given[:, :length]
    written = asked.copy().decode(given, decode)  # (B, L)
    length = begins.shape[1]
    if len(written) != len(begins) or not (
        written.shape[1] >= length and (written[:, :length] == begins).all()
    ):
        raise Failed(
            "What is written begins with other tokens than the sequences: "
            f"{written[0, :length]}, not {begins[0]}. decode= returns the "
            "tokens that it is given, and behind them those that it writes."
        )
    read = written[:, : asked.rows.shape[1]]
    logits = asked.outputs(*asked.ids[:-1], read)[:, :-1]
    chosen = np.take_along_axis(logits, read[:, 1:, None], 2)[..., 0]
    gap = (logits.max(axis=2) - chosen) / asked.size  # (B, L - 1)
    late = np.arange(1, read.shape[1]) >= begins.shape[1]
    # Behind the end of a sequence there are pads.
    wrong = (gap > asked.tolerance) & late & asked.real_tokens(read[:, 1:])
    if wrong.any():
        row, position = np.argwhere(wrong)[0]
        raise Failed(
            f"Sequence {row} has token {read[row, position + 1]} written at "
            f"position {position + 1}, and the model predicts "
            f"{logits[row, position].argmax()}: look at the position whose "
            "logits are taken."
        )
    return "Greedy decoding writes what the model predicts."


def lowest_loss(asked: Asked, targets: np.ndarray, function) -> float:
    """Return the loss of a model that knows all it can of the batch.

    Where two rows begin alike and go on differently, nobody knows more. Of a
    loss that smooths its labels, the least is not at a share of one: some
    shares are tried.
    """
    on, aimed = aims(asked)
    seen: dict[tuple, list[tuple[int, int]]] = {}
    for b, t in np.argwhere(on):
        end = t + 1 if asked.causal else None
        sources = (tuple(x[b]) for x in asked.ids[:-1])
        seen.setdefault((t, *sources, tuple(asked.rows[b, :end])), []).append(
            (b, t)
        )
    shares = np.zeros(asked.base.shape)  # (B, T, N)
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
        found, _ = asked.copy().loss_at(logits, targets, function)
        losses.append(float(found))
    return min(losses)
