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
from pathlib import Path
from typing import Any

import numpy as np

from .common import LlamaConfig
from .llama_configs import llama_config, llama_shapes, llama_turns

__all__ = [
    "checked_weights",
    "llama_config",
    "llama_shapes",
    "llama_turns",
    "read_checkpoint",
    "to_transformers",
]


def read_checkpoint(
    folder: str | os.PathLike[str],
    keep: Callable[[np.ndarray], Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the config of a checkpoint, and its weights by name.

    The library safetensors checks each file against its header.

    Parameters
    ----------
    folder
        Has config.json, and model.safetensors, or its shards and
        model.safetensors.index.json.
    keep
        Gets each tensor in float32, and what it returns is kept instead, so
        that of float32 there is one tensor at a time. Without it, all are.

    Returns
    -------
    config : dict
        The contents of config.json, which `checked_config` checks.
    weights : dict of str to numpy.ndarray, or to what `keep` returns
        Each tensor by its name, in float32, whatever its type in the file.
        Positions from 0 on, which old folders of BERT have, are left out.

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
        return config, _read_tensors(_present(whole), keep)
    listed = _read_json(index).get("weight_map")
    named = listed.values() if isinstance(listed, dict) and listed else [None]
    if not all(isinstance(x, str) and Path(x).name == x for x in named):
        raise ValueError(
            f"{index.name} does not say which file of its folder has which "
            "tensor: download it again."
        )
    weights, places = {}, {}
    for shard in sorted({*named}):
        found = _read_tensors(_present(folder / shard), keep)
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


def _read_tensors(path: Path, keep: Any) -> dict[str, Any]:
    """Return the tensors of a file by name, in float32 or as kept."""
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
    found = {}
    for name, entry in header.items():
        if not _counts_on(data, entry, name):
            values = _as_float32(data, entry, name)
            found[name] = keep(values) if keep else values
    return found


def _counts_on(data: Any, entry: dict[str, Any], name: str) -> bool:
    """Say if a tensor is the buffer 0, 1, 2, ... that a model makes itself."""
    if entry["dtype"] != "I64" or not name.endswith("position_ids"):
        return False
    start, _ = entry["data_offsets"]
    found = np.ndarray(entry["shape"], "<i8", data, start).ravel()
    return np.array_equal(found, np.arange(found.size))


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


def checked_weights(
    weights: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Any]:
    """Return the weights that a model needs, by name, if they fit.

    Parameters
    ----------
    weights
        The weights of a checkpoint, as arrays or as tensors.
    shapes
        The shapes of the model. Without "lm_head.weight" the model is tied.

    Returns
    -------
    dict of str to Any
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
    if spare and both and not _alike(head, embedding):
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


def _alike(one: Any, other: Any) -> bool:
    """Say if two arrays, or two tensors of one framework, are equal."""
    return one.shape == other.shape and bool((one == other).all())


def to_transformers(config: LlamaConfig, weights: Mapping[str, Any]) -> Any:
    """Return Hugging Face's Llama with sizes and weights of ours.

    Parameters
    ----------
    config
        Its sizes.
    weights
        {name in a checkpoint: an array or a tensor}.

    Returns
    -------
    transformers.LlamaForCausalLM
        In evaluation.

    Raises
    ------
    ValueError
        The frequencies of the rotation are given one by one.
    """
    import torch
    from transformers import LlamaConfig as TheirConfig
    from transformers import LlamaForCausalLM

    if not isinstance(config.base, (int, float)):
        raise ValueError(
            "The frequencies of the rotation are given one by one: read the "
            "folder with AutoModelForCausalLM, which stretches its base."
        )
    sizes = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.key_heads,
        "head_dim": config.d_head,
        "intermediate_size": config.d_ff,
        "rms_norm_eps": config.epsilon,
        "tie_word_embeddings": config.tied,
    }
    sizes["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": config.base,
    }
    tokens = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    theirs = LlamaForCausalLM(TheirConfig(**sizes, **tokens)).eval()
    weights = {name: torch.as_tensor(w) for name, w in weights.items()}
    if config.tied:  # one table, which their dict has twice
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    theirs.load_state_dict(weights)
    return theirs
