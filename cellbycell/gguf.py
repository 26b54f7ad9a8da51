"""Read a Llama from a GGUF file, the format of llama.cpp and Ollama.

    meta, tensors = read_gguf(path)
    model = load_gguf(path)  # in PyTorch, or load_gguf(path, "tensorflow")

Whatever is wrong with a file ends in one sentence, before a model is made.
The chapter bits.ipynb builds what reads the bytes.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .checkpoint import checked_weights
from .common import FileBytes, LlamaConfig, read_head, read_tensor
from .entries import Entry, checked_config, count, number, only
from .llama_configs import llama_shapes

__all__ = ["gguf_config", "gguf_weights", "load_gguf", "read_gguf"]

_AGAIN = "download the file again"


def read_gguf(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the metadata of a GGUF file, and its tensors by name.

    Parameters
    ----------
    path
        The file, of version 2 or 3, its tensors of the types F32, F16, Q4_0,
        Q4_1 and Q8_0.

    Returns
    -------
    meta : dict
        The entries: texts, numbers, True or False, and lists.
    tensors : dict of str to numpy.ndarray
        Each tensor in float32, rows first: (outputs, inputs) of a layer.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is no GGUF file, is cut off, or has another type of block. The
        message says what to do.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file: give one that ends .gguf")
    with open(path, "rb") as file:
        data = b""
        if path.stat().st_size:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if data[:4] != b"GGUF":
            raise ValueError(
                f"{path.name} is no GGUF file: give one that ends .gguf, and "
                "if it is a short text about git-lfs, run `git lfs pull`."
            )
        content = FileBytes(data, path.name)
        content.place = 4
        meta, listed = read_head(content)
        return meta, {
            name: read_tensor(content, name, *entry)
            for name, entry in listed.items()
        }


_OTHER = "load the file with llama.cpp"
# What the metadata says of a Llama; other entries might change its logits.
_ENTRIES = {
    "block_count": count(most=2**10),
    "embedding_length": count(),
    "feed_forward_length": count(),
    "attention.head_count": count(),
    "attention.head_count_kv": count(None),
    "attention.key_length": count(None),
    "attention.value_length": count(None),
    "attention.layer_norm_rms_epsilon": number(above=0),
    "rope.freq_base": number(10000.0, above=0),
    "rope.dimension_count": count(None),
    "rope.scaling.type": only("none", default=None),
    "vocab_size": count(None),
    "context_length": Entry("anything", lambda x: True, None),
}
_ENTRIES = {n: replace(e, advice=_AGAIN) for n, e in _ENTRIES.items()}


def gguf_config(
    meta: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> LlamaConfig:
    """Return the sizes of the Llama in a GGUF file.

    Parameters
    ----------
    meta, tensors
        What read_gguf returns.

    Returns
    -------
    LlamaConfig

    Raises
    ------
    ValueError
        It is another model, or an entry is missing, has another type, is
        unknown, or contradicts a tensor.
    """
    kind = meta.get("general.architecture")
    if kind != "llama":
        raise ValueError(
            f"The file has the architecture {kind!r:.60}, and llama is read: "
            f"{_OTHER}."
        )
    entries = {
        name.removeprefix("llama."): value
        for name, value in meta.items()
        if name.startswith("llama.")
    }
    said = checked_config(entries, _ENTRIES, "the metadata", "file")
    table = tensors.get("token_embd.weight")
    if table is None or table.ndim != 2:
        raise ValueError(f"The file has no table of tokens: {_AGAIN}.")
    d_model, heads = said["embedding_length"], said["attention.head_count"]
    d_head = said["attention.key_length"] or d_model // heads
    tokens = meta.get("tokenizer.ggml.tokens")
    for words, one, other in (
        ("width", d_model, table.shape[1]),
        ("width of values", said["attention.value_length"], d_head),
        ("rotated width", said["rope.dimension_count"], d_head),
        ("vocabulary", said["vocab_size"], len(table)),
        ("list of tokens", tokens and len(tokens), len(table)),
    ):
        if one is not None and one != other:
            raise ValueError(
                f"The {words} is {one}, and {other} is needed: "
                f"the file contradicts itself or is unusual; {_OTHER}."
            )
    return LlamaConfig(
        vocab_size=len(table),
        num_layers=said["block_count"],
        d_model=d_model,
        num_heads=heads,
        key_heads=said["attention.head_count_kv"] or heads,
        d_head=d_head,
        d_ff=said["feed_forward_length"],
        base=said["rope.freq_base"],
        epsilon=said["attention.layer_norm_rms_epsilon"],
        tied="output.weight" not in tensors,
    )


_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}


def gguf_weights(
    config: LlamaConfig, tensors: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the weights of a Llama by their names in a checkpoint.

    The file rotates neighbouring columns of a head, a Llama of the book (and
    of Hugging Face) columns that lie half a head apart, so the rows of queries
    and keys are sorted back.

    Parameters
    ----------
    config
        The sizes, from gguf_config.
    tensors
        What read_gguf returns.

    Returns
    -------
    dict of str to numpy.ndarray

    Raises
    ------
    ValueError
        A tensor is missing, unknown, or has another shape.
    """
    heads = {"attn_q": config.num_heads, "attn_k": config.key_heads}
    found = {}
    for name, w in tensors.items():
        block, part = re.fullmatch(
            r"(blk\.\d+\.)?(.*?)(?:\.weight)?", name
        ).groups()
        place = block.replace("blk", "model.layers") if block else ""
        if part in heads and w.ndim == 2 and not len(w) % (2 * heads[part]):
            pairs = w.reshape(heads[part], -1, 2, w.shape[1])  # (H, C, 2, D)
            w = pairs.swapaxes(1, 2).reshape(w.shape)  # (H * K, D)
        found[f"{place}{_NAMES.get(part, part)}.weight"] = w
    return checked_weights(found, llama_shapes(config))


def load_gguf(path: str | os.PathLike[str], framework: str = "pytorch") -> Any:
    """Return the Llama of a GGUF file, in float32.

    Parameters
    ----------
    path
        The file.
    framework
        "pytorch" or "tensorflow".

    Returns
    -------
    Llama or LlamaTF
        Of cellbycell.pytorch or cellbycell.tensorflow.

    Raises
    ------
    FileNotFoundError, ValueError
        As read_gguf, gguf_config and gguf_weights raise them; no part of a
        model is made then.
    """
    return model_of(*read_gguf(path), framework)


def model_of(
    meta: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    framework: str = "pytorch",
) -> Any:
    """Return the Llama of what read_gguf has read.

    Parameters
    ----------
    meta, tensors
        What read_gguf returns. A model of PyTorch shares the memory of all
        tensors but the queries' and keys'.
    framework
        "pytorch" or "tensorflow".

    Returns
    -------
    Llama or LlamaTF

    Raises
    ------
    ValueError
        As gguf_config and gguf_weights raise it, or for another framework.
    """
    config = gguf_config(meta, tensors)
    weights = gguf_weights(config, tensors)
    if framework == "pytorch":
        import torch

        from .pytorch import Llama, filled_llama

        with torch.device("meta"):  # no numbers are drawn
            model = Llama(config)
        return filled_llama(model, weights).eval()
    if framework == "tensorflow":
        from .tensorflow import LlamaTF, filled_llama_tf

        return filled_llama_tf(LlamaTF(config), weights)
    raise ValueError(f"{framework!r}: give 'pytorch' or 'tensorflow'.")
