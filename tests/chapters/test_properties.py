"""Hold attention and the models to the libraries' on sizes and masks drawn.

The functions are those of the notebooks, and equal in value and gradient.
Sizes of one and rows of a mask without a single True are among what is drawn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")

SIZES = st.integers(1, 4)


def of(home):
    """Return a mark: a test is about functions of this chapter."""
    return pytest.mark.parametrize("home", [home], scope="module")


@pytest.fixture(scope="module")
def book(chapter, home):
    """The variables of a test's chapter after a run; not to be changed."""
    return chapter(home)


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


@of("attention")
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
        lambda *qkv: book["attend"](*qkv, torch_mask)[0], arrays
    )
    twin = tf_gradients(lambda *qkv: book["attend_tf"](*qkv, mask)[0], arrays)
    assert_same(ours, torch_gradients(sdpa, arrays))
    assert_same(ours, twin)
    if K == V:  # Keras takes one width, and its scale is a float32
        assert_same(ours, tf_gradients(keras_attention, arrays), single=True)


@of("masks")
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
        lambda *qkv: book["attend_or_zero"](*qkv, torch_mask)[0], arrays
    )
    twin = tf_gradients(
        lambda *qkv: book["attend_or_zero_tf"](*qkv, mask)[0],
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


@of("multi_head_attention")
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, K=SIZES, seed=st.integers(0, 99))
def test_multi_head_attention_is_the_libraries(book, B, T, S, H, K, seed):
    """With copied weights, in value and gradient."""
    import torch

    d_model = H * K
    matrices, biases = book["draw_parameters"](d_model, seed)
    layer = book["MultiHeadAttention"](d_model, H)
    book["load_parameters"](layer, matrices, biases)
    layer_tf = book["MultiHeadAttentionTF"](d_model, H)
    book["load_parameters_tf"](layer_tf, matrices, biases)
    keras_layer = book["to_keras_layer"](layer_tf)
    torch_layer = book["to_torch_layer"](layer)

    x, memory = draw_arrays(seed, (B, T, d_model), (B, S, d_model))
    arrays = [x.astype("float32"), memory.astype("float32")]
    mask = draw_mask(seed, (B, T, S), empty_rows=False)
    torch_mask = torch.tensor(mask)
    blocked = ~torch_mask.repeat_interleave(H, dim=0)
    ours = torch_gradients(lambda x, m: layer(x, m, m, torch_mask), arrays)
    others = [
        tf_gradients(lambda x, m: layer_tf(x, m, m, mask), arrays),
        torch_gradients(
            lambda x, m: torch_layer(x, m, m, attn_mask=blocked)[0], arrays
        ),
    ]
    if K > 1 or H not in (T, S):  # a fault of Keras, below
        others.append(
            tf_gradients(
                lambda x, m: keras_layer(
                    query=x, key=m, value=m, attention_mask=mask
                ),
                arrays,
            )
        )
    for other in others:
        assert_same(ours, other, single=True)


# The decoder, and the whole model

FEWER = settings(max_examples=4)  # whole models, built and run eagerly


def draw_transformers(book, seed, sizes, **options):
    """Return our Transformer and its twin with the same weights."""
    model = book["Transformer"](*sizes, **options)
    model_tf = book["TransformerTF"](*sizes, **options)
    book["draw_model"](model, seed)
    book["draw_model_tf"](model_tf, seed)
    return model, model_tf


@of("decoder")
@FEWER
@given(
    B=SIZES,
    T=SIZES,
    S=SIZES,
    H=SIZES,
    K=SIZES,
    norm_first=st.booleans(),
    seed=st.integers(0, 99),
)
def test_encoder_and_decoder_are_the_libraries(
    book, B, T, S, H, K, norm_first, seed
):
    """In value and gradient, with padding, widths odd or even."""
    import torch

    sizes = (5, 1, H * K, H, 3)
    model, model_tf = draw_transformers(
        book, seed, sizes, norm_first=norm_first
    )
    library = book["to_torch_transformer"](model)
    keras_model = book["HubTransformer"](model_tf)
    words = draw_mask(seed, (B, 1, S), empty_rows=False)
    past, mask = np.tri(T) > 0, torch.tensor(words)
    causal = torch.tensor(past)
    arrays = draw_arrays(seed, (B, S, H * K), (B, T, H * K))
    arrays = [array.astype("float32") for array in arrays]

    def run(source, target):
        memory = model.encoder(source, mask)
        return model.decoder(target, memory, causal, mask)

    def run_tf(source, target):
        memory = model_tf.encoder(source + 0, words)
        return model_tf.decoder(target + 0, memory, past, words)

    def run_torch(source, target):
        return library(
            source,
            target,
            tgt_mask=~causal,
            src_key_padding_mask=~mask[:, 0],
            memory_key_padding_mask=~mask[:, 0],
        )

    ours = torch_gradients(run, arrays)
    for other in [
        torch_gradients(run_torch, arrays),
        tf_gradients(run_tf, arrays),
        tf_gradients(
            lambda *x: keras_model(*x, words[:, 0], words[:, 0]), arrays
        ),
    ]:
        np.testing.assert_allclose(ours[0], other[0], rtol=1e-3, atol=1e-3)
        for one, another in zip(ours[1], other[1], strict=True):
            limit = 2e-3 * max(1, np.abs(one).max())
            np.testing.assert_allclose(one, another, atol=limit)


@of("decoder")
@FEWER
@given(
    B=SIZES,
    T=SIZES,
    S=SIZES,
    D=SIZES,
    tied=st.booleans(),
    empty=st.booleans(),
    seed=st.integers(0, 99),
)
def test_logits_agree_and_a_source_without_words_is_nan(
    book, B, T, S, D, tied, empty, seed
):
    """From ids to logits, in both frameworks; no other sentence is hurt."""
    import tensorflow as tf
    import torch

    model, model_tf = draw_transformers(book, seed, (7, 2, D, 1, 3), tied=tied)
    rng = np.random.default_rng(seed)
    source, target = rng.integers(1, 7, (B, S)), rng.integers(0, 7, (B, T))
    source[0] = 0 if empty else source[0]
    logits = model(torch.tensor(source), torch.tensor(target)).detach()
    logits_tf = model_tf(tf.constant(source), tf.constant(target))
    np.testing.assert_allclose(logits, logits_tf, rtol=1e-3, atol=1e-3)
    assert logits[0].isnan().all() == empty
    assert not logits[1:].isnan().any()


@of("decoder")
@FEWER
@given(
    T=SIZES,
    S=SIZES,
    D=st.integers(1, 9),
    norm_first=st.booleans(),
    seed=st.integers(0, 99),
)
def test_word_by_word_is_teacher_forced_in_float64(
    book, T, S, D, norm_first, seed
):
    import torch

    sizes = (7, 2, D, 1, 3)
    model, _ = draw_transformers(book, seed, sizes, norm_first=norm_first)
    model = model.double()
    rng = np.random.default_rng(seed)
    source, target = (
        torch.tensor(rng.integers(1, 7, (2, length))) for length in (S, T)
    )
    whole, memory = model(source, target), model.encode(source)
    assert whole.dtype == torch.float64
    for t in range(T):
        step = model.decode(target[:, : t + 1], *memory)
        torch.testing.assert_close(step[:, -1], whole[:, t])
