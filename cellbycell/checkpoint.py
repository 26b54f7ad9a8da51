"""Read a checkpoint: a folder in which Transformers stores a model.

    config, weights = read_checkpoint(folder)
    sizes = llama_config(config)
    weights = checked_weights(weights, llama_shapes(sizes))

If a loader ignores an entry, it may make another model, which runs and is
wrong. So tables check each entry of config.json, and refuse unknown entries.
The chapter llama.ipynb loads a Llama with this module.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .common import LlamaConfig, frequencies, stretched

__all__ = [
    "Entry",
    "checked_config",
    "checked_weights",
    "llama_config",
    "llama_shapes",
    "llama_turns",
    "read_checkpoint",
]


def read_checkpoint(
    folder: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the config of a checkpoint, and its weights by name.

    The library safetensors checks each file against its header.

    Parameters
    ----------
    folder
        Has config.json, and model.safetensors, or its shards and
        model.safetensors.index.json.

    Returns
    -------
    config : dict
        The contents of config.json, which `checked_config` checks.
    weights : dict of str to numpy.ndarray
        Each tensor by its name, in float32, whatever its type in the file.

    Raises
    ------
    FileNotFoundError
        A file is missing. The message says which one, and what to do.
    ValueError
        A file is broken, or has tensors that are not floating point of 16
        bits or more. The message says what to do.
    ImportError
        The library safetensors is not installed.
    """
    folder = Path(folder)
    config = _read_json(folder / "config.json")
    index = folder / "model.safetensors.index.json"
    whole = folder / "model.safetensors"
    if whole.is_file() or not index.is_file():
        return config, _read_tensors(_present(whole))
    listed = _read_json(index).get("weight_map")
    named = listed.values() if isinstance(listed, dict) and listed else [None]
    if not all(isinstance(x, str) and Path(x).name == x for x in named):
        raise ValueError(
            f"{index.name} does not say which file of its folder has which "
            "tensor: download it again."
        )
    weights, places = {}, {}
    for shard in sorted({*named}):
        found = _read_tensors(_present(folder / shard))
        places |= dict.fromkeys(found, shard)
        weights |= found
    if places != listed:
        name = min(
            name
            for name in {*places, *listed}
            if places.get(name) != listed.get(name)
        )
        raise ValueError(
            f"{index.name} and the shards differ at {name}: they belong to "
            "different models, so download all of them again."
        )
    return config, weights


def _present(path: Path) -> Path:
    """Return the path of a file, or raise FileNotFoundError."""
    if path.is_file():
        return path
    advice = "download it as well, with all shards"
    if path.name == "config.json":
        advice = "give a folder in the format of Transformers"
    elif [*path.parent.glob("pytorch_model*.bin")]:
        advice = "load it with Transformers, and write it with save_pretrained"
    raise FileNotFoundError(f"{path.parent} has no {path.name}: {advice}.")


def _read_json(path: Path) -> dict[str, Any]:
    """Return the dict in a file, or raise an error that says what to do."""
    try:
        found = json.loads(_present(path).read_text("utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(
            f"{path.name} is incomplete: download it again. If it is a short "
            "text about git-lfs, run `git lfs pull`."
        )
    return found


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a file by name, as arrays of float32."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise ImportError(
            "Reading weights needs the library safetensors: run "
            "`pip install cellbycell[checkpoint]`."
        ) from error
    try:
        with safe_open(path, framework="np"):
            pass  # the library checks types, shapes and offsets
    except SafetensorError as error:
        raise ValueError(
            f"{path.name} is incomplete, or not a file of weights ({error}): "
            "download it again. If it is a short text, run `git lfs pull`."
        ) from error
    # NumPy has no bfloat16, so the library cannot return it.
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = file.read(0)
        if path.stat().st_size > 8 + length:
            data = np.memmap(path, mode="r", offset=8 + length)
    header.pop("__metadata__", None)
    return {
        name: _as_float32(data, entry, name) for name, entry in header.items()
    }


def _as_float32(data: Any, entry: dict[str, Any], name: str) -> np.ndarray:
    """Return a tensor as float32 from the bytes after a header."""
    kinds = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
    if entry["dtype"] not in kinds:
        raise ValueError(
            f"{name} is {entry['dtype']}, not floating point of 16 bits or "
            "more. If it is quantised, use the folder of the original model."
        )
    kind, (start, _) = kinds[entry["dtype"]], entry["data_offsets"]
    numbers = np.ndarray(entry["shape"], kind, data, start)
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (numbers.astype("<u4") << 16).view("<f4")
    return numbers.astype(np.float32)


_REQUIRED = object()  # the default of a required entry
_COMPARE = "compare config.json with that of the original model"


@dataclass(frozen=True)
class Entry:
    """The rule for one entry of a config.

    Parameters
    ----------
    words
        What is allowed, for the message.
    fits
        Takes a value, returns whether it is allowed.
    default
        The value of a missing entry. Without a default, the entry is
        required; null is allowed if the default is None.
    entries
        The rules for the entries of a nested table.
    advice
        What to do about another value.
    """

    words: str
    fits: Callable[[Any], bool]
    default: Any = _REQUIRED
    entries: Mapping[str, Entry] | None = None
    advice: str = _COMPARE

    def allows(self, value: Any) -> bool:
        """Return whether a config may have this value."""
        return value is None and self.default is None or self.fits(value)


def count(default: Any = _REQUIRED, most: int = 2**24) -> Entry:
    """Return a rule for a whole number from 1 on.

    Parameters
    ----------
    default
        The value of a missing entry.
    most
        The largest number that is allowed.

    Returns
    -------
    Entry
    """
    words = f"a whole number from 1 to {most:,}"
    return Entry(words, lambda x: type(x) is int and 1 <= x <= most, default)


def number(default: Any = _REQUIRED, above: float = -1e30) -> Entry:
    """Return a rule for a finite number, whole or not.

    Parameters
    ----------
    default
        The value of a missing entry.
    above
        The number must be larger than this.

    Returns
    -------
    Entry
    """

    def fits(x):
        return type(x) in (int, float) and above < x < 1e30

    return Entry(f"a number above {above:g}, below 1e+30", fits, default)


def flag(default: Any = _REQUIRED) -> Entry:
    """Return a rule for true or false.

    Parameters
    ----------
    default
        The value of a missing entry.

    Returns
    -------
    Entry
    """
    return Entry("true or false", lambda x: type(x) is bool, default)


def text(default: Any = _REQUIRED) -> Entry:
    """Return a rule for a string.

    Parameters
    ----------
    default
        The value of a missing entry.

    Returns
    -------
    Entry
    """
    return Entry("a string", lambda x: type(x) is str, default)


def only(
    *values: Any, default: Any = _REQUIRED, advice: str = _COMPARE
) -> Entry:
    """Return a rule for one of these values.

    Parameters
    ----------
    values
        The allowed values; types count, so false is not 0.
    default
        The value of a missing entry.
    advice
        What to do about another value.

    Returns
    -------
    Entry
    """

    def fits(x):
        return any(type(x) is type(value) and x == value for value in values)

    words = " or ".join(map(repr, values))
    return Entry(words, fits, default, advice=advice)


def several(entry: Entry, default: Any = _REQUIRED) -> Entry:
    """Return a rule for a list.

    Parameters
    ----------
    entry
        The rule for each item.
    default
        The value of a missing entry.

    Returns
    -------
    Entry
    """

    def fits(x):
        return type(x) is list and all(map(entry.allows, x))

    return Entry(f"a list, each item {entry.words}", fits, default)


def table(entries: Mapping[str, Entry], default: Any = _REQUIRED) -> Entry:
    """Return a rule for a table inside the config.

    Parameters
    ----------
    entries
        The rules for its entries.
    default
        The value of a missing table.

    Returns
    -------
    Entry
    """
    return Entry("a table", lambda x: type(x) is dict, default, entries)


def checked_config(
    config: Mapping[str, Any],
    entries: Mapping[str, Entry],
    place: str = "config.json",
) -> dict[str, Any]:
    """Return the entries of a config, checked by a table of rules.

    Parameters
    ----------
    config
        The parsed JSON.
    entries
        The table: a rule for each allowed name, in the order of the checks.
    place
        The name of the config, for the message.

    Returns
    -------
    dict
        A value for each name in the table, or its default. Nested tables
        are checked in the same way.

    Raises
    ------
    ValueError
        An entry is missing, has another type or value, or is not null and
        not in the table. The message names the entry, its value, and what to
        do.
    """
    inside = "" if place == "config.json" else f"{place}."
    found = {}
    for name, entry in entries.items():
        value = config.get(name, entry.default)
        if value is _REQUIRED:
            raise ValueError(
                f"{place} has no {name}: give the folder of a complete model."
            )
        if name in config and not entry.allows(value):
            null = ", or null" if entry.default is None else ""
            raise ValueError(
                f"{inside}{name} is {_short(value)}, and has to be "
                f"{entry.words}{null}: {entry.advice}."
            )
        if entry.entries is not None and value is not None:
            value = checked_config(value, entry.entries, f"{inside}{name}")
        found[name] = value
    for name, value in config.items():
        if name not in entries and value is not None:
            raise ValueError(
                f"{inside}{name} is {_short(value)}, but this loader does "
                "not know the entry: load the folder with Transformers, or "
                "remove the entry if it does not change the logits."
            )
    return found


def _short(value: Any) -> str:
    """Return a value as text, cut to a line."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


_ANYTHING = Entry("anything", lambda x: True, None)
_DTYPE = only("float32", "float16", "bfloat16", "float64", default=None)
_ID = Entry("an id", lambda x: type(x) is int and abs(x) < 2**31, None)
_IDS = Entry(
    "an id, or a list of ids",
    lambda x: _ID.fits(x) or type(x) is list and all(map(_ID.fits, x)),
    None,
)
# Names, training, memory, and ids of tokens do not change the logits.
HARMLESS: dict[str, Entry] = {
    "_name_or_path": text(None),
    "architectures": several(text(), None),
    "auto_map": _ANYTHING,  # code that runs only on request
    "transformers_version": text(None),
    "transformers.js_config": _ANYTHING,
    "unsloth_version": text(None),
    "unsloth_fixed": flag(None),
    "_attn_implementation_autoset": flag(None),
    "is_llama_config": flag(None),
    "is_encoder_decoder": only(False, default=False),
    "use_cache": flag(True),
    "initializer_range": number(0.02, above=-1e-9),
    "attention_dropout": number(0.0, above=-1e-9),
    "pretraining_tp": count(None),
    "dtype": _DTYPE,
    "torch_dtype": _DTYPE,
    "pad_token_id": _ID,
    "bos_token_id": _ID,
    "eos_token_id": _IDS,
}

_LENGTH = "original_max_position_embeddings"
_PLAIN = only(1, 1.0, default=1.0)  # the share of a head that is rotated
_KINDS = only(
    "default",
    "llama3",
    default="default",
    advice="load a model with another rotation with Transformers",
)
_ROPE = {
    "rope_type": _KINDS,
    "type": _KINDS,
    "rope_theta": number(10000.0, above=0),
    "partial_rotary_factor": _PLAIN,
    "factor": number(1.0, above=0),
    "low_freq_factor": number(1.0, above=0),
    "high_freq_factor": number(4.0, above=0),
    _LENGTH: count(2048),
}
# Entries for rotary positions, in versions 5 and 4 of Transformers.
ROTATION: dict[str, Entry] = {
    "rope_parameters": table(_ROPE, None),
    "rope_scaling": table(_ROPE, None),
    "rope_theta": number(10000.0, above=0),
    "partial_rotary_factor": _PLAIN,
    "max_position_embeddings": count(2048),
    _LENGTH: count(2048),
}

_LLAMA = {
    "model_type": only("llama", advice="see *Twenty models, one decoder*"),
    "vocab_size": count(),
    "hidden_size": count(most=2**16),
    "intermediate_size": count(),
    "num_hidden_layers": count(most=1000),
    "num_attention_heads": count(),
    "num_key_value_heads": count(None),
    "head_dim": count(None, most=2**16),
    "rms_norm_eps": number(1e-6, above=0),
    "tie_word_embeddings": flag(False),
    "hidden_act": only("silu", default="silu"),
    "attention_bias": only(False, default=False),
    "mlp_bias": only(False, default=False),
    "is_causal": only(True, default=True),
    "rope_interleaved": only(False, default=None),
}


def llama_turns(config: Mapping[str, Any], d_head: int) -> np.ndarray:
    """Return the frequencies of the rotation in a config.

    Parameters
    ----------
    config
        The entries that ROTATION names are read.
    d_head
        The width of a head, even.

    Returns
    -------
    numpy.ndarray, (d_head / 2,)
        The angle of each pair per position, in radians.

    Raises
    ------
    ValueError
        The rotation is neither plain nor that of Llama 3.1, or a pair turns
        by more than a radian per position.
    """
    said = {name: config[name] for name in ROTATION if name in config}
    checked_config(said, ROTATION)
    rope = said.get("rope_scaling") or said.get("rope_parameters") or {}
    base = rope.get("rope_theta", said.get("rope_theta", 10000.0))
    turns = frequencies(d_head, base)  # (C,)
    if rope.get("rope_type", rope.get("type", "default")) == "llama3":
        turns = _stretched(turns, rope, said)
    if turns.max() > 1:  # float32 has too few digits for such angles
        raise ValueError(
            f"A pair turns by {turns.max():g} radians per position, but must "
            "turn by 1 at most: rope_theta or factor is below 1."
        )
    return turns


def _stretched(
    turns: np.ndarray, rope: Mapping[str, Any], said: Mapping[str, Any]
) -> np.ndarray:
    """Return the stretched frequencies of Llama 3.1, (C,)."""
    factors = ("factor", "low_freq_factor", "high_freq_factor")
    for name in factors:
        if name not in rope:
            raise ValueError(
                f"The rotation has no {name}: see rope_parameters or "
                "rope_scaling in the config.json of the original model."
            )
    factor, low, high = (rope[name] for name in factors)
    if low >= high:
        raise ValueError(
            f"low_freq_factor is {low}, but must be below "
            f"high_freq_factor, {high}: {_COMPARE}."
        )
    length = said.get("max_position_embeddings", 2048)
    length = said.get(_LENGTH, rope.get(_LENGTH, length))
    return stretched(turns, factor, low, high, length)


def llama_config(config: Mapping[str, Any]) -> LlamaConfig:
    """Return the sizes and switches of the Llama in a config.

    Parameters
    ----------
    config
        The contents of config.json.

    Returns
    -------
    LlamaConfig
        Its `base` has the frequencies of the rotation.

    Raises
    ------
    ValueError
        An entry is missing, wrong or unknown, or heads and key heads do not
        fit. The message names the entry, its value, and what to do.
    """
    said = checked_config(config, _LLAMA | ROTATION | HARMLESS)
    num_heads, d_model = said["num_attention_heads"], said["hidden_size"]
    if said["head_dim"] is None and d_model % num_heads:
        raise ValueError(
            f"hidden_size is {d_model}, no multiple of {num_heads} heads, and "
            f"there is no head_dim: {_COMPARE}."
        )
    d_head = said["head_dim"] or d_model // num_heads
    found = LlamaConfig(
        vocab_size=said["vocab_size"],
        num_layers=said["num_hidden_layers"],
        d_model=d_model,
        num_heads=num_heads,
        key_heads=said["num_key_value_heads"] or num_heads,
        d_head=d_head,
        d_ff=said["intermediate_size"],
        epsilon=said["rms_norm_eps"],
        tied=said["tie_word_embeddings"],
    )
    return replace(found, base=tuple(llama_turns(config, d_head).tolist()))


def llama_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a Llama, by its checkpoint name.

    Parameters
    ----------
    config
        The sizes.

    Returns
    -------
    dict of str to tuple of int
        A matrix is (out, in), as in PyTorch.
    """
    d_model, d_ff = config.d_model, config.d_ff
    wide = config.num_heads * config.d_head
    narrow = config.key_heads * config.d_head
    of_layer = {
        "input_layernorm": (d_model,),
        "self_attn.q_proj": (wide, d_model),
        "self_attn.k_proj": (narrow, d_model),
        "self_attn.v_proj": (narrow, d_model),
        "self_attn.o_proj": (d_model, wide),
        "post_attention_layernorm": (d_model,),
        "mlp.gate_proj": (d_ff, d_model),
        "mlp.up_proj": (d_ff, d_model),
        "mlp.down_proj": (d_model, d_ff),
    }
    found = {"model.embed_tokens.weight": (config.vocab_size, d_model)}
    for layer in range(config.num_layers):
        for name, shape in of_layer.items():
            found[f"model.layers.{layer}.{name}.weight"] = shape
    found["model.norm.weight"] = (d_model,)
    if not config.tied:
        found["lm_head.weight"] = (config.vocab_size, d_model)
    return found


def checked_weights(
    weights: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, np.ndarray]:
    """Return the weights that a model needs, by name, if they fit.

    Parameters
    ----------
    weights
        The weights of a checkpoint.
    shapes
        The shapes of the model. Without "lm_head.weight" the model is tied.

    Returns
    -------
    dict of str to numpy.ndarray
        A weight for each name in `shapes`. A tied model's copy of the
        embedding is left out, and so are the frequencies of the rotation in
        old checkpoints.

    Raises
    ------
    ValueError
        A tensor is missing, unknown, or has another shape.
    """
    head = weights.get("lm_head.weight")
    embedding = weights.get("model.embed_tokens.weight")
    spare = {"lm_head.weight"} - shapes.keys()  # a tied copy in the file
    both = head is not None and embedding is not None
    if spare and both and not np.array_equal(head, embedding):
        raise ValueError(
            "tie_word_embeddings is true, but lm_head.weight is not the "
            "embedding: set it to false in config.json."
        )
    found = {
        name: weight
        for name, weight in weights.items()
        if name not in spare and ".rotary_emb." not in name
    }
    whole, merge = "download the whole model", "merge adapters first"
    for names, fault, advice in (
        (shapes.keys() - found.keys(), "missing", whole),
        (found.keys() - shapes.keys(), "too many", merge),
    ):
        if names:
            raise ValueError(
                f"Tensors that are {fault}: {len(names)}, such as "
                f"{min(names)}: {advice}, or mend config.json."
            )
    for name, shape in shapes.items():
        if found[name].shape != tuple(shape):
            raise ValueError(
                f"{name} is {found[name].shape}, and config.json asks for "
                f"{tuple(shape)}: these files are of two models."
            )
    return found
