"""What `check_model` is given: errors that help, and notes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from .context import CheckContext
from .model_io import IGNORED, as_rows
from .registry import CHECKS
from .verdicts import listed


def choose_checks(
    only: Iterable[str] | None, skip: Iterable[str], expected: Iterable[str]
) -> list[str]:
    """Return the names of the checks to run; raise ValueError if unknown."""
    only = CHECKS if only is None else only
    only, skip = ([x] if isinstance(x, str) else [*x] for x in (only, skip))
    for name in [*only, *skip, *expected]:
        if name not in CHECKS:
            raise ValueError(
                f"there is no check {name!r}; the checks are "
                f"{', '.join(CHECKS)}"
            )
    chosen = [name for name in CHECKS if name in only and name not in skip]
    if not chosen:
        raise ValueError("only= and skip= leave no check")
    return chosen


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


def note_assumed(context: CheckContext) -> None:
    """Note what is assumed about pads, and which weights are replaced."""
    if context.model.reinitialised:
        names = listed([*context.model.reinitialised])
        context.model.note(
            f"Initialised in the copy: {names}, which would hide the layers "
            "before."
        )
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
