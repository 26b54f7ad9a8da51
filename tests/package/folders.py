"""A small Llama's config, and folders of its weights, which tests change."""

import json

import numpy as np
import pytest

from cellbycell.checkpoint import llama_config, llama_shapes, read_checkpoint

LENGTH = "original_max_position_embeddings"
STRETCH = {"rope_type": "llama3", "factor": 8.0}
STRETCH |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONFIG = {
    "model_type": "llama",
    "vocab_size": 11,
    "hidden_size": 24,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "max_position_embeddings": 64,
}


def drawn(config=CONFIG):
    """Return weights of ordinary size for a config."""
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(1, 0.1, shape).astype(np.float32)
        if len(shape) == 1
        else rng.normal(0, 0.5, shape).astype(np.float32)
        for name, shape in llama_shapes(llama_config(config)).items()
    }


def written(where, config=CONFIG, weights=None):
    """Write a folder; return it."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    where.mkdir(parents=True, exist_ok=True)
    (where / "config.json").write_text(json.dumps(config))
    weights = drawn() if weights is None else weights
    save_file(weights, where / "model.safetensors")
    return where


def divided(where, names=("1.safetensors", "2.safetensors")):
    """Divide a folder's weights among two files; return its index."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    _, weights = read_checkpoint(where)
    (where / "model.safetensors").unlink()
    places = {name: names[i % 2] for i, name in enumerate(weights)}
    for file in names:
        own = {k: w for k, w in weights.items() if places[k] == file}
        save_file(own, where / file)
    index = where / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index
