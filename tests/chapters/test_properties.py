"""Hold the book's functions to the libraries' on sizes and masks drawn.

The functions are those of the notebooks; sizes of one and rows of a mask
without a single True are among what is drawn.
"""

from collections import ChainMap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")

SIZES = st.integers(1, 4)
# Few examples, chosen the same way on every run: the frameworks are slow.
FEW = settings(max_examples=12, derandomize=True, deadline=None, database=None)


@pytest.fixture(scope="module")
def book(chapter):
    """Return a function: name -> its definition in chapters 4 to 6."""
    names = ["attention", "multi_head_attention", "masks"]
    definitions = ChainMap(*map(chapter, names))
    return lambda name: definitions[name]


def draw_arrays(seed, *shapes):
    """Return standard normal float64 arrays of the given shapes."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def draw_mask(seed, shape, empty_rows):
    """Return a random mask in which each row may or may not be empty."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.6
    mask[..., 0] = True
    if empty_rows:
        mask &= rng.random(shape[:-1])[..., None] < 0.7
    return mask


def torch_gradients(function, arrays):
    """Return a function's value in torch and its gradients, as arrays."""
    import torch

    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    output = function(*tensors)
    (
        output * torch.arange(1.0, output.numel() + 1).view_as(output)
    ).sum().backward()
    grads = [tensor.grad.numpy() for tensor in tensors]
    return output.detach().numpy(), grads


def tf_gradients(function, arrays):
    """Return a function's value in TensorFlow and its gradients."""
    import tensorflow as tf

    tensors = [tf.constant(array) for array in arrays]
    with tf.GradientTape() as tape:
        for tensor in tensors:
            tape.watch(tensor)
        output = function(*tensors)
        size = tf.size(output)
        factors = tf.cast(tf.range(1, size + 1), output.dtype)
        loss = tf.reduce_sum(output * tf.reshape(factors, tf.shape(output)))
    grads = [
        tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, tensors)
    ]
    return output.numpy(), grads


def assert_same(one, other, single=False):
    """Assert that two (value, gradients) pairs agree, to float32 if single."""
    limits = {"rtol": 1e-3, "atol": 1e-3} if single else {"rtol": 1e-9}
    limits = {"atol": 1e-9, **limits}
    np.testing.assert_allclose(one[0], other[0], **limits)
    for a, b in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, **limits)


@FEW
@given(B=SIZES, T=SIZES, S=SIZES, K=SIZES, V=SIZES, seed=st.integers(0, 99))
def test_attend_is_the_libraries(book, B, T, S, K, V, seed):
    """Where each query has a key, in value and gradient."""
    import keras
    import torch
    import torch.nn.functional as F

    arrays = draw_arrays(seed, (B, T, K), (B, S, K), (B, S, V))
    mask = draw_mask(seed, (B, T, S), empty_rows=False)
    torch_mask = torch.tensor(mask)

    def sdpa(query, key, value):
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=torch_mask
        )

    def keras_attention(query, key, value):
        heads = [x[:, :, None] for x in (query, key, value)]
        return keras.ops.dot_product_attention(
            *heads, mask=mask[:, None], flash_attention=False
        )[:, :, 0]

    ours = torch_gradients(
        lambda *qkv: book("attend")(*qkv, torch_mask)[0], arrays
    )
    twin = tf_gradients(lambda *qkv: book("attend_tf")(*qkv, mask)[0], arrays)
    assert_same(ours, torch_gradients(sdpa, arrays))
    assert_same(ours, twin)
    if K == V:  # Keras takes one width, and its scale is a float32
        assert_same(ours, tf_gradients(keras_attention, arrays), single=True)


@FEW
@given(B=SIZES, T=SIZES, S=SIZES, K=SIZES, seed=st.integers(0, 99))
def test_attend_or_zero_is_the_library_s_for_empty_rows(
    book, B, T, S, K, seed
):
    """A query without a key gets zeros, and sends no gradient."""
    import torch
    import torch.nn.functional as F

    arrays = draw_arrays(seed, (B, T, K), (B, S, K), (B, S, K))
    mask = draw_mask(seed, (B, T, S), empty_rows=True)
    torch_mask = torch.tensor(mask)
    ours = torch_gradients(
        lambda *qkv: book("attend_or_zero")(*qkv, torch_mask)[0], arrays
    )
    twin = tf_gradients(
        lambda *qkv: book("attend_or_zero_tf")(*qkv, mask)[0],
        [array.astype("float32") for array in arrays],
    )
    library = torch_gradients(
        lambda *qkv: F.scaled_dot_product_attention(
            *qkv, attn_mask=torch_mask
        ),
        arrays,
    )
    assert_same(ours, library)
    assert_same(ours, twin, single=True)
    assert not ours[0][~mask.any(axis=-1)].any()


@FEW
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, K=SIZES, seed=st.integers(0, 99))
def test_multi_head_attention_is_the_libraries(book, B, T, S, H, K, seed):
    """With copied weights, in value and gradient."""
    import torch

    d_model = H * K
    matrices, biases = book("draw_parameters")(d_model, seed)
    layer = book("MultiHeadAttention")(d_model, H)
    book("load_parameters")(layer, matrices, biases)
    layer_tf = book("MultiHeadAttentionTF")(d_model, H)
    book("load_parameters_tf")(layer_tf, matrices, biases)
    keras_layer = book("to_keras_layer")(layer_tf)
    torch_layer = book("to_torch_layer")(layer)

    x, memory = draw_arrays(seed, (B, T, d_model), (B, S, d_model))
    arrays = [x.astype("float32"), memory.astype("float32")]
    mask = draw_mask(seed, (B, T, S), empty_rows=False)
    torch_mask = torch.tensor(mask)
    blocked = ~torch_mask.repeat_interleave(H, dim=0)
    ours = torch_gradients(lambda x, m: layer(x, m, m, torch_mask), arrays)
    others = [
        tf_gradients(lambda x, m: layer_tf(x, m, m, mask), arrays),
        tf_gradients(
            lambda x, m: keras_layer(
                query=x, key=m, value=m, attention_mask=mask
            ),
            arrays,
        ),
        torch_gradients(
            lambda x, m: torch_layer(x, m, m, attn_mask=blocked)[0], arrays
        ),
    ]
    for other in others:
        assert_same(ours, other, single=True)


@FEW
@given(B=SIZES, T=SIZES, H=SIZES, K=SIZES)
def test_heads_are_split_and_merged(book, B, T, H, K):
    """Entry (b, h, t, k) is entry (b, t, h K + k), and back."""
    import tensorflow as tf
    import torch

    x = np.arange(B * T * H * K).reshape(B, T, H * K)
    expected = np.stack(np.split(x, H, axis=-1), axis=1)
    heads = book("split_heads")(torch.tensor(x), H)
    heads_tf = book("split_heads_tf")(tf.constant(x), H)
    for split in (heads, heads_tf):
        np.testing.assert_array_equal(split, expected)
    np.testing.assert_array_equal(book("merge_heads")(heads), x)
    np.testing.assert_array_equal(book("merge_heads_tf")(heads_tf), x)


@FEW
@given(T=st.integers(1, 300), D=st.integers(1, 33))
def test_position_tables_agree(book, T, D):
    """Between the frameworks, and with the formula for every entry."""
    table = book("position_table")(T, D).numpy()
    p, i = np.arange(T)[:, None], np.arange(D)
    angles = p / 10000.0 ** (2 * (i // 2) / D)
    formula = np.where(i % 2 == 0, np.sin(angles), np.cos(angles))
    assert table.shape == (T, D)
    np.testing.assert_allclose(table, formula, atol=1e-6)
    np.testing.assert_allclose(
        table, book("position_table_tf")(T, D), atol=1e-6
    )
