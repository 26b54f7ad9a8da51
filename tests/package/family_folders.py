"""Folders of small models of twenty families, which Transformers writes."""

import json

import numpy as np
import pytest

from cellbycell.families import load_decoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytorch = pytest.importorskip("cellbycell.pytorch")

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SLIDING, FULL = "sliding_attention", "full_attention"
PLAIN = {"rope_type": "default", "rope_theta": 5e5}
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
SIZES = {
    "vocab_size": 13,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
ONE_WINDOW = {"sliding_window": 3, "layer_types": [SLIDING, FULL]}
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4}
OWN = {
    "mistral": {"sliding_window": 3},
    "gemma2": ONE_WINDOW | {"query_pre_attn_scalar": 9},
    "gemma3_text": ONE_WINDOW | {"query_pre_attn_scalar": 9},
    "granite": {
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.4,
        "residual_multiplier": 0.6,
        "logits_scaling": 2.0,
    },
    "olmo3": ONE_WINDOW | {"rope_parameters": PLAIN},
    "smollm3": {"no_rope_layers": [1, 0]},
    "exaone4": ONE_WINDOW,
    "mixtral": EXPERTS,
    "qwen3_moe": EXPERTS | {"moe_intermediate_size": 20},
    "cohere": {"logit_scale": 0.5},
    "cohere2": ONE_WINDOW | {"logit_scale": 0.5},
}
TOKEN_IDS = np.random.default_rng(0).integers(3, 13, (2, 9))


def save(family, folder, **changes):
    """Write the folder of a small model whose weights are all moved."""
    config = transformers.AutoConfig.for_model(
        family, **SIZES | OWN.get(family, {}) | changes
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        drawn = 0.3 * torch.randn(weight.shape, generator=generator)
        weight.data = drawn + (weight.data if weight.ndim == 1 else 0)
    model.save_pretrained(folder)


def change(folder, **changes):
    """Change entries of the config.json in a folder."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def theirs(folder):
    """Return the logits (B, T, N) of Transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        return model.eval()(torch.tensor(TOKEN_IDS)).logits.numpy()


def ours(folder):
    """Return the logits (B, T, N) of the decoder."""
    weights, config = load_decoder(folder)
    weights = {name: torch.tensor(w) for name, w in weights.items()}
    return pytorch.run_decoder(
        weights, torch.tensor(TOKEN_IDS), config
    ).numpy()


def agree(folder):
    return np.allclose(ours(folder), theirs(folder), atol=1e-4)
