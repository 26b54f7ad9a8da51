"""Checks of the outputs' shape, the weights, gradients, and a reference."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .asked import Asked, Failed, Lacks, NotAsked, Warned, first_line
from .differ import differences, first_difference


def shape(asked: Asked) -> str:
    """Are the outputs finite numbers, (B, T, ...), that differ?"""
    found, rows = asked.first, asked.rows
    sizes = found.shape
    if sizes[:2] != rows.shape:
        raise Failed(
            f"Ids {rows.shape} give outputs {sizes}: {why_shape(sizes, rows)}"
        )
    vocab_size = asked.facts.get("vocab_size")
    if vocab_size and sizes[2:] != (vocab_size,):
        raise Failed(f"Outputs are {sizes}; vocab_size={vocab_size}.")
    wild = [
        name
        for name, weight in asked.model.copy(as_is=True).weights()
        if not np.isfinite(weight).all()
    ]
    if wild:
        raise Failed(f"NaN or infinity stands in {listed(wild)}.")
    bad = np.isnan(found) | np.isposinf(found)
    bad = bad.reshape(*rows.shape, -1).any(axis=-1) & asked.real
    if bad.any():
        row, position = np.argwhere(bad)[0]
        raise Failed(
            f"{bad.sum()} positions have outputs that are not finite, the "
            f"first is position {position} of sequence {row}: look for a "
            "query that may attend to no key."
        )
    said = f"Outputs are {sizes}, and finite at every token."
    tokens = found.reshape(*rows.shape, -1)[asked.real]
    if asked.model.redrawn and (tokens == tokens[0]).all():
        raise Warned(
            f"{said} They are the same at every token, whatever it is, as in "
            "a new model whose last layer or branches begin at zero; a model "
            "that was trained has lost weights."
        )
    return said


def why_shape(sizes: tuple[int, ...], rows: np.ndarray) -> str:
    """Return what outputs of this shape usually are, and what to do."""
    size, length = rows.shape
    if sizes[:2] == (length, size) and length != size:
        return "is the batch not the first axis? Look at batch_first."
    if sizes[0] == size and sizes[-1] == length and len(sizes) > 2:
        return "the last two axes are exchanged, as for a convolution."
    if sizes[:2] == (size, 1):
        return (
            "the logits of the last position alone, as when a model is made "
            "to write. Give call=, which returns those of all positions."
        )
    if len(sizes) == 2 and sizes[0] == size:
        return (
            "one output for a whole sequence, as of a classifier. Give the "
            "model without its head, or call=, which returns one for each "
            "token."
        )
    return "the outputs should be (B, T, ...), one for each token."


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

    found = states(asked, asked.ids, pull)
    frozen = frozen_of(asked, [*found])
    asked_for = {n: g for n, g in found.items() if n not in frozen}
    unused = [n for n, g in asked_for.items() if g == "none"]
    if unused:  # an expert is asked by other tokens
        rng = np.random.default_rng(0)
        rows = [
            asked.exchange(x, rng.random(x.shape) < 0.7) for x in asked.ids
        ]
        more = states(asked, tuple(rows), pull)
        unused = [n for n in unused if more[n] == "none"]
    wild = [n for n, g in asked_for.items() if g == "wild"]
    if wild:
        raise Failed(
            f"The gradient of {listed(wild)} is not finite: look for a "
            "query that may attend to no key, also at pads."
        )
    if unused and acts(asked, unused):
        detached = [n for n in unused if acts(asked, [n])] or unused
        raise Failed(
            f"No gradient reaches {listed(detached)}, although the outputs "
            "depend on it: what uses it is detached."
        )
    zero = [n for n, g in asked_for.items() if g == "zero"]
    for name in zero:
        # The bias of keys has no effect, for the softmax ignores it; the
        # choice of an expert does not move with small changes.
        if acts(asked, [name]):
            raise Failed(
                f"The gradient of {name} is zero, although the outputs "
                "depend on it: look for numbers that lose their gradient."
            )
    idle = [n for n in unused if "expert" in n.lower()]
    note = f" Frozen, not asked: {listed(frozen)}." if frozen else ""
    note += f" Without effect here: {listed(zero)}." if zero else ""
    note += f" Experts without a token here: {listed(idle)}." if idle else ""
    said = f"A gradient reaches {len(asked_for) - len(unused)} parameters."
    unused = [n for n in unused if n not in idle]
    if unused:
        raise Warned(
            f"{said} Nothing depends on {listed(unused)}: parts for another "
            f"task or for longer rows, or a layer that was forgotten.{note}"
        )
    return said + note


def frozen_of(asked: Asked, names: list[str]) -> list[str]:
    """Return which weights are frozen; if all are, all are asked: none."""
    frozen = asked.model.frozen()
    return frozen if len(frozen) < len(names) else []


def acts(asked: Asked, names: list[str]) -> bool:
    """Return whether a small step of these weights moves the outputs."""
    copy = asked.copy()
    weights = dict(copy.weights())
    for name in names:
        weight = weights[name]
        step = np.random.default_rng(0).normal(size=weight.shape)
        copy.assign(name, weight + 1e-3 * (weight.std() + 1e-2) * step)
    after = copy.outputs(asked.ids).reshape(asked.base.shape)
    return bool(asked.say_change(asked.base, after, asked.real))


def states(asked: Asked, ids: tuple[np.ndarray, ...], pull) -> dict[str, str]:
    """Return what `AskedModel.gradients` says; NotAsked if it is an error."""
    try:
        return asked.copy().gradients(ids, pull)
    except Exception as error:
        raise NotAsked(
            "the outputs can be computed here, their gradient cannot: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error


def listed(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def future_grad(asked: Asked) -> str:
    """Do early outputs give no gradient to tokens that come later?"""
    asked.refuse_two_way()
    found = asked.copy().read_table(asked.ids)
    if found is None:
        raise NotAsked("no table of tokens was found.")
    name, table = found
    length = asked.rows.shape[1]
    taken = [asked.pad_id or 0, *(asked.ids[0].flat if asked.ids[1:] else ())]
    tokens = np.setdiff1d(np.arange(len(table)), taken)[:length]
    if len(tokens) < 2:
        raise NotAsked("the table has too few rows for different tokens.")
    ids = (*(x[:1] for x in asked.ids[:-1]), tokens[None])
    cuts = np.unique(np.linspace(1, len(tokens) - 1, 4).astype(int))
    for cut in cuts[cuts > 0]:

        def pull(shape, cut=cut):
            where = np.arange(len(tokens))[None] < cut  # (1, T)
            numbers = draw_pull(shape, where)
            if shape[-1] == len(table):
                # A table that is also the last layer learns from there.
                numbers[..., tokens[cut:]] = 0
            return numbers

        try:
            grad = asked.copy().gradient(name, ids, pull)
        except Exception as error:
            raise NotAsked(
                f"no gradient of {name} can be computed here: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error
        if grad is None:
            raise NotAsked(f"no gradient reaches {name}: see gradients.")
        size = np.abs(grad[tokens]).max(axis=1)
        late = size[cut:].max() / max(size.max(), np.finfo(np.float32).tiny)
        if late > max(1e3 * asked.model.eps, asked.tolerance):
            position = cut + int(size[cut:].argmax())
            raise Failed(
                f"Outputs before position {cut} give the token at position "
                f"{position} a gradient, {late:.1e} of the largest: the "
                "model sees the future. Look at the causal mask."
            )
        asked.refuse_coarse(late)
    return "Early outputs give later tokens no gradient."


def layers(asked: Asked) -> str:
    """Are no two weight matrices equal, number for number?"""
    seen: dict[tuple, list[tuple[str, np.ndarray]]] = {}
    copy = asked.model.copy(as_is=True)
    weights = [*copy.weights()]
    frozen = frozen_of(asked, [name for name, _ in weights])
    number = 0
    for name, weight in weights:
        if weight.ndim < 2 or name in frozen:
            continue
        if len(np.unique(weight[0])) < 3 or (weight[0] == weight[-1]).all():
            continue  # constant or fixed, not initialised at random
        key = (weight.shape, weight[0].tobytes())
        for other, same in seen.setdefault(key, []):
            if np.array_equal(weight, same):
                say_equal(asked, other, name)
        seen[key].append((name, weight))
        number += 1
    said = f"{number} weight matrices, no two of them equal."
    calls = Counter(name for name, *_ in copy.trace(asked.ids))
    own = {name.replace("/", ".").rpartition(".")[0] for name, _ in weights}
    shared = [
        name
        for name, times in calls.items()
        if times > 1 and name.replace("/", ".") in own
    ]
    if shared:
        # Right in a model such as ALBERT, so no verdict.
        said += f" Called more than once in a pass: {listed(shared)}."
    return said


def say_equal(asked: Asked, one: str, two: str) -> None:
    """Raise Failed for two equal matrices; Warned in a model that is new."""
    said = f"{one} and {two} are equal, number for number"
    if asked.model.copy().table(asked.ids) in (one, two):
        raise Failed(
            f"{said}, and not one: a table that was copied to the last "
            "layer, not tied to it, so that training moves them apart."
        )
    if asked.facts.get("untrained"):
        raise Warned(
            f"{said}: training will move them apart. A seed in a loop does "
            "this, or a layer that was copied, as in nn.TransformerEncoder."
        )
    raise Failed(
        f"{said}. Unless they are meant to be, look for a seed in a loop, or "
        "a layer that was copied, as nn.TransformerEncoder does; initialise "
        "them again. Of a model that is new, say untrained=True."
    )


def count(asked: Asked) -> str:
    """Are there as many parameters as there should be?"""
    copy = asked.model.copy(as_is=True)
    found = sum(weight.size for _, weight in copy.weights())
    wanted = asked.facts.get("count")
    if wanted is None:
        raise Lacks(f"there are {found:,} parameters: give count=.")
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
        raise Lacks("give reference=, a model with the same weights.")
    theirs = other.copy(as_is=True).outputs(asked.ids)
    ours = asked.first
    if theirs.shape != ours.shape:
        raise Failed(
            f"Outputs are {ours.shape}, the reference's {theirs.shape}."
        )
    theirs, ours = (x.reshape(*asked.rows.shape, -1) for x in (theirs, ours))
    moved = asked.say_change(theirs, ours, asked.real)
    if not moved:
        return "The outputs are those of the reference."
    rows = differences(asked.model, other, asked.ids)
    where = first_difference(rows, asked.tolerance)
    said = f"The reference differs in {moved}."
    if where is None:
        raise Failed(f"{said} All modules that can be compared agree.")
    named = where.module == where.reference
    hint = "" if named else " A hint only: modules are matched by outputs."
    raise Failed(
        f"{said} The first module to differ is {where.module} "
        f"({where.reference} there), by {where.change:.1e}.{hint}"
    )
