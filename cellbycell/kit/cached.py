"""The check `cached`: does a cache give the logits of one pass?"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .asked import Asked, Failed, Lacks, NotAsked, first_line
from .differ import distance, first_apart, matches
from .model import Unreadable

# Of a long row so many of the first and the last tokens are read one by one.
ONE_BY_ONE = 8
# What to look at, by what the name and class of the first module say.
ADVICE = {
    "rotary|embed|position|wpe": "at how positions of new tokens are made",
    "": "at the positions of new tokens, at how the mask lies over old and "
    "new keys, at their order, and at what is kept of earlier calls",
}


def cached(asked: Asked) -> str:
    """Do rows that are read in parts, with a cache, have the same outputs?

    One token at a time, without masks; three at a time, with masks; and,
    where a model takes masks, one at a time with positions and with pads on
    the left, another number in each row. All with the same copy, which in the
    end is asked without a cache once more.
    """
    asked.refuse_two_way()
    asked.refuse_random()
    own = asked.facts.get("step") is not None
    if not own and asked.model.cache_name is None:
        raise Lacks(
            "no cache was found among the model's arguments: give step=, a "
            "function of the model, its new ids and the cache."
        )
    length = asked.rows.shape[1]
    if length < 4:
        raise Lacks("give sequences of four tokens or more.")
    rest = asked.ids[:-1]
    full = tuple(asked.fill_pads(x, i) for i, x in enumerate(asked.ids))
    few = max(1, min(4, length // 3))
    none, masks = {"mask": False}, {"mask": True}
    plans = [("one token at a time", full, few, 1, none)]
    if few + 3 <= length:
        plans.append(("three tokens at a time", asked.ids, few, 3, masks))
    takes = asked.model.takes_mask and not own and not asked.model.hub_cache
    if asked.pad_id is not None and takes and not rest:
        left = on_the_left(asked)
        begin = int(asked.real_tokens(left).argmax(axis=1).max()) + 1
        how = "one token at a time with pads on the left"
        if begin < length:
            both = masks | {"positions": True}
            plans.append((how, (left,), begin, 1, both))
    wholes = [asked.outputs(*ids, **given) for _, ids, _, _, given in plans]
    copy, refused = asked.copy(), ""
    for plan, whole in zip(plans, wholes, strict=True):
        how, ids, begin, count, given = plan
        given = {"positions": False} | given
        try:
            found = read(asked, copy, ids, cuts(begin, count, length), given)
        except Exception as error:
            # A state that one token moves on; nobody gets wrong numbers.
            if count == 1 or isinstance(error, (Failed, NotAsked)):
                raise
            refused = f" Not {how}: {first_line(error)}"
            continue
        real = asked.real_tokens(ids[-1])
        if moved := asked.say_change(whole, found, real):
            change = np.where(real, asked.change(whole, found), 0)
            # The first position of all rows, before the difference spreads.
            t, b = np.argwhere(change.T > asked.tolerance)[0]
            parts = cuts(begin, count, length)
            first = first_in(asked, ids, parts, given, (b, t))
            plain = "" if given["positions"] else ", no positions given"
            raise Failed(
                f"Read with a cache, {how} behind the first {begin}{plain}, "
                f"the row has other logits than in one pass: {moved}. They "
                f"part at position {t}{first}."
            )
    last = copy.outputs(full, mask=False).reshape(wholes[0].shape)
    if moved := asked.say_change(wholes[0], last, np.ones_like(asked.real)):
        raise Failed(
            f"After reading with a cache, one pass without it changes {moved}:"
            " the model keeps what belongs to an earlier row."
        )
    ways = [how for how, *_ in plans if how not in refused]
    said = f"With a cache the outputs are those of one pass: {'; '.join(ways)}"
    return f"{said}.{refused}"


def read(
    asked: Asked, copy: Any, ids: Any, where: list[int], given: dict
) -> np.ndarray:
    """Return the outputs of ids that are read in parts, (B, T, C)."""
    try:
        found = copy.read(ids, where, **given)
    except Unreadable:
        raise NotAsked(
            f"the model takes {copy.cache_name}, and returns none: give "
            "step=, a function of the model, its new ids and the cache."
        ) from None
    return found.reshape(*ids[-1].shape, -1)


def first_in(
    asked: Asked, ids: Any, where: list[int], given: dict, place: tuple
) -> str:
    """Return ", first in NAME (CLASS), ...: ADVICE", for a part that differs.

    place: the row and the position at which it is asked.
    """
    row, position = place
    copy, cache, trace = asked.copy(), None, []
    whole = copy.trace(ids, **given)
    copy = asked.copy()
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
        return x.shape == y.shape and distance(y, x) > asked.tolerance

    name = first_apart(whole, trace, apart) or ""
    label = f"{name} ({copy.kind(name)})" if name else ""
    advice = next(a for key, a in ADVICE.items() if matches(key, label))
    there = f", first in {label} or in what it is given" if name else ""
    return f"{there}: look {advice}"


def cuts(begin: int, count: int, length: int) -> list[int]:
    """Return where a row is cut: first `begin` tokens, then `count` each.

    In the middle of a long row there is one part of many tokens.
    """
    all_cuts = [*range(begin, length, count)]
    ends = all_cuts[:ONE_BY_ONE] + all_cuts[-ONE_BY_ONE:]
    return sorted({*ends})


def on_the_left(asked: Asked) -> np.ndarray:
    """Return the rows with pads on the left, another number in each."""
    rows = asked.left_padded()
    found = np.full_like(asked.rows, asked.pad_id)
    for b, row in enumerate(rows):
        found[b, asked.rows.shape[1] - len(row) :] = row
    return found
