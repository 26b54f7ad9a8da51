"""The chapter on Llama: its checkers, and its loader.

test_exercises.py tries each checker on the stub and the solution.
"""

import json

import numpy as np
import pytest
import torch

LENGTH = "original_max_position_embeddings"

pytestmark = pytest.mark.xdist_group("frameworks")


def count(
    c,
    matrices=3,
    norms=2,
    last=1,
    few="num_key_value_heads",
    tables=0,
    wide=0,
):
    wide = wide or c["num_attention_heads"] * c["head_dim"]
    narrow = c[few] * c["head_dim"]
    d, layers = c["hidden_size"], c["num_hidden_layers"]
    layer = 2 * d * (wide + narrow) + norms * d
    layer += matrices * d * c["intermediate_size"]
    tables = tables or 2 - c["tie_word_embeddings"]
    return tables * c["vocab_size"] * d + layers * layer + last * d


WRONG = {
    "llama_parameters": {
        ": tied": lambda c: count(c, tables=2),
        "not tied": lambda c: count(c, tables=1),
        "key heads": lambda c: count(c, few="num_attention_heads"),
        "three matrices": lambda c: count(c, matrices=2),
        "a last one": lambda c: count(c, norms=0, last=0),
        "has two norms.": lambda c: count(c, norms=1),
        "last norm": lambda c: count(c, last=0),
        "one layer": lambda c: count(c | {"num_hidden_layers": 1}),
        "as wide as the model": lambda c: count(
            c | {"head_dim": c["hidden_size"] // c["num_attention_heads"]}
        ),
        "as wide as all heads": lambda c: count(c, wide=c["hidden_size"]),
        "add up": lambda c: 7,
    },
    "to_checkpoint": {
        "transpose": lambda k: k.reshape(-1, len(k)),
        "torn": lambda k: k.swapaxes(1, 2).reshape(len(k), -1).T,
        "opposite": lambda k: k[:, ::-1].reshape(len(k), -1).T,
        "for pairs": lambda k: (
            k.reshape(*k.shape[:2], 2, -1).swapaxes(2, 3).reshape(len(k), -1).T
        ),
        "row c K + k": lambda k: 2 * k.reshape(len(k), -1).T,
    },
    "larger_base": {
        "d_head / 2 - 1": lambda b, f, d: b * f,
        "upside down": lambda b, f, d: b * f ** ((d - 2) / d),
        "not i / d_head": lambda b, f, d: b * f ** (2 * d / (d - 2)),
        "faster": lambda b, f, d: b * f ** (-d / (d - 2)),
        "the frequency": lambda b, f, d: b ** ((2 - d) / d) / f,
        "not changed": lambda b, f, d: b,
        "is the factor": lambda b, f, d: b + f,
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


def test_an_unknown_switch_is_refused(chapter):
    sizes = chapter("llama")["llama_sizes"]
    config = json.loads(
        (chapter("llama")["folder"] / "config.json").read_text()
    )
    assert sizes(config)["num_heads"] == 6
    assert sizes(config | {"num_key_value_heads": None})["key_heads"] == 6
    assert sizes(config | {"head_dim": None})["d_head"] == 4
    for change in (
        {"hidden_act": "relu"},
        {"mlp_bias": True},
        {"is_causal": False},
        {"quantization_config": {"load_in_4bit": True}},
        {"transformers_weights": "other.safetensors"},
    ):
        with pytest.raises(ValueError, match=next(iter(change))):
            sizes(config | change)
    for name in ("vocab_size", "hidden_size", "model_type"):
        kept = {k: v for k, v in config.items() if k != name}
        with pytest.raises(ValueError, match=f"has no {name}"):
            sizes(kept)


def test_the_rotation_is_read_as_transformers_does(chapter):
    """rope_scaling goes before rope_parameters; a length may be missing."""
    turns = chapter("llama")["llama_turns"]
    stretch = {"rope_type": "llama3", "factor": 8.0}
    stretch |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    both = {"rope_scaling": stretch, "rope_parameters": {"rope_theta": 5e5}}
    both["max_position_embeddings"] = 64
    wanted = turns({"rope_scaling": stretch | {LENGTH: 64}}, 8)
    assert np.allclose(turns(both, 8), wanted)
    assert np.allclose(turns(both | {LENGTH: 4096}, 8)[2], 1e-2)
    assert not np.allclose(wanted[2], 1e-2)
    for change, says in (
        ({"low_freq_factor": 5.0}, "above high_freq_factor"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor too much"),
    ):
        with pytest.raises(ValueError, match=says):
            turns({"rope_parameters": stretch | change | {LENGTH: 64}}, 8)


def test_heads_wider_than_the_model(chapter):
    """Rows of the queries' matrix are not the width of the model."""
    book = chapter("llama")
    model = book["Llama"](11, 1, 10, 4, 2, 6, 7)
    model_tf = book["LlamaTF"](11, 1, 10, 4, 2, 6, 7)
    book["draw_model"](model, 0)
    book["draw_model_tf"](model_tf, 0)
    ids = torch.arange(5)[None]
    found = model(ids).detach().numpy()
    assert np.allclose(found, model_tf(ids.numpy()), atol=1e-4)


def test_half_precision_runs(chapter):
    book = chapter("llama")
    half = book["load_llama"](book["folder"]).bfloat16()
    found = half(book["token_ids"])
    assert found.dtype == torch.bfloat16
    wanted = book["their_logits"]
    assert (found.float() - wanted).abs().max() < 0.2
