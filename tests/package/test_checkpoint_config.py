"""What a config.json says of a Llama: what is read, and what is refused."""

import json

import numpy as np
import pytest
from folders import CONFIG, LENGTH, STRETCH

from cellbycell.checkpoint import llama_config, llama_turns
from cellbycell.entries import (
    checked_config,
    count,
    flag,
    number,
    several,
    table,
)
from cellbycell.llama_configs import HARMLESS, ROTATION

pytestmark = pytest.mark.xdist_group("frameworks")


# Of SmolLM2, whose folder the chapter names.
SMOL = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "silu",
    "initializer_range": 0.041666666666666664,
    "is_llama_config": True,
    "mlp_bias": False,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_interleaved": False,
    "rope_scaling": None,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers.js_config": {"dtype": "q4"},
    "transformers_version": "4.40.1",
    "use_cache": True,
}


@pytest.mark.parametrize(
    "change",
    [
        {},
        SMOL,
        {"num_key_value_heads": None, "head_dim": None},
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}},
        {"rope_parameters": None, "rope_scaling": {}},
        {"quantization_config": None},
        {"eos_token_id": [1, 2], "pad_token_id": None},
        {"rms_norm_eps": 1, "partial_rotary_factor": 1},
    ],
)
def test_a_config_of_a_llama_is_read(change):
    found = llama_config(CONFIG | change)
    assert (found.num_heads, found.d_head, len(found.base)) == (6, 4, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "gemma3_text"},
        {"model_type": None},
        {"hidden_act": "gelu"},
        {"hidden_act": None},
        {"attention_bias": True},
        {"attention_bias": 0},
        {"mlp_bias": True},
        {"is_causal": False},
        {"is_causal": None},
        {"partial_rotary_factor": 0.5},
        {"quantization_config": {"bits": 4}},
        {"transformers_weights": "other.safetensors"},
        {"sliding_window": 4},
        {"num_hidden_layers": 2.0},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": 10**9},
        {"hidden_size": "24"},
        {"hidden_size": -24},
        {"hidden_size": 25},
        {"vocab_size": True},
        {"vocab_size": None},
        {"vocab_size": 10**30},
        {"head_dim": 4.0},
        {"num_key_value_heads": [3]},
        {"rms_norm_eps": "1e-5"},
        {"rms_norm_eps": None},
        {"rms_norm_eps": -1e-6},
        {"rms_norm_eps": float("nan")},
        {"rms_norm_eps": True},
        {"tie_word_embeddings": "false"},
        {"tie_word_embeddings": 1},
        {"rope_theta": None},
        {"rope_theta": "1e4"},
        {"rope_theta": float("inf")},
        {"rope_scaling": "llama3"},
        {"rope_scaling": [1]},
        {"max_position_embeddings": 64.0},
        {LENGTH: None},
        {"eos_token_id": "2"},
        {"eos_token_id": [1, None]},
        {"dtype": "int8"},
        {"architectures": "LlamaForCausalLM"},
    ],
    ids=json.dumps,
)
def test_a_wrong_entry_is_named_with_its_value(change):
    [(name, value)] = change.items()
    with pytest.raises(ValueError) as caught:
        llama_config(CONFIG | change)
    said = str(caught.value)
    assert said.startswith(f"{name} is {value!r}"), said
    assert ": compare" in said or "Transformers" in said or "see" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rope_type": "yarn"}, "rope_type is 'yarn', and has to be 'defa"),
        ({"type": "linear"}, "type is 'linear'"),
        ({"rope_type": None}, "rope_type is None"),
        ({"rope_theta": "5e5"}, "rope_theta is '5e5'"),
        ({"rope_theta": None}, "rope_theta is None"),
        ({"rope_theta": 0}, "rope_theta is 0"),
        ({"factor": "8"}, "factor is '8'"),
        ({"factor": None}, "factor is None"),
        ({"factor": False}, "factor is False"),
        ({"low_freq_factor": 0}, "low_freq_factor is 0"),
        ({LENGTH: 64.0}, f"{LENGTH} is 64.0"),
        ({"mrope_section": [1]}, "mrope_section is [1], but this loader"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"full_attention": {"rope_theta": 1e4}}, "full_attention is {"),
    ],
)
@pytest.mark.parametrize("place", ["rope_parameters", "rope_scaling"])
def test_a_wrong_entry_of_the_rotation_is_named(place, change, says):
    with pytest.raises(ValueError) as caught:
        llama_config(CONFIG | {place: STRETCH | change})
    assert str(caught.value).startswith(f"{place}.{says}")


@pytest.mark.parametrize(
    "change", [{"rope_theta": 0.5}, STRETCH | {"factor": 0.5, LENGTH: 2}]
)
def test_a_pair_turns_by_a_radian_at_most(change):
    with pytest.raises(ValueError, match="rope_theta or factor is below 1"):
        llama_config(CONFIG | {"rope_parameters": change})


def test_a_stretch_needs_its_factors_in_their_order():
    for name in ("factor", "low_freq_factor", "high_freq_factor"):
        rope = {k: v for k, v in STRETCH.items() if k != name}
        with pytest.raises(ValueError, match=f"has no {name}"):
            llama_turns({"rope_scaling": rope}, 8)
    for low in (4.0, 9):
        rope = STRETCH | {"low_freq_factor": low}
        with pytest.raises(ValueError, match=f"low_freq_factor is {low}"):
            llama_turns({"rope_parameters": rope}, 8)


@pytest.mark.parametrize(
    "name", ["model_type", "vocab_size", "hidden_size", "num_hidden_layers"]
)
def test_an_entry_that_is_missing_is_named(name):
    kept = {k: v for k, v in CONFIG.items() if k != name}
    with pytest.raises(ValueError, match=f"has no {name}"):
        llama_config(kept)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_key_value_heads": 4}, "4 key heads for 6 heads"),
        ({"head_dim": 3}, "of width 3"),
        ({"hidden_size": 25}, "hidden_size is 25, no multiple of 6 heads"),
    ],
)
def test_heads_have_to_fit(change, says):
    with pytest.raises(ValueError, match=says):
        llama_config(CONFIG | change)


def test_a_table_of_ones_own():
    entries = {
        "layers": count(most=9),
        "scale": number(1.0, above=0),
        "kinds": several(flag(), None),
        "inner": table({"size": count(3)}, None),
    }
    found = checked_config({"layers": 2, "inner": {}}, entries)
    assert found == {
        "layers": 2,
        "scale": 1.0,
        "kinds": None,
        "inner": {"size": 3},
    }
    for config, says in (
        ({}, "has no layers"),
        ({"layers": 10}, "layers is 10, and has to be a whole number from 1"),
        ({"layers": 2, "scale": 10**400}, "scale is 1000"),
        ({"layers": 2, "kinds": [True, 1]}, r"kinds is \[True, 1\]"),
        ({"layers": 2, "inner": {"size": 0}}, "inner.size is 0"),
        ({"layers": 2, "inner": {"depth": 1}}, "inner.depth is 1"),
    ):
        with pytest.raises(ValueError, match=says) as caught:
            checked_config(config, entries)
        assert len(str(caught.value)) < 250


def test_the_defaults_of_a_table_are_allowed_by_it():
    for entry in {**ROTATION, **HARMLESS}.values():
        assert entry.allows(entry.default)


# How the rotation is spelled.


@pytest.mark.parametrize(
    "spelled",
    [
        {},
        {"rope_theta": 5e5},
        {"rope_parameters": {"rope_theta": 5e5}},
        {"rope_theta": 5e5, "rope_scaling": STRETCH},
        {"rope_parameters": STRETCH | {"rope_theta": 5e5, LENGTH: 16}},
        {"rope_scaling": STRETCH, "rope_parameters": {"rope_theta": 9.0}},
        {"rope_scaling": STRETCH | {LENGTH: 16}, LENGTH: 32},
        {"rope_scaling": STRETCH | {"type": "default"}},
    ],
)
def test_the_rotation_is_read_as_transformers_does(spelled):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama import modeling_llama

    spelled = json.dumps({"max_position_embeddings": 64} | spelled)
    heads = {"hidden_size": 16, "num_attention_heads": 1}
    config = transformers.LlamaConfig(**heads, **json.loads(spelled))
    wanted = modeling_llama.LlamaRotaryEmbedding(config).inv_freq
    assert np.allclose(llama_turns(json.loads(spelled), 16), wanted, 1e-5)
