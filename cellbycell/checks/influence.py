"""Which outputs move when one token changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .context import CheckContext

# At most so many changes of a token, in rows of so many tokens together.
MAX_CHANGES, MAX_CHANGED = 512, 2**15


@dataclass
class Influence:
    """How much a change of each token moves the outputs of ids.

    ids: (token_ids,) or (source_ids, decoder_ids); changes (M, 2): the row and
    the position of the token that changes; moves (M, T): the outputs' change;
    options: of the calls.
    """

    ids: tuple[np.ndarray, ...]
    changes: np.ndarray
    moves: np.ndarray
    options: dict[str, bool]


def measure_influence(
    context: CheckContext,
    ids: tuple[np.ndarray, ...],
    where: np.ndarray,
    **options: bool,
) -> Influence:
    """Change each token where (B, T) is True, alone, and compare the outputs.

    The unchanged rows are computed in the same call as the changed ones, so
    that equal numbers are equal bit by bit; in training mode, and if the model
    draws random numbers, in a call of the same shape.
    """
    by_call = context.is_random or options.get("training", False)
    rows = ids[-1]
    changes = choose(
        np.argwhere(where), rows.shape[1], options.get("training", False)
    )
    moves = []
    for chunk in context.in_chunks(len(changes)):
        row, position = changes[chunk].T
        here = np.arange(rows.shape[1]) == position[:, None]  # (M, T)
        other = context.exchange(rows[row], here)
        given = [x[row] for x in ids[:-1]]
        if by_call:
            before = context.outputs(*given, rows[row], **options)
            after = context.outputs(*given, other, **options)
        else:
            own, back = np.unique(row, return_inverse=True)
            given = [np.concatenate([x[own], x[row]]) for x in ids[:-1]]
            other = np.concatenate([rows[own], other])
            both = context.outputs(*given, other, **options)
            before, after = both[: len(own)][back], both[len(own) :]
        moves.append(context.change(before, after))
    return Influence(ids, changes, np.concatenate(moves), options)


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
