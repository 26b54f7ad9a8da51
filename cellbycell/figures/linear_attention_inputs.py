"""Numbers and small models with which *Attention without softmax* is asked."""

import math

import numpy as np


def sines(*shape, seed=0):
    """Return numbers from -1 to 1 that look random, the same everywhere."""
    n = np.arange(math.prod(shape)) + 1.0 + 1000 * seed
    return np.resize(np.sin(n**2), shape).astype("float32")


def unit_rows(x):
    """Return rows x (..., K) divided by their norm, in NumPy."""
    return x / np.sqrt((x**2).sum(-1, keepdims=True))


def made_up_weights(model):
    """Fill a PyTorch model; return its weights in both frameworks.

    Returns two dicts, {name: tensor}, of PyTorch and of TensorFlow; the
    numbers are drawn, the same each time.
    """
    import tensorflow as tf
    import torch

    rng = np.random.default_rng(0)
    for name, weight in model.named_parameters():
        wide = 0.6 if "conv" in name else 0.3
        drawn = wide * rng.normal(size=weight.shape)
        weight.data = torch.tensor(drawn, dtype=torch.float32)
    weights = {name: w.detach() for name, w in model.state_dict().items()}
    return weights, {
        name: tf.constant(w.numpy()) for name, w in weights.items()
    }


def small_qwen35():
    """Return the config of a Qwen 3.5, each key head for 3 value heads."""
    from transformers import Qwen3_5TextConfig

    rope = dict(rope_type="default", rope_theta=1e4, mrope_section=[1, 1, 0])
    small = dict(vocab_size=13, hidden_size=24, intermediate_size=20)
    small |= dict(num_hidden_layers=4, head_dim=8, max_position_embeddings=64)
    small |= dict(num_attention_heads=6, num_key_value_heads=2)
    small |= dict(linear_num_key_heads=2, linear_num_value_heads=6)
    small |= dict(linear_key_head_dim=4, linear_value_head_dim=5)
    small |= dict(rope_parameters=rope | {"partial_rotary_factor": 0.5})
    small |= dict(pad_token_id=None, bos_token_id=None, eos_token_id=None)
    return Qwen3_5TextConfig(**small, attn_implementation="eager")
