"""Does a token see later ones? By outputs, by gradients, by prefixes."""

from __future__ import annotations

import numpy as np

from .context import CheckContext
from .gradients import draw_cotangent, gradient_of
from .influence import Influence, measure_influence
from .traces import first_moved, matches
from .verdicts import Failed, MissingArgument, NotRun

# At most so many prefixes are computed.
MAX_PREFIXES = 32
# What to check, by a part of the first differing layer's class.
ADVICE = {
    "batchnorm": "its mean runs over positions and sequences.",
    "norm": "normalise the features of one token, not the positions.",
    "rout|gate|moe|expert": "check what it reads, and whether it chooses "
    "among all tokens.",
    "conv": "pad a causal convolution on the left only.",
    "": "check the causal mask, what True means in it, and how heads are "
    "split.",
}


def causality(context: CheckContext) -> str:
    """Do later tokens leave earlier outputs unchanged?

    Each token is changed alone, and all earlier outputs are compared: first
    with pads and masks, then with full rows, no mask, and the default of
    use_cache=.
    """
    context.refuse_two_way(told=False)
    if context.looks_both_ways:
        raise Failed(
            "Every token moves earlier outputs, and the model says that it is "
            "an encoder: pass causal=False. If it should write texts, it has "
            "no causal mask."
        )
    refuse_leak(context, context.influence, context.real)
    count = len(context.influence.changes) + full_rows(context)
    return f"No token changes an earlier output ({count} changes)."


def causality_train(context: CheckContext) -> str:
    """Run `causality` in training mode, with nothing dropped.

    Dropout still draws, at a rate that drops nothing: the draws for a token
    may depend on how many tokens come before it, as in experts.
    """
    context.refuse_two_way()
    one = context.outputs(*context.ids, training=True)
    two = context.outputs(*context.ids, training=True)
    if (context.change(one, two)[context.real] > context.tolerance).any():
        raise NotRun(
            "in training mode the outputs of two calls with one seed differ."
        )
    follows = context.real & (context.real.cumsum(axis=1) > 1)
    found = measure_influence(context, context.ids, follows, training=True)
    refuse_leak(context, found, context.real)
    count = len(found.changes) + full_rows(context, training=True)
    return (
        f"No token changes an earlier output ({count} changes, in training "
        "mode)."
    )


def full_rows(context: CheckContext, training: bool = False) -> int:
    """Return how many tokens of rows without pads and masks were changed.

    It is 0 if the given rows are such rows.
    """
    filled = context.fill_pads(context.rows)
    as_given = (filled == context.rows).all() and not context.model.takes_mask
    if as_given and "use_cache" not in context.model.names:
        return 0
    every = np.ones_like(context.real)
    follows = every & (every.cumsum(axis=1) > 1)
    options = {"training": training, "mask": False, "default": True}
    ids = (*context.ids[:-1], filled)
    found = measure_influence(context, ids, follows, **options)
    refuse_leak(context, found, every)
    return len(found.changes)


def refuse_leak(
    context: CheckContext, found: Influence, real: np.ndarray
) -> None:
    """Raise Failed if a token moves an earlier output.

    real (B, T): the positions to compare.
    """
    ids, changes, options = found.ids, found.changes, found.options
    place = np.arange(ids[-1].shape[1])
    past = real[changes[:, 0]] & (place < changes[:, 1:])
    moved = np.where(past, found.moves, 0).max(axis=1)
    if moved.max(initial=0) <= context.tolerance:
        context.refuse_coarse(moved.max(initial=0))
    # Alone in a batch, so that no other sequence can be the cause.
    suspects = changes[moved > context.tolerance]
    for b, t in suspects[:: 1 + len(suspects) // 16]:
        one = tuple(x[b : b + 1] for x in ids)
        other = (*one[:-1], context.exchange(one[-1], place == t))
        both = [context.outputs(*x, **options) for x in (one, other)]
        change = np.where(real[b] & (place < t), context.change(*both)[0], 0)
        if change.max() > context.tolerance:
            how = " in training mode" if options.get("training") else ""
            if not options.get("mask", True):
                cache = ", use_cache= not given"
                cache = cache if "use_cache" in context.model.names else ""
                how += f" (full rows, no mask{cache})"
            said = "It does so in evaluation mode, too."
            if not context.leaks:
                where = where_first(context, one, other, t, **options)
                said = f"The model sees the future{where}"
            context.leaks = True
            raise Failed(
                f"Changing the token at position {t} changes "
                f"{context.say(b, change.argmax(), change.max())}{how}. {said}"
            )


def where_first(
    context: CheckContext,
    one: tuple[np.ndarray, ...],
    other: tuple[np.ndarray, ...],
    position: int,
    **options: bool,
) -> str:
    """Return ", first in NAME (CLASS): ADVICE" for a leak."""
    name = first_moved(context, one, other, position, **options)
    if name is None:
        return f": {ADVICE['']}"
    kind = context.model.kind(name)
    advice = next(a for key, a in ADVICE.items() if matches(key, kind))
    return f", first in {name} ({kind}): {advice}"


def causality_grad(context: CheckContext) -> str:
    """Do early outputs give later tokens no gradient?"""
    context.refuse_two_way()
    found = context.copy().read_table(context.ids)
    if found is None:
        raise NotRun("the kit finds no table of tokens.")
    name, table = found
    length = context.rows.shape[1]
    taken = [
        context.pad_id or 0,
        *(context.ids[0].flat if context.ids[1:] else ()),
    ]
    tokens = np.setdiff1d(np.arange(len(table)), taken)[:length]
    if len(tokens) < 2:
        raise NotRun("the table has too few rows for different tokens.")
    ids = (*(x[:1] for x in context.ids[:-1]), tokens[None])
    cuts = np.unique(np.linspace(1, len(tokens) - 1, 4).astype(int))
    for cut in cuts[cuts > 0]:

        def cotangent(shape, cut=cut):
            where = np.arange(len(tokens))[None] < cut  # (1, T)
            numbers = draw_cotangent(shape, where)
            if shape[-1] == len(table):
                # A tied table also gets a gradient as the last layer.
                numbers[..., tokens[cut:]] = 0
            return numbers

        grad = gradient_of(context.copy(), name, ids, cotangent)
        if grad is None:
            raise NotRun(f"no gradient reaches {name}; see gradient_flow.")
        size = np.abs(grad[tokens]).max(axis=1)
        late = size[cut:].max() / max(size.max(), np.finfo(np.float32).tiny)
        if late > max(1e3 * context.model.eps, context.tolerance):
            position = cut + int(size[cut:].argmax())
            raise Failed(
                f"Outputs before position {cut} give the token at position "
                f"{position} a gradient, {late:.1e} of the largest: the "
                "model sees the future. Check the causal mask."
            )
        context.refuse_coarse(late)
    return "Early outputs give later tokens no gradient."


def prefix_consistency(context: CheckContext) -> str:
    """Does a prefix have the outputs of the whole sequence?"""
    context.refuse_two_way()
    context.refuse_random()
    length = context.rows.shape[1]
    if length < 3:
        raise MissingArgument(
            "give sequences of three tokens or more.", "three tokens"
        )
    lengths = np.unique(np.linspace(2, length - 1, MAX_PREFIXES).astype(int))
    for n in lengths:
        part = context.outputs(*context.ids[:-1], context.rows[:, :n])
        whole, real = context.base[:, :n], context.real[:, :n]
        if moved := context.say_change(whole, part, real):
            raise Failed(
                f"Reading only the first {n} tokens changes {moved}. Token by "
                "token, the model predicts something else than in one pass: "
                "check the causal mask, positions, and norms over positions."
            )
    return f"{len(lengths)} prefixes give the outputs of the whole sequence."
