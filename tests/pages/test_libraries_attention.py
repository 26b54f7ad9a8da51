"""What libraries.md says of attention is what the libraries give."""

import inspect

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


def test_what_true_means_in_a_mask(check_numbers):
    import keras
    import torch
    from torch.nn import functional as F

    query, values = torch.zeros(1, 1, 2), torch.eye(2)[None]
    mask = torch.tensor([[True, False]])
    sdpa = F.scaled_dot_product_attention(query, values, values, mask)
    layer = torch.nn.MultiheadAttention(2, 1, batch_first=True)
    _, weights = layer(query, values, values, key_padding_mask=mask)
    layer = keras.layers.MultiHeadAttention(1, 2)
    arrays, options = (query.numpy(), values.numpy()), {}
    options["return_attention_scores"] = True
    _, masked = layer(*arrays, attention_mask=mask[None].numpy(), **options)
    _, scores = layer(*arrays, **options)
    check_numbers(
        weight_sdpa=sdpa[0, 0, 0],
        weight_mha=weights[0, 0, 0].item(),
        weight_keras=masked[0, 0, 0, 0],
        keras_scores_row_sum=sum(scores[0, 0, 0]),
    )


def test_the_order_of_query_key_and_value(check_numbers, check_says):
    import keras
    import torch
    from torch.nn import functional as F

    def column(*numbers):
        return np.array(numbers, "float32")[None, :, None]

    query, key, value = column(1), column(2, 0), column(5, 7)
    layer = keras.layers.MultiHeadAttention(
        1, 1, use_bias=False, kernel_initializer="ones"
    )
    right = layer(query=query, key=key, value=value)[0, 0, 0]
    wrong = layer(query, key, value)[0, 0, 0]
    in_turn = F.scaled_dot_product_attention(
        *map(torch.from_numpy, (query, key, value))
    )
    assert abs(float(right) - in_turn.item()) < 1e-6
    check_numbers(order_right=right, order_wrong=wrong)

    def order(function):
        return ", ".join(list(inspect.signature(function).parameters)[:3])

    torch_order = order(torch.nn.MultiheadAttention(1, 1).forward)
    keras_order = order(layer.call).replace("value", "**value**")
    assert order(keras.ops.dot_product_attention) == torch_order
    check_says(
        f"PyTorch's order is {torch_order}; "
        f"that of Keras' attention layers is {keras_order}."
    )


def test_the_width_of_a_head(check_numbers):
    import keras
    import torch

    def parameters(key_dim):
        layer = keras.layers.MultiHeadAttention(4, key_dim=key_dim)
        layer.build(*3 * [(None, 5, 32)])
        return layer.count_params()

    weights = torch.nn.MultiheadAttention(32, 4).parameters()
    check_numbers(
        torch_parameters=sum(weight.numel() for weight in weights),
        keras_parameters_key_dim_d_head=parameters(8),
        keras_parameters_key_dim_d_model=parameters(32),
    )


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("F.scaled_dot_product_attention(..., attn_mask=mask)", "weight_sdpa"),
        (
            "keras.layers.MultiHeadAttention()(..., attention_mask=mask)",
            "weight_keras",
        ),
        (
            "nn.MultiheadAttention()(..., key_padding_mask=mask)",
            "weight_mha",
        ),
        ("nn.MultiheadAttention(32, 4)", "torch_parameters"),
        (
            "keras.layers.MultiHeadAttention(4, key_dim=8)",
            "keras_parameters_key_dim_d_head",
        ),
        (
            "keras.layers.MultiHeadAttention(4, key_dim=32)",
            "keras_parameters_key_dim_d_model",
        ),
    ],
)
def test_a_row_has_the_number_of_its_own_call(
    numbered_pages, names_of, call, name
):
    lines = numbered_pages["book/libraries.md"].split("\n")
    found = [names_of(line) for line in lines if f"| `{call}` |" in line]
    assert found == [{name}], (
        f"book/libraries.md should have a row `{call}` with <!--= {name} -->"
    )


def test_where_the_axes_stand(check_numbers):
    import keras
    import torch

    x = torch.zeros(2, 5, 4)  # two sequences of five tokens

    def weights(**options):
        return torch.nn.MultiheadAttention(4, 2, **options)(x, x, x)[1]

    layer = keras.layers.MultiHeadAttention(2, key_dim=2)
    _, scores = layer(x.numpy(), x.numpy(), return_attention_scores=True)
    assert len(weights(batch_first=True)) == 2
    check_numbers(
        sequences_by_default=len(weights()),
        weight_axes_torch=weights(batch_first=True).ndim,
        weight_axes_keras=scores.ndim,
    )


def test_where_the_axis_of_the_heads_stands(check_numbers, check_says):
    import keras
    import torch
    from torch.nn import functional as F

    def by_torch(*qkv):
        return F.scaled_dot_product_attention(*map(torch.tensor, qkv)).numpy()

    def by_keras(*qkv):
        return np.asarray(keras.ops.dot_product_attention(*qkv))

    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((3, 1, 3, 5, 4)).astype("float32")
    exchanged = by_keras(*qkv.swapaxes(-3, -2)).swapaxes(-3, -2)
    check_numbers(
        layouts_of_heads_differ=abs(by_torch(*qkv) - exchanged).max().round(6),
        layouts_of_heads_confused=abs(by_torch(*qkv) - by_keras(*qkv)).max(),
    )

    def axes(attend):
        """The other positions of its own head see a key that changes."""
        before = rng.normal(size=(2, 3, 3, 4))
        after = before.copy()
        after[0, 0, 0] += 1
        change = attend(*[after] * 3) - attend(*[before] * 3)
        return "(B, H, T, K)" if change[0, 0, 1].any() else "(B, T, H, K)"

    check_says(f"| `F.scaled_dot_product_attention` | `{axes(by_torch)}` |")
    check_says(f"| `keras.ops.dot_product_attention` | `{axes(by_keras)}` |")


def test_a_row_with_nothing_to_attend_to(check_says):
    import keras
    import tensorflow as tf
    import torch
    from torch.nn import functional as F

    row, mask = np.full((1, 2), -np.inf), np.array([[False, False]])
    with np.errstate(invalid="ignore"):
        parts = np.exp(row - row.max())
    two, softmax = [torch.eye(2)] * 2, keras.layers.Softmax()
    sdpa = F.scaled_dot_product_attention
    for call, weights in {
        "`torch.softmax`": torch.softmax(torch.tensor(row), -1),
        "`tf.nn.softmax`": tf.nn.softmax(tf.constant(row)),
        "the formula in NumPy": parts / parts.sum(),
        "`keras.layers.Softmax()(scores, mask=mask)`": softmax(
            np.zeros((1, 2)), mask=mask
        ),
        "`F.scaled_dot_product_attention`, from PyTorch `2.5` on": sdpa(
            torch.ones(1, 2), *two, torch.tensor(mask)
        ),
    }.items():
        (fate,) = {str(float(weight)) for weight in np.ravel(weights)}
        check_says(f"| {call} | {'zeros' if fate == '0.0' else f'`{fate}`'} |")


def test_the_corner_of_a_causal_mask(check_numbers):
    import keras
    import torch
    from torch.nn import functional as F
    from torch.nn.attention.bias import causal_lower_right

    query, key, value = torch.zeros(2, 5), torch.zeros(5, 5), torch.eye(5)
    given = [x[None, None] for x in (query, key, value)]
    by_token = [x[None, :, None].numpy() for x in (query, key, value)]
    lower = causal_lower_right(2, 5)
    outputs = [
        F.scaled_dot_product_attention(*given, is_causal=True),
        F.scaled_dot_product_attention(*given, lower),
        keras.ops.dot_product_attention(*by_token, is_causal=True),
    ]
    read = [(np.asarray(x).reshape(2, 5)[0] > 0).sum() for x in outputs]
    check_numbers(
        keys_read_torch=read[0],
        keys_read_lower_right=read[1],
        keys_read_keras=read[2],
    )


def test_fewer_key_heads_than_heads(check_numbers, check_says):
    import keras
    import torch
    from torch.nn import functional as F

    rng = np.random.default_rng(0)
    query = rng.normal(size=(1, 6, 5, 4)).astype("float32")
    sdpa = F.scaled_dot_product_attention

    def by_torch(key, **options):
        return sdpa(*map(torch.tensor, (query, key, key)), **options)

    def by_keras(key):
        given = (x.swapaxes(1, 2) for x in (query, key, key))
        output = keras.ops.dot_product_attention(*given)
        return np.asarray(output).swapaxes(1, 2)

    def by_layer(key):
        """The heads of all vectors, as the layer with unit matrices."""
        heads = key.shape[1]
        layer = keras.layers.GroupQueryAttention(4, 6, heads, use_bias=False)
        layer.build((1, 5, 24), (1, 5, 4 * heads))
        layer.set_weights(
            [
                np.eye(24).reshape(24, 6, 4),
                *2 * [np.eye(4 * heads).reshape(-1, heads, 4)],
                np.eye(24).reshape(6, 4, 24),
            ]
        )
        flat = [x.swapaxes(1, 2).reshape(1, 5, -1) for x in (query, key)]
        return np.reshape(layer(*flat), (1, 5, 6, 4)).swapaxes(1, 2)

    def outcome(call, heads):
        key = rng.normal(size=(1, heads, 5, 4)).astype("float32")
        try:
            found = call(key)
        except Exception as error:
            return f"`{type(error).__name__}`"
        copies = by_torch(np.repeat(key, 6 // heads, axis=1))
        assert np.allclose(found, copies, atol=1e-5)
        return "shared"

    for name, call in {
        "`F.scaled_dot_product_attention`": by_torch,
        "`F.scaled_dot_product_attention(..., enable_gqa=True)`": (
            lambda key: by_torch(key, enable_gqa=True)
        ),
        "`keras.ops.dot_product_attention`, from Keras `3.15` on": by_keras,
        "`keras.layers.GroupQueryAttention`": by_layer,
    }.items():
        check_says(f"| {name} | {outcome(call, 2)} | {outcome(call, 1)} |")
    repeated, tiled = np.repeat([0, 1], 3), np.tile([0, 1], 3)
    check_numbers(heads_right_if_tiled=(repeated == tiled).sum())


def test_the_log_sum_of_a_query_that_sees_no_key(check_numbers):
    import tensorflow as tf
    import torch

    row = np.full((1, 2), -np.inf)
    assert torch.logsumexp(torch.tensor(row), -1) == -torch.inf
    assert tf.reduce_logsumexp(tf.constant(row), -1) == -np.inf
    x, mask = torch.ones(1, 1, 2, 4), torch.full((1, 1, 2, 2), -torch.inf)
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    _, sums = kernel(x, x, x, attn_mask=mask)
    check_numbers(log_sum_of_the_kernel=sums[0, 0, 0])
