"""A Llama, cell by cell: its common part, for what comes after it.

Built and explained in book/llama.ipynb.
Written by `make package`: change it in the chapter.
"""

import json
from pathlib import Path

import numpy as np


def as_float32(raw, dtype, name):
    """Return bytes as numbers, (C,); dtype is what the file calls it."""
    if dtype == "BF16":  # the upper half of a float32
        return (raw.view("<u2").astype("<u4") << 16).view("<f4")
    kinds = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    if dtype not in kinds:
        raise ValueError(
            f"{name} is {dtype}, so these weights are quantised: take the "
            "folder of the model from which they were made."
        )
    return raw.view(kinds[dtype]).astype(np.float32)


def read_safetensors(path):
    """Return the tensors of a file by name, as arrays of float32.

    Raises ValueError if the file is not whole, or holds other numbers.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if 8 + length > size:
            raise ValueError(
                f"{path.name} is not whole, or no file of weights: download "
                "it again. If it is a small text, run `git lfs pull`."
            )
        header = json.loads(file.read(length))
    data = np.memmap(path, mode="r", offset=8 + length)
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        if stop > len(data):
            raise ValueError(f"{path.name} is not whole: download it again.")
        found[name] = as_float32(data[start:stop], entry["dtype"], name)
        found[name] = found[name].reshape(entry["shape"])
    return found


def read_checkpoint(folder):
    """Return a checkpoint's config, a dict, and its weights by name.

    folder: has config.json, and model.safetensors, or its shards and
    model.safetensors.index.json. Weights are float32 arrays.
    Raises FileNotFoundError or ValueError, which say what to do.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"{folder} has no config.json: give the folder that has it, such "
            "as save_pretrained or snapshot_download leave behind."
        )
    config = json.loads((folder / "config.json").read_text("utf-8"))
    files = ["model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = json.loads(index.read_text("utf-8"))["weight_map"]
        files = sorted(set(shards.values()))
    weights = {}
    for file in files:
        if not (folder / file).is_file():
            raise FileNotFoundError(
                f"{folder} has no {file}: download it as well. Weights in "
                "pytorch_model.bin: load them with Transformers, and "
                "save_pretrained writes them anew."
            )
        weights |= read_safetensors(folder / file)
    return config, weights
