"""Checks of the outputs' shape, weights, gradients, and a reference."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .case import Case, Failed, Lacks, NotRun, Warned, first_line
from .differ import differences, first_difference


def shape(case: Case) -> str:
    """Are the outputs finite numbers, (B, T, ...), that differ?"""
    found, rows = case.first, case.rows
    sizes = found.shape
    if sizes[:2] != rows.shape:
        raise Failed(
            f"Ids {rows.shape} give outputs {sizes}: {why_shape(sizes, rows)}"
        )
    vocab_size = case.facts.get("vocab_size")
    if vocab_size and sizes[2:] != (vocab_size,):
        raise Failed(f"Outputs are {sizes}, but vocab_size={vocab_size}.")
    wild = [
        name
        for name, weight in case.model.copy(as_is=True).weights()
        if not np.isfinite(weight).all()
    ]
    if wild:
        raise Failed(f"There is NaN or infinity in {listed(wild)}.")
    bad = np.isnan(found) | np.isposinf(found)
    bad = bad.reshape(*rows.shape, -1).any(axis=-1) & case.real
    if bad.any():
        row, position = np.argwhere(bad)[0]
        raise Failed(
            f"{bad.sum()} positions have outputs that are not finite, the "
            f"first is position {position} of sequence {row}: look for a "
            "query that may attend to no key."
        )
    said = f"Outputs are {sizes} and finite at every token."
    tokens = found.reshape(*rows.shape, -1)[case.real]
    if case.model.redrawn and (tokens == tokens[0]).all():
        raise Warned(
            f"{said} They are equal for all tokens, as in a new model whose "
            "last layer or branches begin at zero. If the model was trained, "
            "it has lost weights."
        )
    return said


def why_shape(sizes: tuple[int, ...], rows: np.ndarray) -> str:
    """Return the usual cause of such a shape, and what to do."""
    size, length = rows.shape
    if sizes[:2] == (length, size) and length != size:
        return "the first two axes are exchanged: check batch_first."
    if sizes[0] == size and sizes[-1] == length and len(sizes) > 2:
        return "the last two axes are exchanged, as for a convolution."
    if sizes[:2] == (size, 1):
        return (
            "the model returns the logits of the last position only, as for "
            "generation. Give call=, which returns those of all positions."
        )
    if len(sizes) == 2 and sizes[0] == size:
        return (
            "the model returns one output for a sequence, as a classifier "
            "does. Give the model without its head, or call=, which returns "
            "one output for each token."
        )
    return "the outputs should be (B, T, ...), one for each token."


def draw_pull(shape: tuple[int, ...], where: np.ndarray) -> np.ndarray:
    """Return random factors (B, T, ...), zero where (B, T) is False.

    Equal factors would not do: after a norm, the sum is constant.
    """
    numbers = np.random.default_rng(0).normal(size=shape)
    return numbers * where.reshape(where.shape + (1,) * (len(shape) - 2))


def gradients(case: Case) -> str:
    """Does a gradient, finite and not zero, reach each parameter?"""
    base = case.base
    kept = np.isfinite(base).all(axis=(0, 1)) & case.columns

    def pull(shape):
        return draw_pull(shape, case.real) * kept.reshape(shape[2:])

    found = states(case, case.ids, pull)
    frozen = frozen_of(case, [*found])
    trained = {n: g for n, g in found.items() if n not in frozen}
    unused = [n for n, g in trained.items() if g == "none"]
    if unused:  # other tokens may reach another expert
        rng = np.random.default_rng(0)
        rows = [case.exchange(x, rng.random(x.shape) < 0.7) for x in case.ids]
        more = states(case, tuple(rows), pull)
        unused = [n for n in unused if more[n] == "none"]
    wild = [n for n, g in trained.items() if g == "wild"]
    if wild:
        raise Failed(
            f"The gradient of {listed(wild)} is not finite: look for a "
            "query that may attend to no key, also at pads."
        )
    if unused and acts(case, unused):
        detached = [n for n in unused if acts(case, [n])] or unused
        raise Failed(
            f"No gradient reaches {listed(detached)}, although the outputs "
            "depend on it: look for a detached tensor."
        )
    zero = [n for n, g in trained.items() if g == "zero"]
    for name in zero:
        # The bias of keys has no effect, because the softmax ignores it; small
        # steps do not change the choice of an expert.
        if acts(case, [name]):
            raise Failed(
                f"The gradient of {name} is zero, although the outputs "
                "depend on it: look for an operation that loses the gradient."
            )
    idle = [n for n in unused if "expert" in n.lower()]
    note = f" Frozen, not tested: {listed(frozen)}." if frozen else ""
    note += f" No effect here: {listed(zero)}." if zero else ""
    note += f" Experts without a token here: {listed(idle)}." if idle else ""
    said = f"A gradient reaches {len(trained) - len(unused)} parameters."
    unused = [n for n in unused if n not in idle]
    if unused:
        raise Warned(
            f"{said} No output depends on {listed(unused)}: parts for another "
            f"task or for longer rows, or a forgotten layer.{note}"
        )
    return said + note


def frozen_of(case: Case, names: list[str]) -> list[str]:
    """Return which weights are frozen; none if all are, to test them all."""
    frozen = case.model.frozen()
    return frozen if len(frozen) < len(names) else []


def acts(case: Case, names: list[str]) -> bool:
    """Return whether a small step of these weights changes the outputs."""
    copy = case.copy()
    weights = dict(copy.weights())
    for name in names:
        weight = weights[name]
        step = np.random.default_rng(0).normal(size=weight.shape)
        copy.assign(name, weight + 1e-3 * (weight.std() + 1e-2) * step)
    after = copy.outputs(case.ids).reshape(case.base.shape)
    return bool(case.say_change(case.base, after, case.real))


def states(case: Case, ids: tuple[np.ndarray, ...], pull) -> dict[str, str]:
    """Return the gradients' states; raise NotRun if there is an error."""
    try:
        return case.copy().gradients(ids, pull)
    except Exception as error:
        raise NotRun(
            "the outputs can be computed here, but not their gradient: "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error


def listed(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def future_grad(case: Case) -> str:
    """Do early outputs give later tokens no gradient?"""
    case.refuse_two_way()
    found = case.copy().read_table(case.ids)
    if found is None:
        raise NotRun("the kit finds no table of tokens.")
    name, table = found
    length = case.rows.shape[1]
    taken = [case.pad_id or 0, *(case.ids[0].flat if case.ids[1:] else ())]
    tokens = np.setdiff1d(np.arange(len(table)), taken)[:length]
    if len(tokens) < 2:
        raise NotRun("the table has too few rows for different tokens.")
    ids = (*(x[:1] for x in case.ids[:-1]), tokens[None])
    cuts = np.unique(np.linspace(1, len(tokens) - 1, 4).astype(int))
    for cut in cuts[cuts > 0]:

        def pull(shape, cut=cut):
            where = np.arange(len(tokens))[None] < cut  # (1, T)
            numbers = draw_pull(shape, where)
            if shape[-1] == len(table):
                # A tied table also gets a gradient as the last layer.
                numbers[..., tokens[cut:]] = 0
            return numbers

        try:
            grad = case.copy().gradient(name, ids, pull)
        except Exception as error:
            raise NotRun(
                f"no gradient of {name} can be computed here: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error
        if grad is None:
            raise NotRun(f"no gradient reaches {name}; see gradients.")
        size = np.abs(grad[tokens]).max(axis=1)
        late = size[cut:].max() / max(size.max(), np.finfo(np.float32).tiny)
        if late > max(1e3 * case.model.eps, case.tolerance):
            position = cut + int(size[cut:].argmax())
            raise Failed(
                f"Outputs before position {cut} give the token at position "
                f"{position} a gradient, {late:.1e} of the largest: the "
                "model sees the future. Check the causal mask."
            )
        case.refuse_coarse(late)
    return "Early outputs give later tokens no gradient."


def layers(case: Case) -> str:
    """Are no two weight matrices equal?"""
    seen: dict[tuple, list[tuple[str, np.ndarray]]] = {}
    copy = case.model.copy(as_is=True)
    weights = [*copy.weights()]
    frozen = frozen_of(case, [name for name, _ in weights])
    number = 0
    for name, weight in weights:
        if weight.ndim < 2 or name in frozen:
            continue
        if len(np.unique(weight[0])) < 3 or (weight[0] == weight[-1]).all():
            continue  # constant or fixed, not initialised at random
        key = (weight.shape, weight[0].tobytes())
        for other, same in seen.setdefault(key, []):
            if np.array_equal(weight, same):
                say_equal(case, other, name)
        seen[key].append((name, weight))
        number += 1
    said = f"No two of {number} weight matrices are equal."
    calls = Counter(name for name, *_ in copy.trace(case.ids))
    own = {name.replace("/", ".").rpartition(".")[0] for name, _ in weights}
    shared = [
        name
        for name, times in calls.items()
        if times > 1 and name.replace("/", ".") in own
    ]
    if shared:
        # This is correct in a model such as ALBERT, so it is no verdict.
        said += f" Called more than once in a pass: {listed(shared)}."
    return said


def say_equal(case: Case, one: str, two: str) -> None:
    """Raise Failed for two equal matrices, or Warned for a new model."""
    said = f"{one} and {two} have the same values"
    if case.model.copy().table(case.ids) in (one, two):
        raise Failed(
            f"{said}: the table was copied to the last layer, not tied to it, "
            "so training will make them differ."
        )
    if case.facts.get("untrained"):
        raise Warned(
            f"{said} until training makes them differ: look for a seed in a "
            "loop, or for a copied layer, as in nn.TransformerEncoder."
        )
    raise Failed(
        f"{said}. Unless this is intended, look for a seed in a loop, or for "
        "a copied layer, as in nn.TransformerEncoder, and initialise them "
        "again. For a new model, pass untrained=True."
    )


def count(case: Case) -> str:
    """Are there as many parameters as expected?"""
    copy = case.model.copy(as_is=True)
    found = sum(weight.size for _, weight in copy.weights())
    wanted = case.facts.get("count")
    if wanted is None:
        raise Lacks(f"there are {found:,} parameters: give count=.")
    if found != wanted:
        raise Failed(
            f"There are {found:,} parameters, not {wanted:,}: look for "
            "modules that are shared, missing or made twice."
        )
    return f"There are {found:,} parameters."


def reference(case: Case) -> str:
    """Does another model with the same weights give the same outputs?"""
    other = case.facts.get("reference")
    if other is None:
        raise Lacks("give reference=, a model with the same weights.")
    theirs = other.copy(as_is=True).outputs(case.ids)
    ours = case.first
    if theirs.shape != ours.shape:
        raise Failed(
            f"Outputs are {ours.shape}, the reference's {theirs.shape}."
        )
    theirs, ours = (x.reshape(*case.rows.shape, -1) for x in (theirs, ours))
    moved = case.say_change(theirs, ours, case.real)
    if not moved:
        return "The outputs equal those of the reference."
    rows = differences(case.model, other, case.ids)
    where = first_difference(rows, case.tolerance)
    said = f"The reference differs in {moved}."
    if where is None:
        raise Failed(f"{said} All modules that can be compared agree.")
    named = where.module == where.reference
    hint = "" if named else " This is a hint: modules are matched by outputs."
    raise Failed(
        f"{said} The first module to differ is {where.module} "
        f"({where.reference} there), by {where.change:.1e}.{hint}"
    )
