"""What a config.json of each family says: what is read and what refused."""

import json

import pytest
from family_folders import FULL, PLAIN, SLIDING, STRETCHED

from cellbycell.families import FAMILIES, NOT_COVERED, decoder_config

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.xdist_group("frameworks")


def default_config(family):
    """Return the config.json of a family as Transformers has it, a dict."""
    return json.loads(
        transformers.AutoConfig.for_model(family).to_json_string()
    )


def refusal(said):
    """Return what is said against a config, or None."""
    try:
        decoder_config(said)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_config_of_a_family_is_known(family):
    said = default_config(family)
    config = decoder_config(said)
    assert len(config.bases) == said["num_hidden_layers"]
    assert config.num_heads == said["num_attention_heads"]


# Fields that change the numbers, if they have these values.
REFUSED = [
    ("cohere", {"use_qk_norm": True}, "use_qk_norm"),
    ("llama", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping"),
    ("llama", {"logit_scale": 0.5}, "logit_scale"),
    ("llama", {"something_new": 0.1}, "something_new"),
    ("llama", {"something_new": True}, "something_new"),
    ("llama", {"something_new": False}, "something_new"),
    ("llama", {"is_causal": False}, "is_causal"),
    ("llama", {"is_causal": None}, "is_causal"),
    ("gemma2", {"hidden_act": "silu"}, "Two activations"),
    ("gemma", {"hidden_activation": "silu"}, "Two activations"),
    ("smollm3", {"layer_types": [SLIDING] * 36}, "a window"),
    ("gemma2", {"sliding_window": None}, "a window"),
    (
        "qwen2",
        {"rope_scaling": {"rope_type": "llama3", "factor": 4.0}},
        "rope_scaling",
    ),
    (
        "gemma3_text",
        {"rope_parameters": {"rope_theta": 1e6}},
        "must have both",
    ),
    (
        "llama",
        {"rope_parameters": {FULL: {"rope_theta": 1e4}}},
        f"rope_parameters.{FULL}",
    ),
    ("olmo3", {"rope_parameters": STRETCHED}, "must have both"),
    ("gemma", {"use_bidirectional_attention": True}, "bidirectional"),
    ("qwen3_moe", {"mlp_only_layers": [1]}, "mlp_only_layers"),
    ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
    ("gemma3_text", {"attn_logit_softcapping": 50.0}, "softcapping"),
    ("llama", {"hidden_act": "gelu"}, "gelu"),
    ("llama", {"rms_norm_eps": None, "model_type": "vicuna"}, "vicuna"),
    ("gemma2", {"layer_types": None}, "layer_types"),
    ("qwen2", {"layer_types": ["linear_attention"] * 32}, "linear_attention"),
    ("phi3", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ("phi3", {"rope_parameters": STRETCHED}, "phi3"),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}},
        "yarn",
    ),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
        "partial_rotary_factor",
    ),
    ("llama", {"rope_parameters": {"rope_type": "default"}}, "rope_theta"),
    (
        "llama",
        {"rope_parameters": None, "rope_theta": 1e4}
        | {"rope_scaling": {"type": "linear", "factor": 2.0}},
        "linear",
    ),
    # What was read as something else, or ended in another error.
    (
        "olmo3",
        {"rope_parameters": PLAIN | {"rope_theta": 1e6}},
        "must have both",
    ),
    ("olmo3", {"rope_parameters": None, "rope_theta": 1e4}, "must have both"),
    ("granite", {"logits_scaling": 0}, "logits_scaling"),
    ("granite", {"attention_multiplier": "0.4"}, "attention_multiplier"),
    ("mixtral", {"num_local_experts": 0}, "num_local_experts"),
    ("mixtral", {"num_local_experts": 1}, "routed to 2 experts"),
    ("mixtral", {"num_experts": None}, "num_experts"),
    ("smollm3", {"no_rope_layers": None}, "no_rope_layers"),
    ("smollm3", {"no_rope_layers": [1, 0]}, "no_rope_layers has 2 entries"),
    ("gemma3_text", {"rope_parameters": {SLIDING: None}}, "must have both"),
    ("gemma3_text", {"rope_parameters": {SLIDING: 1e4, FULL: 1e6}}, SLIDING),
    ("llama", {"rope_parameters": "default"}, "rope_parameters"),
    ("llama", {"rope_parameters": PLAIN | {"rope_theta": "5e5"}}, "theta"),
    ("llama", {"rope_parameters": PLAIN | {"rope_theta": 1e-5}}, "radian"),
    ("llama", {"rope_parameters": STRETCHED | {"factor": 0.5}}, "radian"),
    ("llama", {"num_hidden_layers": 2.0}, "num_hidden_layers"),
    ("llama", {"num_hidden_layers": True}, "num_hidden_layers"),
    ("llama", {"num_key_value_heads": 5}, "do not fit"),
    ("llama", {"head_dim": 3}, "do not fit"),
    ("llama", {"hidden_size": -24}, "hidden_size"),
    ("llama", {"rms_norm_eps": "1e-6"}, "rms_norm_eps"),
    ("llama", {"tie_word_embeddings": None}, "tie_word_embeddings"),
    ("gemma2", {"final_logit_softcapping": 0.0}, "final_logit_softcapping"),
    ("gemma2", {"layer_types": SLIDING}, "layer_types"),
    ("qwen2", {"use_sliding_window": "no"}, "use_sliding_window"),
    ("llama", {"model_type": ["llama"]}, "model_type"),
    ("llama", {"pad_token_id": 32000}, "pad_token_id"),
    ("seed_oss", {"residual_dropout": 6}, "residual_dropout"),
    ("smollm3", {"head_dim": None}, "head_dim"),
]


@pytest.mark.parametrize(("family", "changes", "says"), REFUSED)
def test_what_is_wrong_in_a_config_is_named(family, changes, says):
    said = default_config(family)
    assert refusal(said) is None
    assert says in refusal(said | changes)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("llama", "rms_norm_eps"),
        ("llama", "num_attention_heads"),
        ("llama", "num_key_value_heads"),
        ("llama", "num_hidden_layers"),
        ("gemma", "hidden_act"),
        ("gemma2", "hidden_activation"),
        ("gemma2", "attn_logit_softcapping"),
        ("gemma2", "final_logit_softcapping"),
        ("mistral", "sliding_window"),
        ("qwen3", "use_sliding_window"),
        ("qwen3_moe", "norm_topk_prob"),
        ("phi3", "pad_token_id"),
        ("mixtral", "num_experts_per_tok"),
    ],
)
def test_a_field_that_is_missing_is_named(family, name):
    said = default_config(family)
    del said[name]
    assert name in refusal(said)


@pytest.mark.parametrize("family", NOT_COVERED)
def test_a_family_that_is_not_covered_exists_and_is_refused(family):
    assert NOT_COVERED[family] in refusal(default_config(family))


def test_the_older_spelling_of_the_base_is_read():
    said = default_config("llama")
    said["rope_parameters"] |= {"rope_theta": 5e5}
    older = {k: v for k, v in said.items() if k != "rope_parameters"}
    older |= {"rope_theta": 5e5, "rope_scaling": None}
    assert decoder_config(older) == decoder_config(said)


def test_a_missing_bias_of_seed_oss_is_the_default_of_transformers():
    said = default_config("seed_oss")
    config = decoder_config(said)
    del said["attention_bias"]
    assert config.biases == ("q", "k", "v")
    assert decoder_config(said) == config
