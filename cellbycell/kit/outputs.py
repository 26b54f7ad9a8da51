"""What goes into a model and what comes out: ids, masks and logits."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

# The names under which models return what the kit compares, best first.
NAMES = ("logits", "lm_logits", "prediction_logits", "last_hidden_state")

# Arguments that say which tokens are real, and in which ids: the first (a
# decoder-only model, an encoder) or the last (a decoder).
REAL_MASKS = {
    "attention_mask": 0,
    "padding_mask": 0,
    "encoder_padding_mask": 0,
    "decoder_attention_mask": -1,
    "decoder_padding_mask": -1,
}
# Arguments that are True at pads, as in PyTorch's own layers.
PAD_MASKS = {
    "src_key_padding_mask": 0,
    "key_padding_mask": 0,
    "memory_key_padding_mask": 0,
    "tgt_key_padding_mask": -1,
}


def as_rows(token_ids: Any) -> np.ndarray:
    """Return ids as an array of int64, (B, T); one sequence is a batch.

    token_ids: lists, NumPy, tensors of either framework, on any device.
    Raises ValueError for anything else.
    """
    if hasattr(token_ids, "detach"):
        token_ids = token_ids.detach().cpu()
    ids = np.asarray(token_ids)
    if not np.issubdtype(ids.dtype, np.integer) or ids.ndim not in (1, 2):
        raise ValueError(
            "token_ids should be whole numbers, (B, T): a list for each "
            f"sequence; here they are {ids.dtype}, {ids.shape}."
        )
    return np.atleast_2d(ids).astype(np.int64)


def named_parts(output: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (how to get it, its name, part) for the parts of an output."""
    if isinstance(output, Mapping):
        for key in output:
            yield f"output[{key!r}]", str(key), output[key]
    elif isinstance(output, (list, tuple)) and not hasattr(output, "_fields"):
        for i, part in enumerate(output):
            yield f"output[{i}]", "", part
    elif hasattr(output, "shape"):
        yield "output", "", output
    else:  # a dataclass, a named tuple, or an object of another kind
        names = getattr(output, "_fields", NAMES)
        if dataclasses.is_dataclass(output):
            names = [field.name for field in dataclasses.fields(output)]
        for name in names:
            if hasattr(output, name):
                yield f"output.{name}", name, getattr(output, name)


def rank(name: str, part: Any, rows: tuple[int, int]) -> int:
    """Return how likely a part is what the kit compares; 0 is best."""
    best = NAMES.index(name) if name in NAMES else len(NAMES)
    if "logits" in name:
        best = min(best, len(NAMES) - 1)
    fits = tuple(part.shape[:2]) == rows
    return best if fits else best + len(NAMES) + 1


def find_logits(output: Any, rows: tuple[int, int]) -> tuple[Any, str]:
    """Return the logits or the last hidden state, and where they stand.

    output: what the model returned; rows: (B, T). Among several tensors,
    one whose name says logits is taken, then the last hidden state, then the
    first with the axes (B, T). Raises TypeError if there is no tensor.
    """
    parts = [
        part
        for part in named_parts(output)
        if len(getattr(part[2], "shape", ())) >= 2
    ]
    if not parts:
        raise TypeError(
            f"the model returned {type(output).__name__}, in which the kit "
            "finds no logits; give call=, a function of the model and the "
            "ids that returns them"
        )
    label, _, part = min(parts, key=lambda p: rank(p[1], p[2], rows))
    return part, label


def required(names: Mapping[str, inspect.Parameter]) -> set[str]:
    """Return the arguments of a signature that have no default."""
    empty = inspect.Parameter.empty
    return {name for name, p in names.items() if p.default is empty}


def masks_for(
    names: Any, ids: tuple[np.ndarray, ...], pad_id: int | None
) -> dict[str, np.ndarray]:
    """Return {argument: mask (B, T)} for the arguments that a model has."""
    if pad_id is None:
        return {}
    real = {n: ids[i] != pad_id for n, i in REAL_MASKS.items() if n in names}
    pads = {n: ids[i] == pad_id for n, i in PAD_MASKS.items() if n in names}
    return real | pads
