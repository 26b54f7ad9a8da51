"""The inputs and outputs of a model: ids, masks, caches and logits."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

# Names of the output that the kit compares, best first.
NAMES = ("logits", "lm_logits", "prediction_logits", "last_hidden_state")

# Masks that are True at tokens, and of which ids: the first (a decoder-only
# model, an encoder) or the last (a decoder).
REAL_MASKS = {
    "attention_mask": 0,
    "key_mask": 0,
    "decoder_attention_mask": -1,
}
# Masks that are True at pads, as in PyTorch's own layers.
PAD_MASKS = {
    "src_key_padding_mask": 0,
    "key_padding_mask": 0,
    "memory_key_padding_mask": 0,
    "tgt_key_padding_mask": -1,
}
# Masks that are True at tokens in some projects and at pads in others; in
# Keras' own models, at tokens.
AMBIGUOUS_MASKS = {
    "padding_mask": 0,
    "encoder_padding_mask": 0,
    "decoder_padding_mask": -1,
    "mask": 0,
    "src_mask": 0,
    "pad_mask": 0,
    "input_mask": 0,
}
# Arguments that take a cache.
CACHES = (
    "past_key_values",
    "past_buckets_states",
    "cache_params",
    "layer_past",
    "kv_cache",
    "cache",
    "past",
    "state",
)
# Caches that hold a state and no keys: later calls need no mask.
STATES = ("cache_params", "state")
# Arguments that take the number of tokens that a cache has read.
STARTS = ("start", "start_pos", "start_position", "offset", "past_length")
# The target of a position that the loss leaves out, apart from pads.
IGNORED = -100


def as_rows(token_ids: Any, name: str = "token_ids") -> np.ndarray:
    """Return ids as an array of int64, (B, T); one sequence is a batch.

    token_ids: lists, arrays, tensors of either framework on any device, or
    the result of a tokenizer. Raises ValueError for anything else; name is
    the argument's.
    """
    if isinstance(token_ids, Mapping):
        if "input_ids" not in token_ids:
            raise ValueError(
                f"{name} is a {type(token_ids).__name__} without input_ids"
            )
        token_ids = token_ids["input_ids"]
    if isinstance(token_ids, (list, tuple)):
        token_ids = [plain(row) for row in token_ids]
        lengths = [len(x) for x in token_ids if hasattr(x, "__len__")]
        words = any(isinstance(x, str) for x in token_ids)
        if len({*lengths}) > 1 and not words:
            said = ", ".join(map(str, lengths[:8]))
            raise ValueError(
                f"{name} has rows of {said} ids: fill the shorter ones with "
                "pads on the right, and pass the id of pads as pad_id="
            )
    try:
        ids = np.asarray(plain(token_ids))
    except ValueError:  # lists within lists, of different lengths
        ids = np.empty(0, dtype=object)
    if not np.issubdtype(ids.dtype, np.integer) or ids.ndim not in (1, 2):
        raise ValueError(
            f"{name} should be whole numbers, (B, T), a list for each "
            f"sequence; here they are {ids.dtype}, {ids.shape}."
        )
    if not ids.size:
        raise ValueError(f"{name} is empty: {ids.shape}")
    return np.atleast_2d(ids).astype(np.int64)


def plain(x: Any) -> Any:
    """Return a PyTorch tensor as an array, and other values unchanged."""
    return x.detach().cpu().numpy() if hasattr(x, "detach") else x


def tokens_in(
    ids: np.ndarray, pad_id: int | None, decoder: bool = False
) -> np.ndarray:
    """Return which ids (B, T) are tokens and not pads, (B, T).

    decoder: whether a decoder reads them, with a source. Its first id is a
    token even if it has the id of pads, as in T5.
    """
    if pad_id is None:
        return np.ones_like(ids, dtype=bool)
    real = ids != pad_id
    if decoder and ids.shape[1] > 1:
        real[:, 0] |= real[:, 1]
    return real


def begins_with_pads(real: np.ndarray) -> bool:
    """Return whether pads stand before the tokens of a row, real (B, T)."""
    return bool((real.any(axis=1) & ~real[:, 0]).any())


def named_parts(output: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (expression, name, part) for the parts of an output."""
    if isinstance(output, Mapping):
        for key in output:
            yield f"output[{key!r}]", str(key), output[key]
    elif isinstance(output, (list, tuple)) and not hasattr(output, "_fields"):
        for i, part in enumerate(output):
            yield f"output[{i}]", "", part
    elif hasattr(output, "shape"):
        yield "output", "", output
    else:  # a dataclass, a named tuple, or an object of another kind
        names = getattr(output, "_fields", (*NAMES, *CACHES, "loss"))
        if dataclasses.is_dataclass(output):
            names = [field.name for field in dataclasses.fields(output)]
        for name in names:
            if hasattr(output, name):
                yield f"output.{name}", name, getattr(output, name)


def rank(name: str, part: Any, rows: tuple[int, int]) -> int:
    """Return a part's rank as the output to compare; 0 is best."""
    best = NAMES.index(name) if name in NAMES else len(NAMES)
    if "logits" in name:
        best = min(best, len(NAMES) - 1)
    fits = tuple(part.shape[:2]) == rows
    return best if fits else best + len(NAMES) + 1


def find_logits(output: Any, rows: tuple[int, int]) -> tuple[Any, str]:
    """Return the logits or the last hidden state, and where they are.

    output: of the model; rows: (B, T). Of several tensors, one with logits in
    its name comes first, then the last hidden state, then the first with the
    axes (B, T). Raises TypeError if there is no tensor.
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
            "ids that returns them as a tensor"
        )
    label, _, part = min(parts, key=lambda p: rank(p[1], p[2], rows))
    return part, label


def find_cache(output: Any, cache_name: str) -> Any:
    """Return the cache in an output; None if there is none."""
    parts = {name: part for _, name, part in named_parts(output)}
    for name in (cache_name, *CACHES):
        if parts.get(name) is not None:
            return parts[name]
    is_pair = isinstance(output, tuple) and len(output) > 1
    return output[1] if is_pair and not parts.keys() - {""} else None


def find_loss(output: Any) -> Any:
    """Return the loss in an output; None if there is none."""
    if isinstance(output, tuple) and not hasattr(output, "_fields"):
        single = [x for x in output if not len(getattr(x, "shape", [0]))]
        return (single or output)[0]  # nanoGPT's stands behind the logits
    if not len(getattr(output, "shape", [0])):
        return output  # the loss alone
    parts = {name: part for _, name, part in named_parts(output)}
    return parts.get("loss")


def required(names: Mapping[str, inspect.Parameter]) -> set[str]:
    """Return the arguments of a signature that have no default."""
    empty = inspect.Parameter.empty
    return {name for name, p in names.items() if p.default is empty}


def masks_for(
    names: Iterable[str],
    real: tuple[np.ndarray, ...],
    polarity: str | None = "tokens",
) -> dict[str, np.ndarray]:
    """Return {argument: mask (B, T)} for the arguments that a model has.

    real: which ids are tokens, for each array of ids. polarity: where masks
    are True if their name does not tell, "tokens" or "pads"; None to leave
    these masks out.
    """
    found = {n: real[i] for n, i in REAL_MASKS.items() if n in names}
    found |= {n: ~real[i] for n, i in PAD_MASKS.items() if n in names}
    if polarity is not None:
        for name, i in AMBIGUOUS_MASKS.items():
            if name in names:
                found[name] = real[i] if polarity == "tokens" else ~real[i]
    return found
