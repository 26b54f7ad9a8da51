"""What libraries.md says of tokens and positions holds for the libraries."""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


def outcome(lookup, token_id):
    """Say what a lookup in five rows makes of an id, as the page does."""
    try:
        row = np.asarray(lookup([token_id]))[0]
    except Exception as error:
        return f"`{type(error).__name__}`"
    return {0: "zeros", 1: "the first row", 5: "the last row"}[int(row[0])]


def test_ids_that_do_not_exist(check_numbers, check_says):
    import keras
    import tensorflow as tf
    import torch
    from torch.nn import functional as F

    table = np.repeat(np.arange(1.0, 6.0, dtype="float32")[:, None], 3, 1)
    rows, rows_tf = torch.from_numpy(table), tf.constant(table)
    gather_xla = tf.function(tf.gather, jit_compile=True)
    layer = keras.layers.Embedding(5, 3)
    layer.build()
    layer.set_weights([table])
    layer_xla = tf.function(layer.call, jit_compile=True)
    outcomes = []
    for call, lookup in {
        "`table[ids]`, PyTorch": lambda ids: rows[torch.tensor(ids)],
        "`nn.Embedding`": lambda ids: F.embedding(torch.tensor(ids), rows),
        "`F.one_hot`": lambda ids: F.one_hot(torch.tensor(ids), 5),
        "`tf.gather` on the CPU": lambda ids: tf.gather(rows_tf, ids),
        "`tf.gather`, compiled by XLA": lambda ids: gather_xla(rows_tf, ids),
        "`keras.layers.Embedding`": lambda ids: layer(tf.constant(ids)),
        "`keras.layers.Embedding`, compiled by XLA": (
            lambda ids: layer_xla(tf.constant(ids))
        ),
        "`tf.one_hot`": lambda ids: tf.one_hot(ids, 5),
    }.items():
        negative, large = (outcome(lookup, token_id) for token_id in (-1, 5))
        check_says(f"| {call} | {negative} | {large} |")
        outcomes += [negative, large]
    check_numbers(
        lookups_in_all=len(outcomes),
        lookups_that_raise=sum("Error" in outcome for outcome in outcomes),
    )


def test_the_gradient_of_a_pads_row(check_numbers):
    import keras
    import tensorflow as tf
    import torch

    layer = torch.nn.Embedding(5, 3, padding_idx=0)
    layer(torch.tensor([0, 2])).sum().backward()
    keras_layer = keras.layers.Embedding(5, 3, mask_zero=True)
    keras_layer.build()
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(keras_layer(tf.constant([0, 2])))
    gradient = tape.gradient(total, keras_layer.embeddings.value)
    gradient = tf.convert_to_tensor(gradient).numpy()
    assert layer.weight.grad[2, 0] == gradient[2, 0] == 1
    check_numbers(
        pad_row_torch=layer.weight.grad[0, 0].item(),
        pad_row_keras=gradient[0, 0],
    )


def test_how_an_embedding_is_initialised(check_numbers):
    import keras
    import torch

    torch.manual_seed(0)
    table = torch.nn.Embedding(1000, 512).weight.detach().numpy()
    keras.utils.set_random_seed(0)
    layer = keras.layers.Embedding(1000, 512)
    layer.build()
    (table_keras,) = layer.get_weights()
    check_numbers(
        embedding_norm_torch=np.linalg.norm(table, axis=-1).mean(),
        embedding_std_torch=table.std().round(2),
        embedding_norm_keras=np.linalg.norm(table_keras, axis=-1).mean(),
        embedding_limit_keras=abs(table_keras).max(),
    )


def test_sines_and_cosines_in_turn_or_in_halves(check_numbers):
    angles = np.arange(10)[:, None] / 10000 ** (np.arange(0, 6, 2) / 6)
    sines, cosines = np.sin(angles), np.cos(angles)
    in_turn = np.stack([sines, cosines], -1).reshape(10, 6)
    in_halves = np.concatenate([sines, cosines], -1)
    in_order = np.concatenate([in_turn[:, 0::2], in_turn[:, 1::2]], -1)
    check_numbers(
        second_number_in_turn=in_turn[1, 1],
        second_number_in_halves=in_halves[1, 1],
        layouts_differ_after_sorting=abs(in_order - in_halves).max(),
    )
