"""Does a cache give the logits of one pass?"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from .backends.base import Ids, Unreadable, WrappedModel
from .context import CheckContext
from .model_io import begins_with_pads
from .traces import distance, first_apart, matches
from .verdicts import Failed, MissingArgument, NotRun, first_line

# In a long row, this many of the first and last tokens are read one by one.
ONE_BY_ONE = 8
# What to check, by a part of the first module's name or class.
ADVICE = {
    "rotary|embed|position|wpe": "how the positions of new tokens are made",
    "": "the positions of new tokens, the mask over old and new keys, the "
    "order of the keys, and what is kept from earlier calls",
}


def cache_consistency(context: CheckContext) -> str:
    """Do sequences read in parts, with a cache, have the same outputs?

    One token at a time without masks; three at a time with masks; and, if
    the model takes masks, one at a time with positions and left pads, a
    different number in each row. The same copy reads all of them, and at the
    end a row without a cache.
    """
    context.refuse_two_way()
    context.refuse_random()
    own = context.step is not None
    if not own and context.model.cache_name is None:
        raise MissingArgument(
            "the kit finds no argument for a cache: give step=, a function "
            "of the model, its new ids and the cache.",
            "step=",
        )
    length = context.rows.shape[1]
    if length < 4:
        raise MissingArgument(
            "give sequences of four tokens or more.", "four tokens"
        )
    rest = context.ids[:-1]
    full = tuple(context.fill_pads(x, i) for i, x in enumerate(context.ids))
    few = max(1, min(4, length // 3))
    none, masks = {"mask": False}, {"mask": True}
    if begins_with_pads(context.real):
        masks["positions"] = True
    plans = [("one token at a time", full, few, 1, none)]
    if few + 3 <= length:
        plans.append(("three tokens at a time", context.ids, few, 3, masks))
    takes = (
        context.model.takes_mask and not own and not context.model.hub_cache
    )
    if context.pad_id is not None and takes and not rest:
        left = on_the_left(context)
        begin = int(context.real_tokens(left).argmax(axis=1).max()) + 1
        how = "one token at a time with pads on the left"
        if begin < length:
            both = masks | {"positions": True}
            plans.append((how, (left,), begin, 1, both))
    wholes = [context.outputs(*ids, **given) for _, ids, _, _, given in plans]
    copy, refused = context.copy(), ""
    for plan, whole in zip(plans, wholes, strict=True):
        how, ids, begin, count, given = plan
        given = {"positions": False} | given
        try:
            found = read(context, copy, ids, cuts(begin, count, length), given)
        except Exception as error:
            # Some states take one token a call; an error hides no mistake.
            if count == 1 or isinstance(error, (Failed, NotRun)):
                raise
            refused = f" Not tested {how}: {first_line(error)}"
            continue
        real = context.real_tokens(ids[-1])
        if moved := context.say_change(whole, found, real):
            change = np.where(real, context.change(whole, found), 0)
            # The first position of all rows, before the difference spreads.
            t, b = np.argwhere(change.T > context.tolerance)[0]
            parts = cuts(begin, count, length)
            first = first_in(context, ids, parts, given, (b, t))
            plain = "" if given["positions"] else ", no positions given"
            raise Failed(
                f"Reading with a cache ({how} after the first {begin}{plain}) "
                f"changes {moved}. The difference begins at position "
                f"{t}{first}."
            )
    last = copy.outputs(full, mask=False).reshape(wholes[0].shape)
    if moved := context.say_change(
        wholes[0], last, np.ones_like(context.real)
    ):
        raise Failed(
            f"Reading with a cache changes a later pass without it: {moved}. "
            "The model keeps state of an earlier sequence."
        )
    ways = [how for how, *_ in plans if how not in refused]
    said = f"A cache gives the outputs of one pass: {'; '.join(ways)}"
    return f"{said}.{refused}{exchanged(context, full, wholes[0], few)}"


def exchanged(
    context: CheckContext, ids: Ids, whole: np.ndarray, few: int
) -> str:
    """Return what became of a cache whose rows change places, or fail.

    So do beams: a row goes on from what another row has read. whole: the
    outputs of one pass; few: how many tokens are read before.
    """
    if len(whole) < 2:
        return ""
    order = np.roll(np.arange(len(whole)), 1)
    copy, given = context.copy(), {"mask": False, "positions": False}
    other = tuple(x[order] for x in ids)
    try:
        before = (*ids[:-1], ids[-1][:, :few])
        _, cache = copy.cached_part(before, 0, None, **given)
        cache = copy.reordered(cache, order)
        after = (*other[:-1], other[-1][:, : few + 1])
        found, _ = copy.cached_part(after, few, cache, **given)
    except Exception as error:
        return f" Not tested as beams use it: {first_line(error)}"
    here = slice(few, few + 1)
    found = found.reshape(whole[order, here].shape)
    real = np.ones(found.shape[:2], bool)
    if moved := context.say_change(whole[order, here], found, real):
        raise Failed(
            "A cache whose rows change places, as beams need it, changes "
            f"{moved}: does all that is kept move with them, also what the "
            "modules keep themselves?"
        )
    return " Its rows can change places."


def read(
    context: CheckContext,
    copy: WrappedModel,
    ids: Ids,
    where: list[int],
    given: dict,
) -> np.ndarray:
    """Return the outputs for ids read in parts, (B, T, C)."""
    try:
        found = copy.read(ids, where, **given)
    except Unreadable:
        raise NotRun(
            f"the model takes {copy.cache_name} but returns no cache: give "
            "step=, a function of the model, its new ids and the cache."
        ) from None
    return found.reshape(*ids[-1].shape, -1)


def first_in(
    context: CheckContext,
    ids: Ids,
    where: list[int],
    given: dict,
    place: tuple[int, int],
) -> str:
    """Return ", first in NAME (CLASS) or in its input: check ADVICE".

    place: the row and the position to compare.
    """
    row, position = place
    copy, cache, trace = context.copy(), None, []
    whole = copy.trace(ids, **given)
    copy = context.copy()
    for start, end in pairwise([0, *where, ids[-1].shape[1]]):
        part = (*ids[:-1], ids[-1][:, :end])
        run = partial(copy.cached_part, part, start, cache, **given)
        if end > position:
            trace = copy.trace(part, run)
            break
        _, cache = run()

    def apart(x, y):
        if x is None or y is None or min(x.ndim, y.ndim) < 2:
            return False
        if (x.shape[1], y.shape[1]) != (ids[-1].shape[1], end - start):
            return False
        x, y = x[row % len(x), position], y[row % len(y), position - start]
        return x.shape == y.shape and distance(y, x) > context.tolerance

    name = first_apart(whole, trace, apart) or ""
    label = f"{name} ({copy.kind(name)})" if name else ""
    advice = next(a for key, a in ADVICE.items() if matches(key, label))
    there = f", first in {label} or in its input" if name else ""
    return f"{there}: check {advice}"


def cuts(begin: int, count: int, length: int) -> list[int]:
    """Return where a row is cut: first `begin` tokens, then `count` each.

    The middle of a long row is one part of many tokens.
    """
    all_cuts = [*range(begin, length, count)]
    ends = all_cuts[:ONE_BY_ONE] + all_cuts[-ONE_BY_ONE:]
    return sorted({*ends})


def on_the_left(context: CheckContext) -> np.ndarray:
    """Return the rows with left pads, a different number in each."""
    rows = context.left_padded()
    found = np.full_like(context.rows, context.pad_id)
    for b, row in enumerate(rows):
        found[b, context.rows.shape[1] - len(row) :] = row
    return found
