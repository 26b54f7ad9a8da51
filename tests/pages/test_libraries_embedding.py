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


def turned_by(model, config):
    """Return [1, 0, 0, 0] at position one in a model of Transformers."""
    import torch

    (embedding,) = (n for n in dir(model) if n.endswith("RotaryEmbedding"))
    assert "rope_theta" in config.rope_parameters
    x = torch.eye(4)[None, None, :1].expand(1, 1, 2, 4)
    position_ids = torch.arange(2)[None]
    tables = getattr(model, embedding)(config)(x, position_ids=position_ids)
    return model.apply_rotary_pos_emb(x, x, *tables)[0][0, 0, 1]


def test_the_layout_of_rotary_positions(check_numbers, check_says):
    import keras
    import keras_hub
    import torch
    import torch.onnx.ops
    from transformers.models.cohere import modeling_cohere as cohere
    from transformers.models.ernie4_5 import modeling_ernie4_5 as ernie
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.llama import modeling_llama as llama

    x = torch.eye(4)[None, None, :1].expand(1, 1, 2, 4)
    angles = torch.arange(2.0)[:, None] * torch.tensor([1, 0.01])
    given = x, angles.cos(), angles.sin()
    ids, op = torch.arange(2)[None], torch.onnx.ops.rotary_embedding
    layer = keras_hub.layers.RotaryEmbedding(10000, sequence_axis=2)
    sines, cosines = gptj.create_sinusoidal_positions(2, 4).chunk(2, dim=-1)
    tables = sines[None], cosines[None]
    small = {"hidden_size": 4, "num_attention_heads": 1}
    turned = {
        "`torch.onnx.ops.rotary_embedding`": op(*given, position_ids=ids),
        "the same, `interleaved=True`": op(*given, ids, interleaved=True),
        "`keras_hub.layers.RotaryEmbedding`": layer(x.numpy(), positions=ids),
        "Llama": turned_by(llama, llama.LlamaConfig(**small)),
        "Cohere": turned_by(cohere, cohere.CohereConfig(**small)),
        "ERNIE 4.5": turned_by(
            ernie, ernie.Ernie4_5Config(**small, head_dim=4)
        ),
        "GPT-J": gptj.apply_rotary_pos_emb(x.transpose(1, 2), *tables),
    }
    pairs, halves = np.zeros((2, 4))
    pairs[:2] = halves[::2] = np.cos(1), np.sin(1)
    for call, vectors in turned.items():
        vector = np.asarray(vectors).reshape(-1, 4)[-1]
        layouts = {"pairs": pairs, "halves": halves}
        (name,) = (n for n, y in layouts.items() if np.allclose(vector, y))
        check_says(f"| {call} | {name} |")
    for layers in (keras.layers, torch.nn):
        assert not any("rotary" in name.lower() for name in dir(layers))
    check_numbers(
        second_number_of_pairs=pairs[1],
        second_number_of_halves=halves[1],
        base_of_llama=llama.LlamaConfig().rope_parameters["rope_theta"],
        base_of_cohere=cohere.CohereConfig().rope_parameters["rope_theta"],
        base_of_keras_hub=keras_hub.layers.RotaryEmbedding().max_wavelength,
    )
