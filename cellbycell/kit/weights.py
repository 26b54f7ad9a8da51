"""Checks of the outputs' shape, the weights, gradients, and a reference."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .asked import Asked, Failed, NotAsked
from .differ import differences, first_difference


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
            f"The gradient of {listed(wild)} is not finite: look for a "
            "query that may attend to no key, also at pads."
        )
    zero = [n for n, g in asked_for.items() if not g.any()]
    for name in zero:
        # The bias of keys has no effect, for the softmax ignores it; the
        # choice of an expert does not move with small changes.
        copy = asked.model.copy()
        weight = dict(copy.weights())[name]
        step = np.random.default_rng(0).normal(size=weight.shape)
        copy.assign(name, weight + 1e-3 * (weight.std() + 1e-2) * step)
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
    asked.refuse_two_way()
    found = asked.model.copy().read_table(asked.ids)
    if found is None:
        raise NotAsked("no table of tokens was found.")
    name, table = found
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

        grad = asked.model.copy().gradients(ids, pull)[name]
        if grad is None:
            raise NotAsked(f"no gradient reaches {name}: see gradients.")
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
    weights = [*asked.model.weights()]
    for name, weight in weights:
        if weight.ndim < 2 or np.array_equal(weight[0], weight[-1]):
            continue  # constant, not initialised at random
        key = weight.tobytes()
        if key in seen:
            raise Failed(
                f"{seen[key]} and {name} are equal, number for number. Unless "
                "they are meant to be, look for a seed in a loop, or a layer "
                "that was copied, as nn.TransformerEncoder does; initialise "
                "them again."
            )
        seen[key] = name
    said = f"{len(seen)} weight matrices, no two of them equal."
    calls = Counter(name for name, _ in asked.model.copy().trace(asked.ids))
    own = {name.replace("/", ".").rpartition(".")[0] for name, _ in weights}
    shared = [
        name
        for name, number in calls.items()
        if number > 1 and name.replace("/", ".") in own
    ]
    if shared:
        # Right in a model such as ALBERT, so no verdict.
        said += f" Called more than once in a pass: {listed(shared)}."
    return said


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
    named = where.module == where.reference
    hint = "" if named else " A hint only: modules are matched by outputs."
    raise Failed(
        f"Different from the reference is {moved}. The first module to "
        f"differ is {where.module} ({where.reference} there), by "
        f"{where.change:.1e}.{hint}"
    )
