"""Checks of weights, gradients and losses, and against a reference."""

from __future__ import annotations

import math

import numpy as np

from .asked import Asked, Failed, NotAsked
from .differ import differences, first_difference

# How far from ln N the loss of an untrained model may be.
FAR = 2.0
# How far above its floor the loss of one batch may end.
LEARNED = 0.1
# Adam's learning rates, tried in turn, and the steps for each.
RATES, STEPS = (0.01, 0.001), 200


def shape(asked: Asked) -> str:
    """Are the outputs finite numbers, (B, T, ...)?"""
    found, rows = asked.first, asked.rows
    if found.shape[:2] != rows.shape:
        hint = "is the batch not the first axis?"
        raise Failed(f"Ids {rows.shape} give outputs {found.shape}: {hint}")
    vocab_size = asked.facts.get("vocab_size")
    if vocab_size and found.shape[2:] != (vocab_size,):
        raise Failed(f"Outputs are {found.shape}; vocab_size={vocab_size}.")
    bad = np.isnan(found) | np.isposinf(found)
    bad = bad.reshape(*rows.shape, -1).any(axis=-1) & asked.real
    if bad.any():
        row, position = np.argwhere(bad)[0]
        raise Failed(
            f"{bad.sum()} positions have outputs that are not finite, the "
            f"first is position {position} of sequence {row}: look for a "
            "query that may attend to no key."
        )
    return f"Outputs are {found.shape}, and finite at every token."


def draw_pull(shape: tuple[int, ...], where: np.ndarray) -> np.ndarray:
    """Return random numbers (B, T, ...), zero where (B, T) is False.

    A sum would do worse: behind a norm it is constant.
    """
    numbers = np.random.default_rng(0).normal(size=shape)
    return numbers * where.reshape(where.shape + (1,) * (len(shape) - 2))


def gradients(asked: Asked) -> str:
    """Does a gradient, finite and not zero, reach each parameter?"""
    base = asked.base
    kept = np.isfinite(base).all(axis=(0, 1)) & asked.columns

    def pull(shape):
        return draw_pull(shape, asked.real) * kept.reshape(shape[2:])

    found = asked.model.copy().gradients(asked.ids, pull, everything=True)
    frozen = asked.model.frozen()
    asked_for = {n: g for n, g in found.items() if n not in frozen}
    unused = [n for n, g in asked_for.items() if g is None]
    if unused:
        raise Failed(
            f"No gradient reaches {listed(unused)}: the parameter is never "
            "used, or what uses it is detached."
        )
    wild = [n for n, g in asked_for.items() if not np.isfinite(g).all()]
    if wild:
        raise Failed(
            f"The gradient of {listed(wild)} is not finite: look for a row "
            "of scores that is masked as a whole, also at pads."
        )
    zero = [n for n, g in asked_for.items() if not g.any()]
    for name in zero:
        # The bias of keys has no effect, for the softmax ignores it.
        copy = asked.model.copy()
        copy.jiggle(size=0.1, only=name)
        after = copy.outputs(asked.ids).reshape(base.shape)
        if asked.say_change(base, after, asked.real):
            raise Failed(
                f"The gradient of {name} is zero, although the outputs "
                "depend on it: look for numbers that lose their gradient."
            )
    note = f" Frozen, not asked: {listed(frozen)}." if frozen else ""
    note += f" Without effect here: {listed(zero)}." if zero else ""
    return f"A gradient reaches {len(asked_for)} parameters.{note}"


def listed(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def causal(asked: Asked) -> str:
    """Do early outputs give no gradient to tokens that come later?"""
    if not asked.causal:
        raise NotAsked("causal=False: every token may attend to all others.")
    table = asked.model.copy().read_table(asked.ids)
    if table is None:
        raise NotAsked("no table of tokens was found.")
    length = asked.rows.shape[1]
    taken = [asked.pad_id or 0, *(asked.ids[0].flat if asked.ids[1:] else ())]
    tokens = np.setdiff1d(np.arange(len(table)), taken)[:length]
    if len(tokens) < 2:
        raise NotAsked("the table has too few rows for different tokens.")
    ids = (*(x[:1] for x in asked.ids[:-1]), tokens[None])
    cuts = np.unique(np.linspace(1, len(tokens) - 1, 6).astype(int))
    for cut in cuts[cuts > 0]:

        def pull(shape, cut=cut):
            where = np.arange(len(tokens))[None] < cut  # (1, T)
            numbers = draw_pull(shape, where)
            if shape[-1] == len(table):
                # A table that is also the last layer learns from there.
                numbers[..., tokens[cut:]] = 0
            return numbers

        grad = asked.model.copy().table_gradient(ids, pull)
        size = np.abs(grad[tokens]).max(axis=1)
        late = size[cut:].max() / max(size.max(), np.finfo(np.float32).tiny)
        if late > 1e3 * asked.model.eps:
            position = cut + int(size[cut:].argmax())
            raise Failed(
                f"Outputs before position {cut} give the token at position "
                f"{position} a gradient, {late:.1e} of the largest: the "
                "model sees the future. Look at the causal mask."
            )
    return "Early outputs give later tokens no gradient."


def layers(asked: Asked) -> str:
    """Are no two weight matrices equal, number for number?"""
    seen: dict[bytes, str] = {}
    for name, weight in asked.model.weights():
        if weight.ndim < 2 or np.array_equal(weight[0], weight[-1]):
            continue  # constant, or a start that is not drawn at random
        key = weight.tobytes()
        if key in seen:
            raise Failed(
                f"{seen[key]} and {name} are equal: layers that begin alike. "
                "Look for a seed in a loop, or a layer that was copied, as "
                "nn.TransformerEncoder does; initialise them again."
            )
        seen[key] = name
    return f"{len(seen)} weight matrices, no two of them equal."


def count(asked: Asked) -> str:
    """Are there as many parameters as there should be?"""
    found = sum(weight.size for _, weight in asked.model.weights())
    wanted = asked.facts.get("count")
    if wanted is None:
        raise NotAsked(f"there are {found:,} parameters: give count=.")
    if found != wanted:
        raise Failed(
            f"There are {found:,} parameters, not {wanted:,}: look for "
            "modules that are shared, missing or made twice."
        )
    return f"There are {found:,} parameters."


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
    table = asked.model.copy().read_table(asked.ids)
    if table is None:
        return False
    grad = asked.model.copy().table_gradient(
        asked.ids, lambda shape: draw_pull(shape, asked.real)
    )
    taken = np.unique(np.concatenate([x.ravel() for x in asked.ids]))
    return bool(np.delete(grad, taken, axis=0).any())


def overfit(asked: Asked) -> str:
    """Does the loss of one batch come near its floor?"""
    if not asked.facts.get("overfit"):
        raise NotAsked("it trains a copy: say overfit=True.")
    targets, function = needs_targets(asked), asked.facts.get("loss")
    floor = lowest_loss(asked, targets)
    ends = []
    for rate in RATES:
        copy = asked.model.copy()
        goal = floor + LEARNED
        ends.append(
            copy.train(asked.ids, targets, function, rate, STEPS, goal)
        )
        if ends[-1] < goal:
            return f"The loss of the batch falls to {ends[-1]:.2f}."
    raise Failed(
        f"After {STEPS} steps the loss of the batch is {min(ends):.2f}, and "
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


def reference(asked: Asked) -> str:
    """Does another model with the same weights give the same outputs?"""
    other = asked.facts.get("reference")
    if other is None:
        raise NotAsked("give reference=, a model with the same weights.")
    theirs = other.copy().outputs(asked.ids)
    if theirs.shape != asked.first.shape:
        raise Failed(
            f"Outputs are {asked.first.shape}, the reference's {theirs.shape}."
        )
    theirs = theirs.reshape(asked.base.shape)
    moved = asked.say_change(theirs, asked.base, asked.real)
    if not moved:
        return "The outputs are those of the reference."
    rows = differences(asked.model.copy(), other.copy(), asked.ids)
    where = first_difference(rows, asked.tolerance)
    if where is None:
        raise Failed(f"The reference has {moved} from the model's.")
    raise Failed(
        f"Different from the reference is {moved}. The first module to "
        f"differ is {where.module} ({where.reference} there), by "
        f"{where.change:.1e}."
    )
