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
from dataclasses import replace
from typing import Any

import numpy as np

from .checkpoint import (
    HARMLESS,
    ROTATION,
    Entry,
    checked_config,
    checked_weights,
    count,
    flag,
    llama_turns,
    number,
    only,
    read_checkpoint,
    several,
    table,
    text,
)
from .common import DecoderConfig

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

# Names of the norms before and after attention, before and after the
# feed-forward layer.
BEFORE = ("input_layernorm", None, "post_attention_layernorm", None)
AFTER = (
    None,
    "post_attention_layernorm",
    None,
    "post_feedforward_layernorm",
)
BOTH = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
ONE = ("input_layernorm", None, None, None)

_GEMMA = {"scale_offset": 1.0, "tied": True}
_COHERE = {"side_by_side": True, "norms": ONE, "centred": True}
_COHERE |= {"pairs": True, "tied": True}
_WINDOWS = "sliding_window layer_types "
_USED = _WINDOWS + "use_sliding_window "
_BIASES = "attention_bias mlp_bias "
_CAPPED = _WINDOWS + "attention_bias query_pre_attn_scalar "
_CAPPED += "final_logit_softcapping "
_EXPERTS = "num_experts_per_tok num_local_experts num_experts "
# A family -> the switches that it fixes, and the fields that it reads besides
# those of all families.
FAMILIES: dict[str, tuple[dict[str, Any], str]] = {
    "llama": ({}, _BIASES),
    "mistral": ({}, "sliding_window"),
    "qwen2": ({"biases": ("q", "k", "v")}, _USED),
    "qwen3": ({"heads_norm": "head"}, _USED + "attention_bias"),
    "olmo2": ({"norms": AFTER, "heads_norm": "width"}, "attention_bias"),
    "olmo3": (
        {"norms": AFTER, "heads_norm": "width"},
        _WINDOWS + "attention_bias",
    ),
    "gemma": (_GEMMA, "attention_bias"),
    "gemma2": (_GEMMA | {"norms": BOTH}, _CAPPED + "attn_logit_softcapping"),
    "gemma3_text": (_GEMMA | {"norms": BOTH, "heads_norm": "head"}, _CAPPED),
    "granite": (
        {},
        _BIASES + "embedding_multiplier attention_multiplier "
        "residual_multiplier logits_scaling",
    ),
    "smollm3": ({"tied": True}, _USED + _BIASES + "no_rope_layers"),
    "exaone4": ({"norms": AFTER, "heads_norm": "head"}, _WINDOWS),
    "mixtral": ({}, _EXPERTS + "sliding_window"),
    "qwen3_moe": (
        {"heads_norm": "head"},
        _EXPERTS + "sliding_window use_sliding_window attention_bias "
        "moe_intermediate_size norm_topk_prob",
    ),
    "cohere": (_COHERE, "attention_bias logit_scale"),
    "cohere2": (_COHERE, _WINDOWS + "attention_bias logit_scale"),
    "phi3": ({}, "sliding_window"),
    "ernie4_5": ({"pairs": True, "tied": True}, "use_bias"),
    "seed_oss": ({}, _BIASES + "attention_out_bias"),
    "hunyuan_v1_dense": ({"heads_norm": "turned"}, "attention_bias"),
}
NOT_COVERED = {
    "deepseek_v3": "it has latent attention (chapter Experts in earnest)",
    "gemma4_text": "each layer has an embedding of its own",
    "glm": "it turns a part of each head",
    "gpt_oss": "it has sinks and clipped experts",
    "mamba2": "it has a scan (chapter Attention without softmax)",
    "qwen3_5_text": "it has states (chapter Attention without softmax)",
    "qwen3_next": "it has states (chapter Attention without softmax)",
    "stablelm": "it turns a part of each head",
}

_SLIDING, _FULL = "sliding_attention", "full_attention"


def _decimal(above: float = -1e30, below: float = 1e30) -> Entry:
    """Return a rule for a number with a point, between these bounds."""
    words = f"a number with a point, above {above:g} and below {below:g}"
    return Entry(words, lambda x: type(x) is float and above < x < below)


def _or_null(entry: Entry) -> Entry:
    """Return a rule for a required entry that may be null."""

    def fits(x):
        return x is None or entry.fits(x)

    return replace(entry, words=f"{entry.words}, or null", fits=fits)


# Read for some families, which FAMILIES lists.
_OWN = {
    "attention_bias": flag(False),
    "attention_out_bias": flag(False),
    "mlp_bias": flag(False),
    "use_bias": flag(False),
    "sliding_window": _or_null(count()),
    "use_sliding_window": flag(),
    "layer_types": several(only(_SLIDING, _FULL), None),
    "no_rope_layers": several(only(0, 1)),
    "query_pre_attn_scalar": count(),
    "attn_logit_softcapping": _or_null(_decimal(above=0)),
    "final_logit_softcapping": _or_null(_decimal(above=0)),
    "embedding_multiplier": number(),
    "attention_multiplier": number(),
    "residual_multiplier": number(),
    "logits_scaling": number(above=0),
    "logit_scale": _decimal(),
    "moe_intermediate_size": count(),
    "norm_topk_prob": flag(),
    "num_experts": count(0, most=2**12),
    "num_experts_per_tok": count(),
    "num_local_experts": count(0, most=2**12),
}
# Read for all families.
_EVERY = {
    "model_type": text(),
    "vocab_size": count(),
    "hidden_size": count(most=2**16),
    "intermediate_size": count(),
    "num_hidden_layers": count(most=1000),
    "num_attention_heads": count(most=2**12),
    "num_key_value_heads": count(most=2**12),
    "head_dim": count(0, most=2**16),
}
# Families with a default of their own for a missing head_dim, and families in
# which null means that the heads share the model's width.
_NEED_HEAD_DIM = "qwen3 gemma gemma2 gemma3_text ernie4_5 seed_oss".split()
_NULL_HEAD_DIM = "llama mistral mixtral hunyuan_v1_dense".split()
# These change nothing with these values, but something with others.
_FIXED = {
    "is_causal": only(True, default=True),
    "mlp_only_layers": only([], default=None),
    "decoder_sparse_step": only(1, default=1),
    "attention_bias": only(False, default=False),
    "mlp_bias": only(False, default=False),
    "use_bidirectional_attention": only(False, default=None),
    "use_qk_norm": only(False, default=None),
}
_NEUTRAL = {
    name: replace(entry, advice="load the folder with Transformers")
    for name, entry in _FIXED.items()
}
_SHARE = Entry(
    "a number from 0 to 1",
    lambda x: type(x) in (int, float) and 0 <= x <= 1,
    0.0,
)
_PATTERN = Entry("a number or a string", lambda x: type(x) in (int, str), None)
_TABLE = Entry("a table", lambda x: type(x) is dict, None)
# These change nothing: they are for training and memory, or layer_types and
# no_rope_layers were made from them.
_HARMLESS = HARMLESS | {
    "cache_implementation": text(None),
    "eod_token_id": HARMLESS["bos_token_id"],
    "initializer_range": replace(_decimal(-1e-9, 1), default=0.02),
    "attention_dropout": _SHARE,
    "embd_pdrop": _SHARE,
    "resid_pdrop": _SHARE,
    "residual_dropout": _SHARE,
    "router_aux_loss_coef": replace(_decimal(), default=0.0),
    "router_jitter_noise": replace(_decimal(), default=0.0),
    "output_router_logits": flag(False),
    "id2label": _TABLE,
    "label2id": _TABLE,
    "max_window_layers": count(1),
    "no_rope_layer_interval": count(1),
    "sliding_window_pattern": _PATTERN,
    "_sliding_window_pattern": _PATTERN,
}

_ADVICE = "compare config.json with that of the original model"
_LENGTH = "original_max_position_embeddings"
# Families whose two kinds of layers have different rotations.
_BY_KIND = ("gemma3_text", "olmo3")
_PARTS = {
    "attention_bias": "q k v o",
    "attention_out_bias": "o",
    "mlp_bias": "gate up down",
    "use_bias": "q k v o gate up down",
}


def decoder_config(config: Mapping[str, Any]) -> DecoderConfig:
    """Return the sizes and switches in a config.

    Parameters
    ----------
    config : dict
        The contents of config.json.

    Returns
    -------
    DecoderConfig
        Its `bases` have the frequencies of a stretched rotation.

    Raises
    ------
    ValueError
        The family is unknown, an entry is missing, wrong or unknown, or two
        entries do not fit. The message says which, and what to do.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        why = "it is none of the families here"
        if isinstance(family, str):
            why = NOT_COVERED.get(family, why)
        raise ValueError(
            f"The model_type {family!r} is not known: {why}. Load the folder "
            "with Transformers."
        )
    said = checked_config(config, _entries(family))
    d_model, num_heads = said["hidden_size"], said["num_attention_heads"]
    key_heads = said["num_key_value_heads"]
    d_head = said["head_dim"] or d_model // num_heads
    narrow = not said["head_dim"] and d_model % num_heads
    if num_heads % key_heads or d_head % 2 or narrow:
        raise ValueError(
            f"{num_heads} heads and {key_heads} key heads of width {d_head}, "
            f"in a model of width {d_model}, do not fit: {_ADVICE}."
        )
    pad, vocab_size = said["pad_token_id"] or 0, said["vocab_size"]
    if not -vocab_size <= pad < vocab_size:
        raise ValueError(
            f"pad_token_id is {pad}, but vocab_size {vocab_size}: {_ADVICE}."
        )
    bases, windows = _layers(config, said, d_head)
    found = {
        "vocab_size": vocab_size,
        "d_model": d_model,
        "num_heads": num_heads,
        "key_heads": key_heads,
        "d_head": d_head,
        "d_ff": said.get("moe_intermediate_size", said["intermediate_size"]),
        "bases": bases,
        "windows": windows,
        "epsilon": said.get("layer_norm_eps", said.get("rms_norm_eps")),
        "activation": _activation(said),
        "biases": _biases(said),
        "score_cap": said.get("attn_logit_softcapping"),
        "logit_cap": said.get("final_logit_softcapping"),
    }
    found |= _experts(said) | _factors(said) | FAMILIES[family][0]
    found["tied"] = said["tie_word_embeddings"]
    return DecoderConfig(**found)


def _entries(family: str) -> dict[str, Entry]:
    """Return the rules for a config of this family."""
    switches, own = FAMILIES[family]
    norm = "layer_norm_eps" if "cohere" in family else "rms_norm_eps"
    gates = ["hidden_act", "hidden_activation"]
    if family in ("gemma2", "gemma3_text"):
        gates.reverse()
    known = ("silu", "gelu_pytorch_tanh")
    found = _EVERY | ROTATION | _HARMLESS | _NEUTRAL
    found |= {
        norm: _decimal(above=0, below=1),
        gates[0]: only(*known),
        gates[1]: only(*known, default=None),
        "tie_word_embeddings": flag(switches.get("tied", False)),
    }
    found |= {name: _OWN[name] for name in own.split()}
    if family in _NEED_HEAD_DIM:
        found["head_dim"] = count(most=2**16)
    elif family in _NULL_HEAD_DIM:
        found["head_dim"] = count(None, most=2**16)
    if family == "seed_oss":
        found["attention_bias"] = flag(True)
    if family in ("phi3", "smollm3"):  # its default may be out of the table
        allows = HARMLESS["pad_token_id"].allows
        found["pad_token_id"] = Entry("an id, or null", allows)
    if family in _BY_KIND:
        one = ROTATION["rope_parameters"].entries
        kinds = {kind: table(one, None) for kind in (_SLIDING, _FULL)}
        found["rope_parameters"] = table(one | kinds, None)
    return found


def _layers(
    config: Mapping[str, Any], said: Mapping[str, Any], d_head: int
) -> tuple[tuple[Any, ...], tuple[int | None, ...]]:
    """Return the base of each layer, and its window or None."""
    family, layers = said["model_type"], said["num_hidden_layers"]
    window = said.get("sliding_window")
    if said.get("use_sliding_window") is False:
        window = None
    kinds = said.get("layer_types")
    if kinds is None:
        kinds = [_SLIDING if window else _FULL] * layers
        # Transformers makes a missing list by other rules than these; without
        # a window, some families have one rule only.
        if "layer_types" in said and (
            window or "use_sliding_window" not in said
        ):
            raise ValueError(
                "config.json has no layer_types: load the folder with "
                "Transformers, and write it with save_pretrained."
            )
    if _SLIDING in kinds and not window:
        raise ValueError(
            "Layers have a window, but sliding_window, its length, is missing "
            f"or not used: {_ADVICE}."
        )
    turned = [True] * layers
    if family == "smollm3":
        turned = said["no_rope_layers"]
    elif family == "cohere2" or (family == "exaone4" and window):
        turned = [kind == _SLIDING for kind in kinds]
    for name, listed in (("layer_types", kinds), ("no_rope_layers", turned)):
        if len(listed) != layers:
            raise ValueError(
                f"{name} has {len(listed)} entries, but num_hidden_layers is "
                f"{layers}: {_ADVICE}."
            )
    base = {kind: _base(config, kind, d_head) for kind in {*kinds}}
    bases = tuple(
        base[kind] if turns else None
        for kind, turns in zip(kinds, turned, strict=True)
    )
    return bases, tuple(window if kind == _SLIDING else None for kind in kinds)


def _base(
    config: Mapping[str, Any], kind: str, d_head: int
) -> float | tuple[float, ...]:
    """Return the base, or the frequencies, of the layers of this kind."""
    family = config["model_type"]
    rope, older = config.get("rope_parameters"), config.get("rope_scaling")
    if rope and older:
        raise ValueError(
            "config.json has rope_parameters and rope_scaling: keep only the "
            "entry of the original model."
        )
    # Version 4 of Transformers has the base outside of rope_scaling.
    rope = rope or {"rope_theta": config.get("rope_theta")} | (older or {})
    both = rope.get(_SLIDING) and rope.get(_FULL)
    flat = family not in _BY_KIND or not both
    if not flat:
        rope = rope[kind]
    base = rope.get("rope_theta")
    plain = rope.get("rope_type", rope.get("type", "default")) == "default"
    # In Transformers, all layers of olmo3 have this base with a flat table.
    known = (family, base, plain) == ("olmo3", 5e5, True)
    if flat and family in _BY_KIND and not known:
        raise ValueError(
            f"{family} has a rotation for {_FULL} and one for {_SLIDING}, so "
            "rope_parameters must have both: load the folder with "
            "Transformers, and copy what it uses."
        )
    if base is None:
        raise ValueError(
            "config.json has no rope_theta, the base of the rotation: load "
            "the folder with Transformers, and write it with save_pretrained."
        )
    if base < 1 or rope.get("factor", 1) < 1:
        raise ValueError(
            f"rope_theta is {base} and factor {rope.get('factor', 1)}; below "
            "1 they turn a pair by more than a radian per position: "
            f"{_ADVICE}."
        )
    if plain:
        return base
    if family == "phi3":
        raise ValueError(
            "phi3 has no rotation of the type 'llama3' in Transformers: "
            f"{_ADVICE}."
        )
    length = rope.get(_LENGTH)
    if flat:
        length = config.get(_LENGTH, length)
    if length is None:
        raise ValueError(f"The rotation has no {_LENGTH}: {_ADVICE}.")
    rope = dict(rope) | {_LENGTH: length}
    return tuple(llama_turns({"rope_parameters": rope}, d_head).tolist())


def _activation(said: Mapping[str, Any]) -> str:
    """Return the activation of the gate."""
    both = {said["hidden_act"], said["hidden_activation"]} - {None}
    if len(both) > 1:
        raise ValueError(
            "Two activations, hidden_act and hidden_activation, differ: "
            f"{_ADVICE}."
        )
    return both.pop()


def _biases(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the projections that have a bias."""
    parts = _PARTS
    if said["model_type"] == "seed_oss":
        parts = parts | {"attention_bias": "q k v"}
    named = [names for field, names in parts.items() if said.get(field)]
    return tuple(" ".join(named).split())


def _experts(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the switches of a mixture of experts, if there is one."""
    if "num_experts_per_tok" not in said:
        return {}
    routed = said["num_experts_per_tok"]
    counts = {said["num_experts"], said["num_local_experts"]} - {0}
    if len(counts) != 1 or routed > max(counts):
        raise ValueError(
            f"A token is routed to {routed} experts, but num_local_experts is "
            f"missing or smaller: {_ADVICE}."
        )
    return {
        "num_experts": counts.pop(),
        "experts_asked": routed,
        "to_one": said.get("norm_topk_prob", True),
    }


def _factors(said: Mapping[str, Any]) -> dict[str, float]:
    """Return the factors in a config."""
    family, found = said["model_type"], {}
    if "gemma" in family:
        found["embedding_factor"] = said["hidden_size"] ** 0.5
    if family in ("gemma2", "gemma3_text"):
        found["score_scale"] = said["query_pre_attn_scalar"] ** -0.5
    if "cohere" in family:
        found["logit_factor"] = said["logit_scale"]
    if family == "granite":
        found["embedding_factor"] = said["embedding_multiplier"]
        found["residual_factor"] = said["residual_multiplier"]
        found["score_scale"] = said["attention_multiplier"]
        found["logit_factor"] = 1 / said["logits_scaling"]
    return found


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
