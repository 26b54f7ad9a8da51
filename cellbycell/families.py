"""Read the folder of a decoder of any of twenty families.

    weights, config = load_decoder(folder)
    logits = run_decoder(weights, token_ids, config)

A config.json has many entries, and each family fixes other switches. Unknown
entries are refused, because they may change the logits. The chapter
families.ipynb builds the decoder and explains its switches.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from .checkpoint import (
    checked_weights,
    read_checkpoint,
)
from .common import DecoderConfig
from .family_configs import (
    AFTER,
    BEFORE,
    BOTH,
    FAMILIES,
    NOT_COVERED,
    ONE,
    decoder_config,
)

__all__ = [
    "AFTER",
    "BEFORE",
    "BOTH",
    "FAMILIES",
    "NOT_COVERED",
    "ONE",
    "decoder_config",
    "decoder_shapes",
    "load_decoder",
    "plain_weights",
]


def decoder_shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight that the decoder reads, by name.

    Parameters
    ----------
    config : DecoderConfig
        The sizes and switches.

    Returns
    -------
    dict of str to tuple of int
        A matrix is (out, in), as in checkpoints.
    """
    d_model, d_head = config.d_model, config.d_head
    wide, narrow = config.num_heads * d_head, config.key_heads * d_head
    matrices = {
        "self_attn.q_proj": (wide, d_model),
        "self_attn.k_proj": (narrow, d_model),
        "self_attn.v_proj": (narrow, d_model),
        "self_attn.o_proj": (d_model, wide),
    }
    experts = [f"mlp.experts.{e}" for e in range(config.num_experts)]
    for name in experts or ["mlp"]:
        matrices[f"{name}.gate_proj"] = (config.d_ff, d_model)
        matrices[f"{name}.up_proj"] = (config.d_ff, d_model)
        matrices[f"{name}.down_proj"] = (d_model, config.d_ff)
    of_layer = {f"{name}.weight": shape for name, shape in matrices.items()}
    for name, (rows, _) in matrices.items():
        if name.split(".")[-1].removesuffix("_proj") in config.biases:
            of_layer[f"{name}.bias"] = (rows,)
    if experts:
        of_layer["mlp.gate.weight"] = (config.num_experts, d_model)
    for name in {*config.norms} - {None}:
        of_layer[f"{name}.weight"] = (d_model,)
    if config.heads_norm != "none":
        one_row = config.heads_norm == "width"
        for part, rows in (("q", wide), ("k", narrow)):
            shape = (rows if one_row else d_head,)
            of_layer[f"self_attn.{part}_norm.weight"] = shape
    found = {
        "model.embed_tokens.weight": (config.vocab_size, d_model),
        "model.norm.weight": (d_model,),
    }
    if not config.tied:
        found["lm_head.weight"] = (config.vocab_size, d_model)
    for layer in range(len(config.bases)):
        for name, shape in of_layer.items():
            found[f"model.layers.{layer}.{name}"] = shape
    return found


# The name of a part in one family -> its name in the other families.
_RENAMED = {
    "mixtral": {
        ".block_sparse_moe.": ".mlp.",
        ".w1.": ".gate_proj.",
        ".w2.": ".down_proj.",
        ".w3.": ".up_proj.",
    },
    "hunyuan_v1_dense": {
        ".query_layernorm.": ".q_norm.",
        ".key_layernorm.": ".k_norm.",
    },
}


def plain_weights(
    weights: Mapping[str, np.ndarray], config: DecoderConfig, family: str
) -> dict[str, np.ndarray]:
    """Return weights under the names that most families have.

    Parameters
    ----------
    weights : dict of str to numpy.ndarray
        The weights of a checkpoint, or gradients by the names of
        Transformers' parameters, where all experts of a layer are one array.
    config : DecoderConfig
        The sizes.
    family : str
        The model_type of the checkpoint.

    Returns
    -------
    dict of str to numpy.ndarray
        Packed matrices are split.

    Raises
    ------
    ValueError
        Two weights have one name.
    """
    found = {}
    for name, weight in weights.items():
        for theirs, ours in _RENAMED.get(family, {}).items():
            name = name.replace(theirs, ours)
        is_packed = family == "phi3" or ".experts." in name
        cut = _cut(name, weight, config) if is_packed else {name: weight}
        for one, matrix in cut.items():
            if one in found:
                raise ValueError(
                    f"The folder has {one} twice, by two names: download it "
                    "again, or remove one of the two."
                )
            found[one] = matrix
    return found


def _cut(
    name: str, weight: np.ndarray, config: DecoderConfig
) -> dict[str, np.ndarray]:
    """Return the matrices in an array, by name."""
    if ".experts." in name and weight.ndim == 3:
        found = {}
        for e, expert in enumerate(weight):
            one = name.replace(".experts.", f".experts.{e}.") + ".weight"
            found |= _cut(one, expert, config)
        return found
    wide, narrow = config.num_heads, config.key_heads
    for packed, parts, counts in (
        (".qkv_proj.", "q k v", (wide, narrow, narrow)),
        (".gate_up_proj.", "gate up", (1, 1)),
    ):
        if packed in name and weight.ndim and len(weight) % sum(counts) == 0:
            rows = len(weight) // sum(counts)
            cuts = np.split(weight, rows * np.cumsum(counts)[:-1])
            return {
                name.replace(packed, f".{part}_proj."): matrix
                for part, matrix in zip(parts.split(), cuts, strict=True)
            }
    return {name: weight}


def load_decoder(
    folder: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray], DecoderConfig]:
    """Return the weights and the config of a checkpoint's folder.

    Parameters
    ----------
    folder : str or path
        Has config.json, and model.safetensors or its shards.

    Returns
    -------
    weights : dict of str to numpy.ndarray
        The weights that the decoder reads, in float32, by the names in
        `decoder_shapes`.
    config : DecoderConfig
        The sizes and switches.

    Raises
    ------
    FileNotFoundError
        A file is missing.
    ValueError
        `decoder_config` refuses the config, or a weight is missing, has
        another shape, or is not read.
    ImportError
        The library safetensors is not installed.
    """
    said, weights = read_checkpoint(folder)
    config = decoder_config(said)
    weights = plain_weights(weights, config, said["model_type"])
    return checked_weights(weights, decoder_shapes(config)), config
