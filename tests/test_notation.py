"""Compute every number that book/notation.md states, and compare."""

import re
from functools import cache

import numpy as np
import pytest

from tests.notebooks import BOOK
from tests.prose import check_prose, claims

pytestmark = pytest.mark.xdist_group("frameworks")
PAGE = BOOK / "notation.md"
NUMBERS = {}


def number(function):
    """Add a function to those whose names the page may use."""
    NUMBERS[function.__name__] = function
    return function


def masks():
    """Return the causal mask and the key mask of the page's example."""
    causal_mask = np.tril(np.ones((5, 5), bool))
    key_mask = np.array([True, True, True, False, False])
    return causal_mask, key_mask


@number
def pairs_in_all():
    return masks()[0].size


@number
def pairs_causal():
    return masks()[0].sum()


@number
def pairs_joined():
    causal_mask, key_mask = masks()
    return (causal_mask & key_mask).sum()


# What True means


@number
def weight_sdpa():
    import torch
    from torch.nn import functional as F

    query, values = torch.zeros(1, 2), torch.eye(2)
    mask = torch.tensor([[True, False]])
    output = F.scaled_dot_product_attention(
        query, values, values, attn_mask=mask
    )
    return output[0, 0]


@number
def weight_mha():
    import torch

    layer = torch.nn.MultiheadAttention(2, 1, batch_first=True)
    query, values = torch.zeros(1, 1, 2), torch.eye(2)[None]
    mask = torch.tensor([[True, False]])
    _, weights = layer(query, values, values, key_padding_mask=mask)
    return weights[0, 0, 0].item()


def keras_scores(attention_mask):
    import keras

    layer = keras.layers.MultiHeadAttention(num_heads=1, key_dim=2)
    query, values = np.zeros((1, 1, 2)), np.eye(2)[None]
    _, scores = layer(
        query,
        values,
        attention_mask=attention_mask,
        return_attention_scores=True,
    )
    return scores[0, 0, 0]


@number
def weight_keras():
    return keras_scores(np.array([[[True, False]]]))[0]


@number
def keras_scores_row_sum():
    return sum(keras_scores(None))


# The order of the arguments


def keras_attention(*args, **kwargs):
    import keras

    layer = keras.layers.MultiHeadAttention(
        1, 1, use_bias=False, kernel_initializer="ones"
    )
    return layer(*args, **kwargs)[0, 0, 0]


def column(*numbers):
    return np.array(numbers, "float32")[None, :, None]


@number
def order_right():
    import torch
    from torch.nn import functional as F

    query, key, value = column(1), column(2, 0), column(5, 7)
    by_name = keras_attention(query=query, key=key, value=value)
    in_turn = F.scaled_dot_product_attention(
        *map(torch.from_numpy, (query, key, value))
    )
    assert abs(float(by_name) - float(in_turn)) < 1e-6
    return by_name


@number
def order_wrong():
    query, key, value = column(1), column(2, 0), column(5, 7)
    return keras_attention(query, key, value)


# The width of a head


@number
def torch_parameters():
    import torch

    layer = torch.nn.MultiheadAttention(32, 4)
    return sum(weight.numel() for weight in layer.parameters())


def keras_parameters(key_dim):
    import keras

    layer = keras.layers.MultiHeadAttention(4, key_dim=key_dim)
    layer.build(*3 * [(None, 5, 32)])
    return layer.count_params()


@number
def keras_parameters_key_dim_d_head():
    return keras_parameters(8)


@number
def keras_parameters_key_dim_d_model():
    return keras_parameters(32)


# Layer normalisation


@number
def layer_norm_epsilon_torch():
    import torch

    return torch.nn.LayerNorm(3).eps


@number
def layer_norm_epsilon_keras():
    import keras

    return keras.layers.LayerNormalization().epsilon


@number
def layer_norm_small_torch():
    import torch

    return torch.nn.LayerNorm(3)(torch.tensor([0.01, 0.02, 0.03]))[-1].item()


@number
def layer_norm_small_keras():
    import keras

    row = np.array([[0.01, 0.02, 0.03]], "float32")
    return keras.layers.LayerNormalization()(row)[0, -1]


# The layout of weights


@number
def linear_first_axis_torch():
    import torch

    return torch.nn.Linear(3, 5).weight.shape[0]


@number
def linear_first_axis_keras():
    import keras

    layer = keras.layers.Dense(5)
    layer.build((None, 3))
    return layer.kernel.shape[0]


# Sines and cosines


def layouts():
    """Return a table of positions in both layouts, (10, 6) each."""
    wavelengths = 10000 ** (np.arange(0, 6, 2) / 6)
    angles = np.arange(10)[:, None] / wavelengths
    in_turn = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(10, 6)
    in_halves = np.concatenate([np.sin(angles), np.cos(angles)], -1)
    return in_turn, in_halves


@number
def second_number_in_turn():
    return layouts()[0][1, 1]


@number
def second_number_in_halves():
    return layouts()[1][1, 1]


@number
def layouts_differ_after_sorting():
    in_turn, in_halves = layouts()
    in_order = np.concatenate([in_turn[:, 0::2], in_turn[:, 1::2]], -1)
    return abs(in_order - in_halves).max()


# How an embedding is drawn


def torch_table():
    import torch

    torch.manual_seed(0)
    return torch.nn.Embedding(1000, 512).weight.detach().numpy()


def keras_table():
    import keras

    keras.utils.set_random_seed(0)
    layer = keras.layers.Embedding(1000, 512)
    layer.build()
    return layer.get_weights()[0]


@number
def embedding_length_torch():
    return np.linalg.norm(torch_table(), axis=-1).mean()


@number
def embedding_std_torch():
    return torch_table().std().round(2)


@number
def embedding_length_keras():
    return np.linalg.norm(keras_table(), axis=-1).mean()


@number
def embedding_limit_keras():
    return abs(keras_table()).max()


# Ids that do not exist


def outcome(lookup, token_id):
    """Say what a lookup in five rows makes of an id, in the page's words."""
    try:
        row = np.asarray(lookup([token_id]))[0]
    except Exception as error:
        return f"`{type(error).__name__}`"
    if not row.any():
        return "zeros"
    return {1: "the first row", 5: "the last row"}[int(row[0])]


@cache
def lookups():
    """Return a dict: call, as the page names it -> its two outcomes."""
    import keras
    import tensorflow as tf
    import torch
    from torch.nn import functional as F

    table = np.repeat(np.arange(1.0, 6.0, dtype="float32")[:, None], 3, 1)
    rows, rows_tf = torch.from_numpy(table), tf.constant(table)
    compiled = tf.function(tf.gather, jit_compile=True)
    layer = keras.layers.Embedding(5, 3)
    layer.build()
    layer.set_weights([table])
    calls = {
        "`table[ids]`, PyTorch": lambda ids: rows[torch.tensor(ids)],
        "`nn.Embedding`": lambda ids: F.embedding(torch.tensor(ids), rows),
        "`F.one_hot`": lambda ids: F.one_hot(torch.tensor(ids), 5).float(),
        "`tf.gather` on the CPU": lambda ids: tf.gather(rows_tf, ids),
        "`tf.gather`, compiled by XLA": lambda ids: compiled(rows_tf, ids),
        "`keras.layers.Embedding`": lambda ids: layer(tf.constant(ids)),
        "`tf.one_hot`": lambda ids: tf.one_hot(ids, 5),
    }
    return {
        name: [outcome(lookup, token_id) for token_id in (-1, 5)]
        for name, lookup in calls.items()
    }


@number
def lookups_in_all():
    return sum(map(len, lookups().values()))


@number
def lookups_that_raise():
    return sum(
        fate.startswith("`") for fates in lookups().values() for fate in fates
    )


def test_every_name_on_the_page_is_a_function_here_and_the_other_way_round():
    names = {expression for _, expression in claims(PAGE.read_text("utf-8"))}
    assert names == set(NUMBERS), (
        f"book/notation.md uses the names {sorted(names - set(NUMBERS))}, "
        "which no function here computes: write them, marked @number. "
        f"It does not use {sorted(set(NUMBERS) - names)}: remove them here."
    )


def test_numbers_on_the_page_are_what_the_libraries_give():
    namespace = {name: float(compute()) for name, compute in NUMBERS.items()}
    messages = check_prose(PAGE.read_text("utf-8"), namespace)
    assert not messages, "\n" + "\n".join(messages)


def test_ids_that_do_not_exist_fare_as_the_page_says():
    page = PAGE.read_text("utf-8")
    for call, (negative, large) in lookups().items():
        row = f"| {call} | {negative} | {large} |"
        assert row in page, f"book/notation.md should have the row\n{row}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A number 3 alone.", "computed by nothing"),
        ("A wrong 16,801<!--= keras -->.", "correct the number"),
        ("An unknown 3<!--= nobody -->.", "NameError"),
    ],
)
def test_a_number_that_is_not_true_is_rejected(text, says):
    messages = check_prose(text, {"keras": 16800})
    assert len(messages) == 1 and re.search(says, messages[0])
