"""What the config.json of a Llama says: its sizes, its turns, its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .common import LlamaConfig, frequencies, stretched
from .entries import (
    COMPARE,
    Entry,
    checked_config,
    count,
    flag,
    number,
    only,
    several,
    table,
    text,
)

__all__ = [
    "HARMLESS",
    "ROTATION",
    "llama_config",
    "llama_shapes",
    "llama_turns",
]


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
            f"high_freq_factor, {high}: {COMPARE}."
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
            f"there is no head_dim: {COMPARE}."
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
