"""Checks that change something, and see whether the outputs move."""

from __future__ import annotations

from typing import Any

import numpy as np

from .asked import Asked, Failed, Lacks, NotAsked
from .differ import first_moved, matches

# One token is changed in so many rows, of so many tokens together, at most.
MAX_CHANGES, MAX_CHANGED = 512, 2**15
# At most so many prefixes are computed, and so many rows one by one.
MAX_PREFIXES, MAX_ROWS = 32, 8
# What to look at, by what the class of the first layer that differs says.
ADVICE = {
    "batchnorm": "it takes its mean over positions and sequences.",
    "norm": "a norm runs over the features of one token, not over positions.",
    "rout|gate|moe|expert": "whether it chooses or counts among all tokens.",
    "conv": "a convolution is padded on the left alone.",
    "": "look at the causal mask, at what True means in it, and at how "
    "heads are split.",
}


def future(asked: Asked, training: bool = False) -> str:
    """Do outputs stay as they are when later tokens change?

    Each token is changed alone, and all earlier outputs are compared: first
    with the pads and masks as given, then with full rows, no mask, and
    use_cache= left at its default.
    """
    asked.refuse_two_way()
    count = look_ahead(asked, asked.ids, asked.real, training=training)
    filled = asked.fill_pads(asked.rows)
    as_given = (filled == asked.rows).all() and not asked.model.takes_mask
    if not as_given or "use_cache" in asked.model.names:
        ids = (*asked.ids[:-1], filled)
        options = {"training": training, "mask": False, "default": True}
        count += look_ahead(asked, ids, np.ones_like(asked.real), **options)
    return (
        f"No token moves an earlier output ({count} changes"
        f"{', in training mode' if training else ''})."
    )


def choose(
    changes: np.ndarray, length: int, training: bool = False
) -> np.ndarray:
    """Return so many positions (M, 2) to change that they are soon asked.

    Of many those are kept that are first, last, or beside a power of two,
    where tiles and windows end, and others evenly; fewer in training mode,
    where each layer draws for its dropout.
    """
    most = MAX_CHANGED // length // (4 if training else 1)
    most = max(16, min(MAX_CHANGES, most))
    if len(changes) <= most:
        return changes
    powers = 2 ** np.arange(1, 20)
    edges = np.concatenate([[1, length - 1], powers - 1, powers, powers + 1])
    edge = np.flatnonzero(np.isin(changes[:, 1], edges))[: most // 2]
    even = np.linspace(0, len(changes) - 1, most - len(edge)).astype(int)
    return changes[np.union1d(edge, even)]


def effects(
    asked: Asked,
    ids: tuple[np.ndarray, ...],
    changes: np.ndarray,
    **options: Any,
) -> np.ndarray:
    """Return how far a change of each token moves the outputs, (M, T).

    ids: (token_ids,) or (source_ids, decoder_ids); changes (M, 2): rows and
    positions. The rows before a change are computed in the same call as those
    after it, so that not a bit differs without a cause; in training mode, and
    where the model draws, in a call of the same shape.
    """
    by_call = asked.is_random or options.get("training")
    rows, found = ids[-1], []
    for chunk in asked.in_chunks(len(changes)):
        row, position = changes[chunk].T
        where = np.arange(rows.shape[1]) == position[:, None]  # (M, T)
        other = asked.exchange(rows[row], where)
        given = [x[row] for x in ids[:-1]]
        if by_call:
            before = asked.outputs(*given, rows[row], **options)
            after = asked.outputs(*given, other, **options)
        else:
            own, back = np.unique(row, return_inverse=True)
            given = [np.concatenate([x[own], x[row]]) for x in ids[:-1]]
            other = np.concatenate([rows[own], other])
            both = asked.outputs(*given, other, **options)
            before, after = both[: len(own)][back], both[len(own) :]
        found.append(asked.change(before, after))
    return np.concatenate(found)


def seen_effects(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Return (M, 2) changed tokens and the (M, T) outputs that they move.

    Of the ids as given, computed once.
    """
    if not hasattr(asked, "seen"):
        changes = choose(np.argwhere(asked.real), asked.rows.shape[1])
        asked.seen = changes, effects(asked, asked.ids, changes)
    return asked.seen


def look_ahead(
    asked: Asked,
    ids: tuple[np.ndarray, ...],
    real: np.ndarray,
    **options: Any,
) -> int:
    """Return how many tokens were changed without moving the past.

    real (B, T): the tokens to change and to compare. Raises Failed at the
    first that moves.
    """
    place = np.arange(ids[-1].shape[1])
    if ids is asked.ids and options == {"training": False}:
        changes, moves = seen_effects(asked)
    else:
        follows = real & (real.cumsum(axis=1) > 1)
        training = options["training"]
        changes = choose(np.argwhere(follows), len(place), training)
        moves = effects(asked, ids, changes, **options)
    past = real[changes[:, 0]] & (place < changes[:, 1:])
    moved = np.where(past, moves, 0).max(axis=1)
    if moved.max(initial=0) <= asked.tolerance:
        asked.refuse_coarse(moved.max(initial=0))
    # Alone in a batch, so that no other sequence can be the cause.
    suspects = changes[moved > asked.tolerance]
    for b, t in suspects[:: 1 + len(suspects) // 16]:
        one = tuple(x[b : b + 1] for x in ids)
        other = (*one[:-1], asked.exchange(one[-1], place == t))
        both = [asked.outputs(*x, **options) for x in (one, other)]
        change = np.where(real[b] & (place < t), asked.change(*both)[0], 0)
        if change.max() > asked.tolerance:
            how = " in training mode" if options["training"] else ""
            if not options.get("mask", True):
                cache = ", use_cache= not given"
                cache = cache if "use_cache" in asked.model.names else ""
                how += f" (full rows, no mask{cache})"
            said = "As in evaluation mode."
            if not asked.leaks:
                where = where_first(asked, one, other, t, **options)
                said = f"The model sees the future{where}"
            asked.leaks = True
            raise Failed(
                f"Another token at position {t} moves "
                f"{asked.say(b, change.argmax(), change.max())}{how}. {said}"
            )
    return len(changes)


def where_first(
    asked: Asked,
    one: tuple[np.ndarray, ...],
    other: tuple[np.ndarray, ...],
    position: int,
    **options: Any,
) -> str:
    """Return ", first in NAME (CLASS): ADVICE" of a leak."""
    name = first_moved(asked, one, other, position, **options)
    if name is None:
        return f": {ADVICE['']}"
    kind = asked.model.kind(name)
    advice = next(a for key, a in ADVICE.items() if matches(key, kind))
    return f", first in {name} ({kind}): {advice}"


def future_train(asked: Asked) -> str:
    """Ask `future` in training mode, with nothing dropped.

    Dropout draws, at a rate at which it drops nothing: what one token draws
    may depend on how many others come before it, as in experts.
    """
    asked.refuse_two_way()
    asked.quiet = True
    try:
        one = asked.outputs(*asked.ids, training=True)
        two = asked.outputs(*asked.ids, training=True)
        if (asked.change(one, two)[asked.real] > asked.tolerance).any():
            raise NotAsked(
                "in training mode the model draws at random although the "
                "generators are fixed."
            )
        return future(asked, training=True)
    finally:
        asked.quiet = False


def steps(asked: Asked) -> str:
    """Is the output for a prefix that of the whole sequence?"""
    asked.refuse_two_way()
    asked.refuse_random()
    length = asked.rows.shape[1]
    if length < 3:
        raise Lacks("give sequences of three tokens or more.")
    lengths = np.unique(np.linspace(2, length - 1, MAX_PREFIXES).astype(int))
    for n in lengths:
        part = asked.outputs(*asked.ids[:-1], asked.rows[:, :n])
        whole, real = asked.base[:, :n], asked.real[:, :n]
        if moved := asked.say_change(whole, part, real):
            raise Failed(
                f"The first {n} tokens alone change {moved}. Token by token "
                "the model does not say what it says in one pass: look at "
                "the causal mask, at positions, and at norms over positions."
            )
    return f"{len(lengths)} prefixes give the outputs of the whole sequence."


def pads(asked: Asked) -> str:
    """Do more pads leave the outputs of the tokens as they are?

    No sequence gets longer than it was: its last tokens are taken away, once
    by cutting the sequences and once by pads in their position.
    """
    if asked.pad_id is None:
        raise Lacks("pad_id=None: the model has no pads.")
    asked.refuse_random()
    if asked.model.either is None:
        raise NotAsked(
            f"the masks {', '.join(asked.model.unsure_masks)} could not be "
            "given: with True at tokens and with True at pads, pads move the "
            "outputs. Give call=, a function of the model and its ids."
        )
    count = pads_on_the_right(asked)
    said = f"{count} more pads on the right"
    # A causal model that takes positions is meant to write with such pads.
    left = asked.causal and "position_ids" in asked.model.names
    left |= bool(asked.facts.get("pad_left"))
    if left or not asked.real_tokens(asked.ids[0], 0)[:, 0].all():
        pads_on_the_left(asked)
        said += ", and other numbers of pads on the left of each row,"
    return f"{said} move nothing."


def pads_on_the_right(asked: Asked) -> int:
    """Return how many pads move nothing; raise Failed if they do."""
    first = asked.ids[0]  # the source, where there is one
    real = asked.real_tokens(first, 0)
    room = first.shape[1] - 1 - int(real.argmax(axis=1).max())
    count = min(3, room)
    if count < 1:
        raise Lacks("a sequence is too short: give longer ones.")
    cut, rest = first[:, :-count], asked.ids[1:]
    real = asked.real if rest else asked.real_tokens(cut)
    before = asked.outputs(cut, *rest)
    width = [(0, 0), (0, count)]
    padded = np.pad(cut, width, constant_values=asked.pad_id)
    after = asked.outputs(padded, *rest)
    after = after if rest else after[:, : cut.shape[1]]
    if moved := asked.say_change(before, after, real):
        raise Failed(
            f"{count} more pads on the right change {moved}. Tokens attend to "
            "pads: look whether the padding mask reaches every layer, whether "
            "it blocks keys, and what True means in it."
        )
    return count


def pads_on_the_left(asked: Asked) -> None:
    """Raise Failed if rows with pads before them have other outputs.

    Each row has another number of pads, and is compared with itself, alone
    and without pads.
    """
    rows, rest = asked.left_padded()[:MAX_ROWS], asked.ids[1:]
    length = max(map(len, rows)) + 1
    padded = np.full((len(rows), length), asked.pad_id)
    for b, row in enumerate(rows):
        padded[b, length - len(row) :] = row
    given = [x[: len(rows)] for x in rest]
    together = asked.outputs(padded, *given, positions=True)
    for b, row in enumerate(rows):
        given = [x[b : b + 1] for x in rest]
        alone = asked.outputs(row[None], *given, positions=True)
        with_pads = together[b : b + 1]
        real = asked.real[b : b + 1]
        if not rest:
            with_pads = with_pads[:, -len(row) :]
            real = np.ones((1, len(row)), bool)
        if moved := asked.say_change(alone, with_pads, real):
            raise Failed(
                f"Pads on the left of row {b} change {moved} there. Tokens "
                "attend to pads, or positions count them: look at the mask of "
                "each row, and give positions that begin at the first token."
            )


def alone(asked: Asked) -> str:
    """Has a sequence the same outputs without the others in the batch?"""
    if len(asked.rows) < 2:
        raise Lacks("one sequence was given: give two or more.")
    asked.refuse_random()
    for b in range(min(len(asked.rows), MAX_ROWS)):
        one = asked.outputs(*(x[b : b + 1] for x in asked.ids))
        here = asked.base[b : b + 1], one, asked.real[b : b + 1]
        if asked.say_change(*here):
            gap = np.where(here[2], asked.change(*here[:2]), 0)[0]
            raise Failed(
                "Taking a sequence out of the batch changes "
                f"{asked.say(b, gap.argmax(), gap.max())}. Sequences "
                "act on each other: look at batch_first, at the axis along "
                "which positions are added, at how heads are split, whether "
                "each row has its own mask (repeat_interleave, not repeat), "
                "and at experts that have room for so many tokens only."
            )
    return f"Each of the {len(asked.rows)} sequences is the same alone."


def calls(asked: Asked) -> str:
    """Do calls in evaluation mode agree, whatever was asked between them?"""
    other = other_rows(asked)
    fresh = asked.outputs(*other)
    copy = asked.model.copy()
    first = asked.base  # of a copy that had never been called
    shape = first.shape
    copy.outputs(asked.ids)
    again = copy.outputs(asked.ids).reshape(shape)
    advice = "look for a mask or a cache that is edited in place"
    if moved := asked.say_change(first, again, asked.real):
        raise Failed(f"A second call changes {moved}: {advice}.")
    later = copy.outputs(other).reshape(shape)
    last = copy.outputs(asked.ids).reshape(shape)
    pairs = [
        (fresh, later, asked.real_tokens(other[-1])),
        (first, last, asked.real),
    ]
    for pair in pairs:
        if moved := asked.say_change(*pair):
            raise Failed(
                f"A call with other pads, made before, changes {moved}: "
                f"{advice}."
            )
    if asked.is_random:
        raise Failed(
            "Two calls with another state of the generator differ: dropout "
            "acts in evaluation mode, or the model draws by design."
        )
    return "Calls agree, after calls with other pads, too."


def other_rows(asked: Asked) -> tuple[np.ndarray, ...]:
    """Return ids of the same shapes with other tokens and other pads."""
    rows = []
    for number, ids in enumerate(asked.ids):
        real = asked.real_tokens(ids, number)
        other = asked.fill_pads(asked.exchange(ids, real, number), number)
        if asked.pad_id is not None and ids.shape[1] > 2:
            other[0, -(ids.shape[1] // 3) :] = asked.pad_id
        rows.append(other)
    return tuple(rows)


def context(asked: Asked) -> str:
    """Does the output at the last token depend on the other tokens?"""
    real = asked.real
    last = real & (real[:, ::-1].cumsum(axis=1)[:, ::-1] == 1)
    last &= real.sum(axis=1, keepdims=True) > 1
    others = asked.exchange(asked.rows, real & ~last)
    after = asked.outputs(*asked.ids[:-1], others)
    same = (asked.change(asked.base, after) == 0) & last
    if same.any():
        row, position = np.argwhere(same)[0]
        raise Failed(
            f"All other tokens of sequence {row} may be exchanged, and the "
            f"output at position {position} does not move: look whether the "
            "mask is inverted, and what True means in it."
        )
    return "The output at the last token depends on the other tokens."


def reach(asked: Asked) -> str:
    """Does each token move its own output and another one?

    Of a model that may look both ways: do tokens move earlier outputs, and
    later ones?
    """
    changes, moves = seen_effects(asked)
    place = np.arange(asked.rows.shape[1])
    row, position = changes.T
    # An output counts only where a token stands.
    moved = asked.real[row] & (moves > 2 * asked.model.eps)  # (M, T)
    own = moved[np.arange(len(moved)), position]
    late = (moved & (place > position[:, None])).any(axis=1)
    early = (moved & (place < position[:, None])).any(axis=1)
    behind = asked.real[row] & (place > position[:, None])
    follows = behind.any(axis=1)  # whether a token comes later
    if not asked.causal and early.any() != late.any():
        way = "later" if late.any() else "earlier"
        raise Failed(
            f"Tokens move {way} outputs alone: a model that may look both "
            "ways (causal=False) has a causal mask."
        )
    kinds = {
        "its own output": ~own,
        "a later output": asked.causal & follows & ~late,
        "any other output": ~(asked.causal | late | early),
    }
    for what, still in kinds.items():
        if still.any():
            b, t = changes[still.argmax()]
            raise Failed(
                f"Another token at position {t} of sequence {b} does not move "
                f"{what}: look at what a position reads, whether logits or "
                "inputs are shifted once more, and at the edges of the mask."
            )
    far = (place - position[:, None])[moved]
    return (
        f"Tokens move outputs from {-far.min()} before to {far.max()} after."
    )


def source(asked: Asked) -> str:
    """Does each token of the source move the outputs?"""
    if len(asked.ids) < 2:
        raise Lacks("for an encoder-decoder: give source and decoder ids.")
    ids = asked.ids[0]
    for position in range(ids.shape[1]):
        where = asked.real_tokens(ids, 0) & (
            np.arange(ids.shape[1]) == position
        )  # (B, S)
        after = asked.outputs(asked.exchange(ids, where, 0), asked.rows)
        change = np.where(asked.real, asked.change(asked.base, after), 0)
        still = where.any(axis=1) & (change.max(axis=1) == 0)
        if still.any():
            raise Failed(
                f"Another token at position {position} of source "
                f"{still.argmax()} moves no output: look at the keys and "
                "values of cross-attention, and at the mask of the memory."
            )
    return "Each token of the source moves the outputs."
