"""What the config.json of each of twenty families says, and what is refused.

A config.json has many entries, and each family fixes other switches. Unknown
entries are refused, because they may change the logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .common import DecoderConfig
from .entries import (
    Entry,
    checked_config,
    count,
    flag,
    only,
    table,
)
from .family_tables import (
    ADVICE,
    AFTER,
    BEFORE,
    BOTH,
    BY_KIND,
    EVERY,
    FAMILIES,
    FULL,
    LENGTH,
    NEED_HEAD_DIM,
    NEUTRAL,
    NOT_COVERED,
    NULL_HEAD_DIM,
    ONE,
    OWN,
    PARTS,
    SLIDING,
    UNREAD,
    decimal,
)
from .llama_configs import (
    ROTATION,
    llama_turns,
)

__all__ = [
    "AFTER",
    "BEFORE",
    "BOTH",
    "FAMILIES",
    "NOT_COVERED",
    "ONE",
    "decoder_config",
]


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
            f"in a model of width {d_model}, do not fit: {ADVICE}."
        )
    pad, vocab_size = said["pad_token_id"] or 0, said["vocab_size"]
    if not -vocab_size <= pad < vocab_size:
        raise ValueError(
            f"pad_token_id is {pad}, but vocab_size {vocab_size}: {ADVICE}."
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
    found = EVERY | ROTATION | UNREAD | NEUTRAL
    found |= {
        norm: decimal(above=0, below=1),
        gates[0]: only(*known),
        gates[1]: only(*known, default=None),
        "tie_word_embeddings": flag(switches.get("tied", False)),
    }
    found |= {name: OWN[name] for name in own.split()}
    if family in NEED_HEAD_DIM:
        found["head_dim"] = count(most=2**16)
    elif family in NULL_HEAD_DIM:
        found["head_dim"] = count(None, most=2**16)
    if family == "seed_oss":
        found["attention_bias"] = flag(True)
    if family in ("phi3", "smollm3"):  # its default may be out of the table
        allows = UNREAD["pad_token_id"].allows
        found["pad_token_id"] = Entry("an id, or null", allows)
    if family in BY_KIND:
        one = ROTATION["rope_parameters"].entries
        kinds = {kind: table(one, None) for kind in (SLIDING, FULL)}
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
        kinds = [SLIDING if window else FULL] * layers
        # Transformers makes a missing list by other rules than these; without
        # a window, some families have one rule only.
        if "layer_types" in said and (
            window or "use_sliding_window" not in said
        ):
            raise ValueError(
                "config.json has no layer_types: load the folder with "
                "Transformers, and write it with save_pretrained."
            )
    if SLIDING in kinds and not window:
        raise ValueError(
            "Layers have a window, but sliding_window, its length, is missing "
            f"or not used: {ADVICE}."
        )
    turned = [True] * layers
    if family == "smollm3":
        turned = said["no_rope_layers"]
    elif family == "cohere2" or (family == "exaone4" and window):
        turned = [kind == SLIDING for kind in kinds]
    for name, listed in (("layer_types", kinds), ("no_rope_layers", turned)):
        if len(listed) != layers:
            raise ValueError(
                f"{name} has {len(listed)} entries, but num_hidden_layers is "
                f"{layers}: {ADVICE}."
            )
    base = {kind: _base(config, kind, d_head) for kind in {*kinds}}
    bases = tuple(
        base[kind] if turns else None
        for kind, turns in zip(kinds, turned, strict=True)
    )
    return bases, tuple(window if kind == SLIDING else None for kind in kinds)


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
    both = rope.get(SLIDING) and rope.get(FULL)
    flat = family not in BY_KIND or not both
    if not flat:
        rope = rope[kind]
    base = rope.get("rope_theta")
    plain = rope.get("rope_type", rope.get("type", "default")) == "default"
    # In Transformers, all layers of olmo3 have this base with a flat table.
    known = (family, base, plain) == ("olmo3", 5e5, True)
    if flat and family in BY_KIND and not known:
        raise ValueError(
            f"{family} has a rotation for {FULL} and one for {SLIDING}, so "
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
            f"{ADVICE}."
        )
    if plain:
        return base
    if family == "phi3":
        raise ValueError(
            "phi3 has no rotation of the type 'llama3' in Transformers: "
            f"{ADVICE}."
        )
    length = rope.get(LENGTH)
    if flat:
        length = config.get(LENGTH, length)
    if length is None:
        raise ValueError(f"The rotation has no {LENGTH}: {ADVICE}.")
    rope = dict(rope) | {LENGTH: length}
    return tuple(llama_turns({"rope_parameters": rope}, d_head).tolist())


def _activation(said: Mapping[str, Any]) -> str:
    """Return the activation of the gate."""
    both = {said["hidden_act"], said["hidden_activation"]} - {None}
    if len(both) > 1:
        raise ValueError(
            "Two activations, hidden_act and hidden_activation, differ: "
            f"{ADVICE}."
        )
    return both.pop()


def _biases(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the projections that have a bias."""
    parts = PARTS
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
            f"missing or smaller: {ADVICE}."
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
