"""What `check_model` is given: errors that help, and notes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .context import Check, CheckContext
from .model_io import IGNORED, as_rows
from .registry import CHECKS
from .verdicts import listed

# What a model may say of itself, and what a call means by default.
TAGS = {
    "pad_id": None,
    "causal": True,
    "call": None,
    "step": None,
    "expected_failures": None,
}


def tagged(model: Any, **given: Any) -> list[Any]:
    """Return arguments, those at their default as the model's tags have them.

    Raises ValueError if check_tags is no mapping, or has another argument.
    """
    tags = getattr(model, "check_tags", {})
    if not isinstance(tags, Mapping) or not tags.keys() <= TAGS.keys():
        raise ValueError(
            f"check_tags of the model should be a dict with {listed([*TAGS])}"
            f" at most, not {tags!r:.80}"
        )
    return [
        tags.get(name, value) if value is TAGS[name] else value
        for name, value in given.items()
    ]


def known_checks(also: Iterable[Check]) -> dict[str, tuple[Check, str]]:
    """Return all checks by name, with their sections of *Symptoms*.

    also: the caller's own, of which none has a section. Raises TypeError for
    what is no function, and ValueError for a name that is taken.
    """
    checks = dict(CHECKS)
    for check in also:
        name = getattr(check, "__name__", "")
        if not callable(check) or not name.isidentifier():
            raise TypeError(f"also= should have functions, not {check!r}")
        if name in checks:
            raise ValueError(f"there is a check {name!r} already")
        checks[name] = check, ""
    return checks


def choose_checks(
    checks: Iterable[str], only: Iterable[str] | None, skip: Iterable[str]
) -> list[str]:
    """Return the names of the checks to run; raise ValueError if unknown."""
    only = checks if only is None else only
    only, skip = ([x] if isinstance(x, str) else [*x] for x in (only, skip))
    refuse_unknown(checks, [*only, *skip])
    chosen = [name for name in checks if name in only and name not in skip]
    if not chosen:
        raise ValueError("only= and skip= leave no check")
    return chosen


def expected_of(checks: Iterable[str], given: Any) -> dict[str, str]:
    """Return {check: why it may fail}, given as a mapping or a function."""
    if given is None:
        return {}
    if callable(given):
        said = {name: given(name) for name in checks}
        return {name: str(why) for name, why in said.items() if why}
    if not isinstance(given, Mapping):
        raise TypeError(
            "expected_failures should be {name of a check: reason}, or a "
            "function of a name that returns the reason or None"
        )
    refuse_unknown(checks, given)
    return dict(given)


def refuse_unknown(checks: Iterable[str], names: Iterable[str]) -> None:
    """Raise ValueError for a name that no check has."""
    for name in names:
        if name not in checks:
            raise ValueError(
                f"there is no check {name!r}; the checks are "
                f"{', '.join(checks)}"
            )


def rows_of(
    token_ids: Any, decoder_ids: Any, targets: Any, pad_id: int | None
) -> tuple[tuple[np.ndarray, ...], np.ndarray | None]:
    """Return the ids and targets as arrays; raise an error if they misfit."""
    whole = isinstance(pad_id, (int, np.integer)) and not isinstance(
        pad_id, bool
    )
    if pad_id is not None and not whole:
        raise TypeError(f"pad_id should be a whole number, not {pad_id!r}")
    given = {"token_ids": token_ids, "decoder_ids": decoder_ids}
    ids = tuple(as_rows(x, n) for n, x in given.items() if x is not None)
    if len({len(x) for x in ids}) > 1:
        raise ValueError(
            f"token_ids has {len(ids[0])} rows and decoder_ids "
            f"{len(ids[1])}: give a row of each for every sequence"
        )
    if min(x.min() for x in ids) < 0:
        raise ValueError("there are negative ids: -100 is only for targets")
    wanted = None if targets is None else as_rows(targets, "targets")
    if wanted is not None:
        wanted[wanted == -1] = IGNORED  # as nanoGPT has it
    if wanted is not None and wanted.shape != ids[-1].shape:
        raise ValueError(
            f"targets are {wanted.shape}, but the ids are {ids[-1].shape}: "
            "give a target for each id, -100 where there is none"
        )
    return ids, wanted


def refuse_words(given: Mapping[str, Any]) -> None:
    """Raise ValueError if a model of pictures got arguments of words."""
    if wrong := [name for name, value in given.items() if value is not None]:
        raise ValueError(
            f"patch= is for models of pictures, which have no {listed(wrong)}"
        )


def note_assumed(context: CheckContext) -> None:
    """Note what is assumed about pads, and which weights are replaced."""
    if context.model.reinitialised:
        names = listed([*context.model.reinitialised])
        context.model.note(
            f"Initialised in the copy: {names}, which would hide the layers "
            "before."
        )
    if context.pixels is not None:
        rows, columns = context.pixels.grid
        context.model.note(
            f"Patches stand for tokens, {rows} by {columns} in a picture; of "
            "more outputs, the last ones are theirs."
        )
        return
    if context.pad_id is not None:
        return
    said = "pad_id=None: every id counts as a token."
    tails = [row[-1] for row in context.ids[0] if row[-1] == row[-2]]
    if tails and len(tails) < len(context.ids[0]):
        said += f" If {tails[0]} at the end of a row is a pad, pass pad_id="
        said += f"{tails[0]}."
    context.model.note(said)


def progress(names: list[str]) -> Iterable[str]:
    """Return the names; a terminal shows a progress bar after two seconds."""
    try:
        from tqdm import tqdm
    except ImportError:
        return names
    if "PYTEST_CURRENT_TEST" in os.environ:
        return names
    return tqdm(names, "checks", leave=False, disable=None, delay=2)
