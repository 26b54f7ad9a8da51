"""Checks that change the ids and compare the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, Failed, Lacks, NotRun
from .differ import first_moved, matches

# At most so many changes of a token, in rows of so many tokens together.
MAX_CHANGES, MAX_CHANGED = 512, 2**15
# At most so many prefixes are computed, and so many rows one by one.
MAX_PREFIXES, MAX_ROWS = 32, 8
# What to check, by a part of the first differing layer's class.
ADVICE = {
    "batchnorm": "its mean runs over positions and sequences.",
    "norm": "normalise the features of one token, not the positions.",
    "rout|gate|moe|expert": "check whether it chooses among all tokens.",
    "conv": "pad a causal convolution on the left only.",
    "": "check the causal mask, what True means in it, and how heads are "
    "split.",
}


def future(case: Case, training: bool = False) -> str:
    """Do later tokens leave earlier outputs unchanged?

    Each token is changed alone, and all earlier outputs are compared: first
    with pads and masks, then with full rows, no mask, and the default of
    use_cache=.
    """
    case.refuse_two_way()
    count = look_ahead(case, case.ids, case.real, training=training)
    filled = case.fill_pads(case.rows)
    as_given = (filled == case.rows).all() and not case.model.takes_mask
    if not as_given or "use_cache" in case.model.names:
        ids = (*case.ids[:-1], filled)
        options = {"training": training, "mask": False, "default": True}
        count += look_ahead(case, ids, np.ones_like(case.real), **options)
    return (
        f"No token changes an earlier output ({count} changes"
        f"{', in training mode' if training else ''})."
    )


def choose(
    changes: np.ndarray, length: int, training: bool = False
) -> np.ndarray:
    """Return the rows of changes (M, 2) to test, few enough to be quick.

    Of many, the first, the last and those next to a power of two are kept,
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
    case: Case,
    ids: tuple[np.ndarray, ...],
    changes: np.ndarray,
    **options: Any,
) -> np.ndarray:
    """Return how much a change of each token changes the outputs, (M, T).

    ids: (token_ids,) or (source_ids, decoder_ids); changes (M, 2): rows and
    positions. The unchanged rows are computed in the same call as the changed
    ones, so that equal numbers are equal bit by bit; in training mode, and if
    the model draws random numbers, in a call of the same shape.
    """
    by_call = case.is_random or options.get("training")
    rows, found = ids[-1], []
    for chunk in case.in_chunks(len(changes)):
        row, position = changes[chunk].T
        where = np.arange(rows.shape[1]) == position[:, None]  # (M, T)
        other = case.exchange(rows[row], where)
        given = [x[row] for x in ids[:-1]]
        if by_call:
            before = case.outputs(*given, rows[row], **options)
            after = case.outputs(*given, other, **options)
        else:
            own, back = np.unique(row, return_inverse=True)
            given = [np.concatenate([x[own], x[row]]) for x in ids[:-1]]
            other = np.concatenate([rows[own], other])
            both = case.outputs(*given, other, **options)
            before, after = both[: len(own)][back], both[len(own) :]
        found.append(case.change(before, after))
    return np.concatenate(found)


def seen_effects(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return the changed tokens (M, 2) and their effects (M, T).

    They are those of the given ids, computed once.
    """
    if not hasattr(case, "seen"):
        changes = choose(np.argwhere(case.real), case.rows.shape[1])
        case.seen = changes, effects(case, case.ids, changes)
    return case.seen


def look_ahead(
    case: Case,
    ids: tuple[np.ndarray, ...],
    real: np.ndarray,
    **options: Any,
) -> int:
    """Return how many tokens were changed without changing the past.

    real (B, T): the tokens to change and to compare. Raises Failed if an
    earlier output changes.
    """
    place = np.arange(ids[-1].shape[1])
    if ids is case.ids and options == {"training": False}:
        changes, moves = seen_effects(case)
    else:
        follows = real & (real.cumsum(axis=1) > 1)
        training = options["training"]
        changes = choose(np.argwhere(follows), len(place), training)
        moves = effects(case, ids, changes, **options)
    past = real[changes[:, 0]] & (place < changes[:, 1:])
    moved = np.where(past, moves, 0).max(axis=1)
    if moved.max(initial=0) <= case.tolerance:
        case.refuse_coarse(moved.max(initial=0))
    # Alone in a batch, so that no other sequence can be the cause.
    suspects = changes[moved > case.tolerance]
    for b, t in suspects[:: 1 + len(suspects) // 16]:
        one = tuple(x[b : b + 1] for x in ids)
        other = (*one[:-1], case.exchange(one[-1], place == t))
        both = [case.outputs(*x, **options) for x in (one, other)]
        change = np.where(real[b] & (place < t), case.change(*both)[0], 0)
        if change.max() > case.tolerance:
            how = " in training mode" if options["training"] else ""
            if not options.get("mask", True):
                cache = ", use_cache= not given"
                cache = cache if "use_cache" in case.model.names else ""
                how += f" (full rows, no mask{cache})"
            said = "It does so in evaluation mode, too."
            if not case.leaks:
                where = where_first(case, one, other, t, **options)
                said = f"The model sees the future{where}"
            case.leaks = True
            raise Failed(
                f"Changing the token at position {t} changes "
                f"{case.say(b, change.argmax(), change.max())}{how}. {said}"
            )
    return len(changes)


def where_first(
    case: Case,
    one: tuple[np.ndarray, ...],
    other: tuple[np.ndarray, ...],
    position: int,
    **options: Any,
) -> str:
    """Return ", first in NAME (CLASS): ADVICE" for a leak."""
    name = first_moved(case, one, other, position, **options)
    if name is None:
        return f": {ADVICE['']}"
    kind = case.model.kind(name)
    advice = next(a for key, a in ADVICE.items() if matches(key, kind))
    return f", first in {name} ({kind}): {advice}"


def future_train(case: Case) -> str:
    """Run `future` in training mode, with nothing dropped.

    Dropout still draws, at a rate that drops nothing: the draws for a token
    may depend on how many tokens come before it, as in experts.
    """
    case.refuse_two_way()
    case.quiet = True
    try:
        one = case.outputs(*case.ids, training=True)
        two = case.outputs(*case.ids, training=True)
        if (case.change(one, two)[case.real] > case.tolerance).any():
            raise NotRun(
                "in training mode the outputs of two calls with one seed "
                "differ."
            )
        return future(case, training=True)
    finally:
        case.quiet = False


def steps(case: Case) -> str:
    """Does a prefix have the outputs of the whole sequence?"""
    case.refuse_two_way()
    case.refuse_random()
    length = case.rows.shape[1]
    if length < 3:
        raise Lacks("give sequences of three tokens or more.")
    lengths = np.unique(np.linspace(2, length - 1, MAX_PREFIXES).astype(int))
    for n in lengths:
        part = case.outputs(*case.ids[:-1], case.rows[:, :n])
        whole, real = case.base[:, :n], case.real[:, :n]
        if moved := case.say_change(whole, part, real):
            raise Failed(
                f"Reading only the first {n} tokens changes {moved}. Token by "
                "token, the model predicts something else than in one pass: "
                "check the causal mask, positions, and norms over positions."
            )
    return f"{len(lengths)} prefixes give the outputs of the whole sequence."


def pads(case: Case) -> str:
    """Do more pads leave the outputs of the tokens unchanged?

    No sequence gets longer: its last tokens are removed, once by cutting the
    sequences and once by putting pads in their place.
    """
    if case.pad_id is None:
        raise Lacks("pad_id=None: the model has no pads.")
    case.refuse_random()
    if case.model.either is None:
        raise NotRun(
            "the kit cannot tell what True means in "
            f"{', '.join(case.model.unsure_masks)}: with True at tokens and "
            "with True at pads, pads change the outputs. Give call=, a "
            "function of the model and its ids."
        )
    count = pads_on_the_right(case)
    said = f"{count} more pads on the right"
    # A causal model that takes positions should generate with left pads.
    left = case.causal and "position_ids" in case.model.names
    left |= bool(case.facts.get("pad_left"))
    if left or not case.real_tokens(case.ids[0], 0)[:, 0].all():
        pads_on_the_left(case)
        said += ", and different numbers of pads on the left,"
    return f"{said} change nothing."


def pads_on_the_right(case: Case) -> int:
    """Return how many pads were added; raise Failed if one matters."""
    first = case.ids[0]  # the source, where there is one
    real = case.real_tokens(first, 0)
    room = first.shape[1] - 1 - int(real.argmax(axis=1).max())
    count = min(3, room)
    if count < 1:
        raise Lacks("a sequence is too short: give longer ones.")
    cut, rest = first[:, :-count], case.ids[1:]
    real = case.real if rest else case.real_tokens(cut)
    before = case.outputs(cut, *rest)
    width = [(0, 0), (0, count)]
    padded = np.pad(cut, width, constant_values=case.pad_id)
    after = case.outputs(padded, *rest)
    after = after if rest else after[:, : cut.shape[1]]
    if moved := case.say_change(before, after, real):
        raise Failed(
            f"{count} more pads on the right change {moved}. Tokens attend to "
            "pads: check whether the padding mask reaches every layer and "
            "blocks keys, and what True means in it."
        )
    return count


def pads_on_the_left(case: Case) -> None:
    """Raise Failed if rows with pads before them have other outputs.

    Each row gets a different number of pads, and is compared with itself,
    alone and without pads.
    """
    rows, rest = case.left_padded()[:MAX_ROWS], case.ids[1:]
    length = max(map(len, rows)) + 1
    padded = np.full((len(rows), length), case.pad_id)
    for b, row in enumerate(rows):
        padded[b, length - len(row) :] = row
    given = [x[: len(rows)] for x in rest]
    together = case.outputs(padded, *given, positions=True)
    for b, row in enumerate(rows):
        given = [x[b : b + 1] for x in rest]
        alone = case.outputs(row[None], *given, positions=True)
        with_pads = together[b : b + 1]
        real = case.real[b : b + 1]
        if not rest:
            with_pads = with_pads[:, -len(row) :]
            real = np.ones((1, len(row)), bool)
        if moved := case.say_change(alone, with_pads, real):
            moved = moved.replace("sequence 0", f"sequence {b}")  # alone
            raise Failed(
                f"Pads on the left change {moved}. Tokens attend to pads, or "
                "positions count them: check the mask of each row, and count "
                "positions from the first token."
            )


def alone(case: Case) -> str:
    """Does a sequence have the same outputs without the rest of the batch?"""
    if len(case.rows) < 2:
        raise Lacks("one sequence was given: give two or more.")
    case.refuse_random()
    for b in range(min(len(case.rows), MAX_ROWS)):
        one = case.outputs(*(x[b : b + 1] for x in case.ids))
        here = case.base[b : b + 1], one, case.real[b : b + 1]
        if case.say_change(*here):
            gap = np.where(here[2], case.change(*here[:2]), 0)[0]
            raise Failed(
                "Taking a sequence out of the batch changes "
                f"{case.say(b, gap.argmax(), gap.max())}. Sequences affect "
                "each other: check batch_first, the axis along which "
                "positions are added, how heads are split, whether "
                "each row has its own mask (repeat_interleave, not repeat), "
                "and whether experts refuse tokens when they are full."
            )
    return (
        f"Each of the {len(case.rows)} sequences has the same outputs alone."
    )


def calls(case: Case) -> str:
    """Do calls in evaluation mode agree, whatever calls are between them?"""
    other = other_rows(case)
    fresh = case.outputs(*other)
    copy = case.model.copy()
    first = case.base  # from a copy that was never called before
    shape = first.shape
    copy.outputs(case.ids)
    again = copy.outputs(case.ids).reshape(shape)
    advice = "look for a mask or a cache that is edited in place"
    if moved := case.say_change(first, again, case.real):
        raise Failed(f"A second call changes {moved}: {advice}.")
    later = copy.outputs(other).reshape(shape)
    last = copy.outputs(case.ids).reshape(shape)
    pairs = [
        (fresh, later, case.real_tokens(other[-1])),
        (first, last, case.real),
    ]
    for pair in pairs:
        if moved := case.say_change(*pair):
            raise Failed(
                f"An earlier call with other pads changes {moved}: {advice}."
            )
    if case.is_random:
        raise Failed(
            "Two calls with different seeds differ: dropout acts in "
            "evaluation mode, or the model samples by design."
        )
    return "Calls agree, also after calls with other pads."


def other_rows(case: Case) -> tuple[np.ndarray, ...]:
    """Return ids of the same shapes with other tokens and other pads."""
    rows = []
    for number, ids in enumerate(case.ids):
        real = case.real_tokens(ids, number)
        other = case.fill_pads(case.exchange(ids, real, number), number)
        if case.pad_id is not None and ids.shape[1] > 2:
            other[0, -(ids.shape[1] // 3) :] = case.pad_id
        rows.append(other)
    return tuple(rows)


def context(case: Case) -> str:
    """Does the output at the last token depend on the other tokens?"""
    real = case.real
    last = real & (real[:, ::-1].cumsum(axis=1)[:, ::-1] == 1)
    last &= real.sum(axis=1, keepdims=True) > 1
    others = case.exchange(case.rows, real & ~last)
    after = case.outputs(*case.ids[:-1], others)
    same = (case.change(case.base, after) == 0) & last
    if same.any():
        row, position = np.argwhere(same)[0]
        raise Failed(
            f"Exchanging all other tokens of sequence {row} does not change "
            f"the output at position {position}: check whether the mask is "
            "inverted, and what True means in it."
        )
    return "The output at the last token depends on the other tokens."


def reach(case: Case) -> str:
    """Does each token change its own output and another one?

    With causal=False: do tokens change earlier outputs and later ones?
    """
    changes, moves = seen_effects(case)
    place = np.arange(case.rows.shape[1])
    row, position = changes.T
    # Only outputs at tokens count.
    moved = case.real[row] & (moves > 2 * case.model.eps)  # (M, T)
    own = moved[np.arange(len(moved)), position]
    late = (moved & (place > position[:, None])).any(axis=1)
    early = (moved & (place < position[:, None])).any(axis=1)
    later = case.real[row] & (place > position[:, None])
    follows = later.any(axis=1)  # whether a token comes later
    if not case.causal and early.any() != late.any():
        way = "later" if late.any() else "earlier"
        raise Failed(
            f"Tokens change {way} outputs only: a model that may look both "
            "ways (causal=False) has a causal mask."
        )
    kinds = {
        "its own output": ~own,
        "a later output": case.causal & follows & ~late,
        "any other output": ~(case.causal | late | early),
    }
    for what, still in kinds.items():
        if still.any():
            b, t = changes[still.argmax()]
            raise Failed(
                f"Changing the token at position {t} of sequence {b} does not "
                f"change {what}: check what a position reads, whether logits "
                "or inputs are shifted twice, and the edges of the mask."
            )
    far = (place - position[:, None])[moved]
    return (
        f"Tokens change outputs from {-far.min()} positions before to "
        f"{far.max()} after."
    )


def source(case: Case) -> str:
    """Does each token of the source change the outputs?"""
    if len(case.ids) < 2:
        raise Lacks("only for an encoder-decoder: give decoder_ids, too.")
    ids = case.ids[0]
    for position in range(ids.shape[1]):
        where = case.real_tokens(ids, 0) & (
            np.arange(ids.shape[1]) == position
        )  # (B, S)
        after = case.outputs(case.exchange(ids, where, 0), case.rows)
        change = np.where(case.real, case.change(case.base, after), 0)
        still = where.any(axis=1) & (change.max(axis=1) == 0)
        if still.any():
            raise Failed(
                f"Changing the token at position {position} of source "
                f"{still.argmax()} changes no output: check the keys and "
                "values of cross-attention, and the mask of the memory."
            )
    return "Each token of the source changes the outputs."
