"""Checks that need targets or a function: loss, start, writing, training."""

from __future__ import annotations

import math

import numpy as np

from .asked import Asked, Failed, NotAsked
from .weights import draw_pull

# How far from ln N the loss of an untrained model may be.
FAR = 2.0
# How far above its floor the loss of one batch may end.
LEARNED = 0.1
# Adam's learning rates, tried in turn, and the steps for each at most.
RATES, STEPS = (0.03, 0.01, 0.001), 200


def needs_targets(asked: Asked) -> np.ndarray:
    """Return the targets, (B, T), or raise NotAsked."""
    targets = asked.facts.get("targets")
    if targets is None:
        raise NotAsked("give targets=, the ids to be predicted, (B, T).")
    return targets


def shift(asked: Asked) -> str:
    """Is the target at each position the next token?"""
    targets, rows = needs_targets(asked), asked.rows
    if not asked.causal:
        raise NotAsked("causal=False: targets need not be shifted.")
    both = asked.real & asked.real_tokens(targets)
    if (targets == rows)[both].all():
        raise Failed("The targets are the inputs: shift them by one.")
    inner = both[:, 1:] & both[:, :-1]
    back = (targets[:, 1:] == rows[:, :-1])[inner].all()
    if (targets[:, :-1] == rows[:, 1:])[inner].all():
        return "The target at each position is the next token."
    if back:
        raise Failed("The targets are the tokens before: shifted backwards.")
    raise NotAsked("the targets are not the inputs shifted by one.")


def loss(asked: Asked) -> str:
    """Do more pads leave the loss as it is?"""
    targets, function = needs_targets(asked), asked.facts.get("loss")
    if function is None:
        raise NotAsked("give loss=, a function of logits and targets.")
    if asked.pad_id is None:
        raise NotAsked("pad_id=None: the model has no pads.")
    asked.refuse_random()
    *rest, rows = asked.ids
    size = min(3, rows.shape[1] - 2)
    if size < 1:
        raise NotAsked("give sequences of three tokens or more.")

    def padded(ids):
        width = [(0, 0), (0, size)]
        return np.pad(ids[:, :-size], width, constant_values=asked.pad_id)

    both = [
        asked.model.copy().loss((*rest, cut(rows)), cut(targets), function)
        for cut in (lambda ids: ids[:, :-size], padded)
    ]
    if takes_softmax_twice(asked, targets, function):
        raise Failed(
            "The outputs are probabilities already, and the loss takes the "
            "softmax of them once more: give it the logits."
        )
    gap = abs(both[0] - both[1]) / max(abs(both[0]), 1e-6)
    if not gap <= max(asked.tolerance, 3e-4):
        raise Failed(
            f"{size} more pads change the loss from {both[0]:.4f} to "
            f"{both[1]:.4f}: look whether pads count as targets, and by how "
            "many positions the sum is divided."
        )
    return f"{size} more pads leave the loss at {both[0]:.4f}."


def takes_softmax_twice(asked: Asked, targets: np.ndarray, function) -> bool:
    """Return whether outputs are probabilities and the loss wants logits.

    A loss of logits does not notice a number that is added to all of them.
    """
    base = asked.base[asked.real]
    if (base < 0).any() or not np.allclose(base.sum(axis=-1), 1, atol=1e-3):
        return False
    copy = asked.model.copy()
    plain = copy.loss(asked.ids, targets, function)
    added = copy.loss(
        asked.ids, targets, lambda found, y: function(found + 1, y)
    )
    return bool(np.isclose(plain, added, rtol=1e-3))


def start(asked: Asked) -> str:
    """Is the loss of an untrained model near that of guessing, ln N?"""
    if not asked.facts.get("untrained"):
        raise NotAsked("only of an untrained model: say untrained=True.")
    targets, function = needs_targets(asked), asked.facts.get("loss")
    vocab_size = asked.facts.get("vocab_size") or int(asked.columns.sum())
    found = asked.model.copy().loss(asked.ids, targets, function)
    wanted = math.log(vocab_size)
    said = f"The loss is {found:.2f}, and ln {vocab_size} is {wanted:.2f}"
    if found > wanted and is_tied(asked):
        return f"{said}; a table that is also the last layer starts higher."
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
    found = asked.model.copy().read_table(asked.ids)
    if found is None:
        return False
    grad = asked.model.copy().gradients(
        asked.ids, lambda shape: draw_pull(shape, asked.real)
    )[found[0]]
    if grad is None:
        return False
    taken = np.unique(np.concatenate([x.ravel() for x in asked.ids]))
    others = np.setdiff1d(np.arange(len(grad)), taken)
    return bool(grad[others].any())


def overfit(asked: Asked) -> str:
    """Does the loss of one batch come near its floor?"""
    steps = asked.facts.get("overfit")
    if not steps:
        raise NotAsked("it trains a copy: say overfit=True.")
    steps = STEPS if steps is True else steps
    targets, function = needs_targets(asked), asked.facts.get("loss")
    floor = lowest_loss(asked, targets)
    ends = []
    for rate in RATES:
        copy = asked.model.copy()
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
        raise NotAsked("give decode=, a function of the model and its ids.")
    asked.refuse_random()
    given, begins = asked.ids[0], asked.rows[:, :1]
    if len(asked.ids) == 1:
        length = max(1, int(asked.real.sum(axis=1).min()) // 2)
        given = begins = given[:, :length]
    written = asked.model.copy().decode(given, decode)  # (B, L)
    if not (written[:, : begins.shape[1]] == begins).all():
        raise Failed(
            "What is written begins with other tokens than the sequences: "
            f"{written[0, : begins.shape[1]]}, not {begins[0]}."
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


def lowest_loss(asked: Asked, targets: np.ndarray) -> float:
    """Return the loss of a model that knows all it can of the batch.

    Where two rows begin alike and go on differently, nobody knows more.
    """
    seen: dict[tuple, list[int]] = {}
    for b, t in np.argwhere(asked.real_tokens(targets)):
        end = t + 1 if asked.causal else None
        sources = (tuple(x[b]) for x in asked.ids[:-1])
        key = (t, *sources, tuple(asked.rows[b, :end]))
        seen.setdefault(key, []).append(targets[b, t])
    total, number = 0.0, 0
    for found in seen.values():
        _, counts = np.unique(found, return_counts=True)
        total -= (counts * np.log(counts / counts.sum())).sum()
        number += counts.sum()
    return float(total / max(number, 1))
