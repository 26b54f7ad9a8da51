"""What libraries.md says of layers is what the libraries give."""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")
SMALL = {"dropout": 0.0, "batch_first": True, "dim_feedforward": 8}


def test_the_layout_of_weights(check_numbers, check_says):
    import keras
    import torch

    dense = keras.layers.Dense(5)
    dense.build((None, 3))
    first = torch.nn.Linear(3, 5).weight.shape[0]
    first_keras = dense.kernel.shape[0]
    check_numbers(
        linear_first_axis_torch=first, linear_first_axis_keras=first_keras
    )
    layout = {5: "(out, in)", 3: "(in, out)"}
    check_says(f"in PyTorch, which stores {layout[first]}")
    check_says(f"in Keras, which stores {layout[first_keras]}")


def test_the_names_of_a_llamas_weights(chapter, check_numbers):
    book = chapter("llama")
    theirs = [
        name.split(".")[-2]
        for name, _ in book["theirs"].model.layers[0].mlp.named_parameters()
    ]
    layer = book["backbone"].transformer_layers[0]
    hub = [
        variable.path.split("/")[-2]
        for variable in layer.variables
        if "_dense" in variable.path
    ]
    assert sorted(theirs) == ["down_proj", "gate_proj", "up_proj"]
    assert len(hub) == 3
    check_numbers(
        gate_in_transformers=theirs.index("gate_proj") + 1,
        gate_in_keras_hub=hub.index("feedforward_gate_dense") + 1,
    )


def test_how_a_linear_layer_is_initialised(check_numbers):
    import keras
    import torch

    keras.utils.set_random_seed(0)
    linear, dense = torch.nn.Linear(512, 512), keras.layers.Dense(512)
    dense.build((None, 512))
    weight, bias = (p.abs().max() for p in linear.parameters())
    weight_keras, bias_keras = (abs(w).max() for w in dense.get_weights())
    check_numbers(
        linear_largest_torch=weight.item(),
        linear_bias_torch=bias.item(),
        linear_largest_keras=weight_keras,
        linear_bias_keras=bias_keras,
    )


def test_the_epsilon_of_layer_normalisation(check_numbers):
    import keras
    import torch

    norm, norm_keras = torch.nn.LayerNorm(3), keras.layers.LayerNormalization()
    row = np.array([[0.01, 0.02, 0.03]], "float32")
    check_numbers(
        layer_norm_epsilon_torch=norm.eps,
        layer_norm_epsilon_keras=norm_keras.epsilon,
        layer_norm_small_torch=norm(torch.from_numpy(row))[0, -1].item(),
        layer_norm_small_keras=norm_keras(row)[0, -1],
    )


def test_the_epsilon_of_rms_norm(check_numbers):
    import keras
    import torch

    def epsilon(number):
        """Return what was added to the square of 0.0001 to give a number."""
        return 1e-8 / float(number) ** 2 - 1e-8

    row = np.full((1, 4), 1e-4, "float32")
    small = torch.nn.RMSNorm(4)(torch.from_numpy(row))[0, 0].item()
    small_keras = np.asarray(keras.layers.RMSNormalization()(row))[0, 0]
    small_of_ops = np.asarray(keras.ops.rms_normalization(row))[0, 0]
    check_numbers(
        rms_norm_epsilon_torch=epsilon(small),
        rms_norm_epsilon_keras=epsilon(small_keras),
        rms_norm_epsilon_of_ops_keras=epsilon(small_of_ops),
        rms_norm_small_torch=small,
        rms_norm_small_keras=small_keras,
        rms_norm_small_of_ops_keras=small_of_ops,
    )


def test_where_the_norm_of_a_layer_is(check_numbers):
    import torch

    def last_number(**order):
        """Return what a layer whose sub-layers give zeros makes of the 6."""
        layer = torch.nn.TransformerEncoderLayer(3, 1, **SMALL, **order)
        for part in (layer.self_attn.out_proj, layer.linear2):
            torch.nn.init.zeros_(part.weight)
            torch.nn.init.zeros_(part.bias)
        return layer(torch.tensor([[[1.0, 2.0, 6.0]]]))[0, 0, -1].item()

    layer = torch.nn.TransformerEncoderLayer(4, 2, **SMALL)
    encoder = torch.nn.TransformerEncoder(layer, 3)
    check_numbers(
        silent_post_norm=last_number(),
        silent_pre_norm=last_number(norm_first=True),
        final_norms_by_default=encoder.norm is not None,
    )


def test_layers_that_are_copies(check_numbers):
    import torch

    def kinds(encoder):
        """Return how many different first matrices the layers have."""
        return len({x.linear1.weight.sum().item() for x in encoder.layers})

    layer = torch.nn.TransformerEncoderLayer(4, 2, **SMALL)
    encoder = torch.nn.TransformerEncoder(layer, 3)
    check_numbers(
        layers_in_encoder=len(encoder.layers),
        different_layers_in_encoder=kinds(encoder),
        different_layers_in_transformer=kinds(
            torch.nn.Transformer(4, 2, 3, 1, **SMALL).encoder
        ),
    )


def test_what_an_encoder_gives_at_pads(check_numbers):
    import torch

    layer = torch.nn.TransformerEncoderLayer(4, 2, **SMALL)
    encoder = torch.nn.TransformerEncoder(layer, 1).eval()
    x, pads = torch.ones(1, 2, 4).cumsum(-1), torch.tensor([[False, True]])
    with torch.no_grad():
        output = encoder(x, src_key_padding_mask=pads)
    check_numbers(largest_at_pads_fast=output[0, 1].abs().max())


def test_which_mask_the_memory_gets(check_numbers):
    import torch

    pads = torch.tensor([[False, True]])
    source, target = torch.ones(1, 2, 4), torch.ones(1, 1, 4)

    def pad_weight(**more):
        """Return the weight of the pad in the one layer of a decoder."""
        model = torch.nn.Transformer(4, 2, 1, 1, **SMALL)
        attention = model.decoder.layers[0].multihead_attn
        given = {}
        attention.register_forward_pre_hook(
            lambda layer, args, options: given.update(options, args=args),
            with_kwargs=True,
        )
        model(source, target, src_key_padding_mask=pads, **more)
        options = given | {"need_weights": True}
        return attention(*options.pop("args"), **options)[1][0, 0, 1].item()

    check_numbers(
        pad_weight_without_memory_mask=pad_weight(),
        pad_weight_with_memory_mask=pad_weight(memory_key_padding_mask=pads),
    )


def test_a_causal_mask_that_is_promised(check_numbers):
    import keras
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerDecoderLayer(4, 2, **SMALL)
    everything = torch.zeros(2, 3, dtype=torch.bool)

    def positions_read(promise, **masks):
        """Return how many of three positions the first position reads."""
        x, memory = torch.randn(1, 2, 4), torch.randn(1, 3, 4)
        memory.requires_grad_()
        masks |= {"memory_mask": everything, "memory_is_causal": promise}
        layer(x, memory, **masks)[0, 0].square().sum().backward()
        return (memory.grad[0].abs().amax(dim=-1) > 0).sum()

    no_pads = torch.zeros(1, 3, dtype=torch.bool)
    _, weights = keras.layers.MultiHeadAttention(2, 2)(
        *(np.ones((1, 2, 4)), np.ones((1, 3, 4))),
        use_causal_mask=True,
        return_attention_scores=True,
    )
    check_numbers(
        positions_read_when_promised=positions_read(True),
        positions_read_without_promise=positions_read(False),
        positions_read_when_promised_with_pads=positions_read(
            True, memory_key_padding_mask=no_pads
        ),
        positions_read_keras_causal=(np.asarray(weights)[0, 0, 0] > 0).sum(),
    )


def test_the_default_gelu(check_numbers):
    import keras
    import torch
    from torch.nn import functional as F

    x = torch.tensor([2.7])
    exact, of_ops = keras.activations.gelu(x.numpy()), keras.ops.gelu([2.7])
    assert abs(F.gelu(x).item() - float(exact[0])) < 1e-6
    check_numbers(
        gelu_gap=abs(F.gelu(x) - F.gelu(x, approximate="tanh")),
        gelu_gap_of_ops_keras=abs(of_ops - exact)[0],
    )


def test_dropout_in_a_new_layer(check_numbers):
    import keras
    import torch

    torch.manual_seed(0)
    keras.utils.set_random_seed(0)
    ones = torch.ones(10_000)
    layer, layer_keras = torch.nn.Dropout(0.5), keras.layers.Dropout(0.5)
    dropped = (layer(ones) == 0).float().mean()
    assert torch.equal(layer.eval()(ones), ones)
    assert (np.asarray(layer_keras(ones.numpy(), training=True)) == 0).any()
    check_numbers(
        dropped_torch=dropped,
        dropped_keras=(np.asarray(layer_keras(ones.numpy())) == 0).mean(),
    )
