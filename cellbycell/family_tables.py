"""Which entries the config.json of each of twenty families has, as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .entries import (
    Entry,
    count,
    flag,
    number,
    only,
    several,
    text,
)
from .llama_configs import (
    HARMLESS,
)

__all__ = ["AFTER", "BEFORE", "BOTH", "FAMILIES", "NOT_COVERED", "ONE"]

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

SLIDING = "sliding_attention"
FULL = "full_attention"


def decimal(above: float = -1e30, below: float = 1e30) -> Entry:
    """Return a rule for a number with a point, between these bounds."""
    words = f"a number with a point, above {above:g} and below {below:g}"
    return Entry(words, lambda x: type(x) is float and above < x < below)


def _or_null(entry: Entry) -> Entry:
    """Return a rule for a required entry that may be null."""

    def fits(x):
        return x is None or entry.fits(x)

    return replace(entry, words=f"{entry.words}, or null", fits=fits)


# Read for some families, which FAMILIES lists.
OWN = {
    "attention_bias": flag(False),
    "attention_out_bias": flag(False),
    "mlp_bias": flag(False),
    "use_bias": flag(False),
    "sliding_window": _or_null(count()),
    "use_sliding_window": flag(),
    "layer_types": several(only(SLIDING, FULL), None),
    "no_rope_layers": several(only(0, 1)),
    "query_pre_attn_scalar": count(),
    "attn_logit_softcapping": _or_null(decimal(above=0)),
    "final_logit_softcapping": _or_null(decimal(above=0)),
    "embedding_multiplier": number(),
    "attention_multiplier": number(),
    "residual_multiplier": number(),
    "logits_scaling": number(above=0),
    "logit_scale": decimal(),
    "moe_intermediate_size": count(),
    "norm_topk_prob": flag(),
    "num_experts": count(0, most=2**12),
    "num_experts_per_tok": count(),
    "num_local_experts": count(0, most=2**12),
}
# Read for all families.
EVERY = {
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
NEED_HEAD_DIM = "qwen3 gemma gemma2 gemma3_text ernie4_5 seed_oss".split()
NULL_HEAD_DIM = "llama mistral mixtral hunyuan_v1_dense".split()
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
NEUTRAL = {
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
UNREAD = HARMLESS | {
    "cache_implementation": text(None),
    "eod_token_id": HARMLESS["bos_token_id"],
    "initializer_range": replace(decimal(-1e-9, 1), default=0.02),
    "attention_dropout": _SHARE,
    "embd_pdrop": _SHARE,
    "resid_pdrop": _SHARE,
    "residual_dropout": _SHARE,
    "router_aux_loss_coef": replace(decimal(), default=0.0),
    "router_jitter_noise": replace(decimal(), default=0.0),
    "output_router_logits": flag(False),
    "id2label": _TABLE,
    "label2id": _TABLE,
    "max_window_layers": count(1),
    "no_rope_layer_interval": count(1),
    "sliding_window_pattern": _PATTERN,
    "_sliding_window_pattern": _PATTERN,
}

ADVICE = "compare config.json with that of the original model"
LENGTH = "original_max_position_embeddings"
# Families whose two kinds of layers have different rotations.
BY_KIND = ("gemma3_text", "olmo3")
PARTS = {
    "attention_bias": "q k v o",
    "attention_out_bias": "o",
    "mlp_bias": "gate up down",
    "use_bias": "q k v o gate up down",
}
