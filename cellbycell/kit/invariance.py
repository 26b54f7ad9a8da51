"""Checks that change something, and see whether the outputs move."""

from __future__ import annotations

import numpy as np

from .asked import Asked, Failed, NotAsked

# At most so many positions are changed, one at a time.
MAX_CHANGES = 512
# At most so many prefixes are computed.
MAX_PREFIXES = 32


def future(asked: Asked, training: bool = False) -> str:
    """Do outputs stay as they are when later tokens change?

    Each token is changed alone, and all earlier outputs are compared: first
    with the pads and masks as given, then with full rows and no mask.
    """
    asked.refuse_two_way()
    count = look_ahead(asked, asked.ids, asked.real, training, True)
    filled = asked.fill_pads(asked.rows)
    if asked.model.takes_mask or (filled != asked.rows).any():
        ids = (*asked.ids[:-1], filled)
        everywhere = np.ones_like(asked.real)
        count += look_ahead(asked, ids, everywhere, training, False)
    return (
        f"No token moves an earlier output ({count} changes"
        f"{', in training mode' if training else ''})."
    )


def look_ahead(
    asked: Asked,
    ids: tuple[np.ndarray, ...],
    real: np.ndarray,
    training: bool,
    mask: bool,
) -> int:
    """Return how many tokens were changed without moving the past.

    ids: (token_ids,) or (source_ids, decoder_ids); real (B, T): the tokens
    to change and to compare. Raises Failed at the first that moves.
    """
    rows, options = ids[-1], {"training": training, "mask": mask}
    follows = real & (real.cumsum(axis=1) > 1)
    changes = np.argwhere(follows)  # (M, 2)
    if len(changes) > MAX_CHANGES:
        kept = np.linspace(0, len(changes) - 1, MAX_CHANGES).astype(int)
        changes = changes[kept]

    def compare(row, position):
        """Return how far a change moves earlier outputs, (M, T)."""
        where = np.arange(rows.shape[1]) == position[:, None]  # (M, T)
        other = asked.exchange(rows[row], where)
        given = [x[row] for x in ids[:-1]]
        before = asked.outputs(*given, rows[row], **options)
        after = asked.outputs(*given, other, **options)
        past = real[row] & (np.arange(rows.shape[1]) < position[:, None])
        return np.where(past, asked.change(before, after), 0)

    for chunk in asked.in_chunks(len(changes)):
        row, position = changes[chunk].T
        moved = compare(row, position).max(axis=1) > asked.tolerance
        # Alone in a batch, so that no other sequence can be the cause.
        suspects = changes[chunk][moved]
        for b, t in suspects[:: 1 + len(suspects) // 16]:
            change = compare(np.array([b]), np.array([t]))[0]
            if change.max() > asked.tolerance:
                how = "as given" if mask else "full rows, no mask"
                raise Failed(
                    f"Another token at position {t} moves "
                    f"{asked.say(b, change.argmax(), change.max())} ({how}"
                    f"{', in training mode' if training else ''}). The model "
                    "sees the future: look at the causal mask, at what True "
                    "means in it, and at how heads are split."
                )
    return len(changes)


def future_in_training(asked: Asked) -> str:
    """Ask `future` in training mode, the dropout masks kept the same."""
    asked.refuse_two_way()
    one = asked.outputs(*asked.ids, training=True)
    two = asked.outputs(*asked.ids, training=True)
    if (asked.change(one, two)[asked.real] > asked.tolerance).any():
        raise NotAsked(
            "in training mode the model draws at random although the "
            "generators are fixed."
        )
    return future(asked, training=True)


def steps(asked: Asked) -> str:
    """Is the output for a prefix that of the whole sequence?"""
    asked.refuse_two_way()
    asked.refuse_random()
    length = asked.rows.shape[1]
    if length < 3:
        raise NotAsked("give sequences of three tokens or more.")
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
        raise NotAsked("pad_id=None: the model has no pads.")
    asked.refuse_random()
    first = asked.ids[0]  # the source, where there is one
    real = asked.real_tokens(first)
    room = first.shape[1] - 1 - int(real.argmax(axis=1).max())
    count = min(3, room)
    if count < 1:
        raise NotAsked("a sequence is too short: give longer ones.")
    cut = first[:, :-count]
    rest = asked.ids[1:]
    real = asked.real_tokens(cut) if not rest else asked.real
    before = asked.outputs(cut, *rest)
    sides = {"right": [(0, 0), (0, count)]}
    if asked.facts.get("pad_left"):
        sides["left"] = [(0, 0), (count, 0)]
    for side, width in sides.items():
        padded = np.pad(cut, width, constant_values=asked.pad_id)
        after = asked.outputs(padded, *rest)
        if not rest:
            after = after[:, width[1][0] :][:, : cut.shape[1]]
        if moved := asked.say_change(before, after, real):
            raise Failed(
                f"{count} more pads on the {side} change {moved}. Tokens "
                "attend to pads: look whether the padding mask reaches every "
                "layer, whether it blocks keys, and what True means in it."
            )
    return f"{count} more pads on the {' and the '.join(sides)} move nothing."


def alone(asked: Asked) -> str:
    """Has a sequence the same outputs without the others in the batch?"""
    if len(asked.rows) < 2:
        raise NotAsked("one sequence was given: give two or more.")
    asked.refuse_random()
    for b in range(len(asked.rows)):
        one = asked.outputs(*(x[b : b + 1] for x in asked.ids))
        here = asked.base[b : b + 1], one, asked.real[b : b + 1]
        if asked.say_change(*here):
            gap = np.where(here[2], asked.change(*here[:2]), 0)[0]
            raise Failed(
                "Taken out of the batch, "
                f"{asked.say(b, gap.argmax(), gap.max())} changes. Sequences "
                "attend to each other: look at batch_first, at the axis along "
                "which positions are added, and at how heads are split."
            )
    return f"Each of the {len(asked.rows)} sequences is the same alone."


def calls(asked: Asked) -> str:
    """Do calls in evaluation mode agree, whatever was asked between them?"""
    copy = asked.model.copy()
    first = asked.base  # of a copy that had never been called
    shape = first.shape
    copy.outputs(asked.ids)
    again = copy.outputs(asked.ids).reshape(shape)
    advice = "look for a mask or a cache that is edited in place"
    if moved := asked.say_change(first, again, asked.real):
        raise Failed(f"A second call changes {moved}: {advice}.")
    other = other_rows(asked)
    fresh = asked.model.copy().outputs(other).reshape(shape)
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
        other = asked.exchange(ids, asked.real_tokens(ids), number)
        other = asked.fill_pads(other, number)
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


def source(asked: Asked) -> str:
    """Does each token of the source move the outputs?"""
    if len(asked.ids) < 2:
        raise NotAsked("for an encoder-decoder: give source and decoder ids.")
    ids = asked.ids[0]
    for position in range(ids.shape[1]):
        where = asked.real_tokens(ids) & (
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
