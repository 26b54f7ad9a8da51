"""Hold the book's functions to the libraries' on sizes and masks drawn.

The functions are those of the notebooks; sizes of one and rows of a mask
without a single True are among what is drawn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")

SIZES = st.integers(1, 4)
# Few examples, chosen the same way on every run: the frameworks are slow.
FEW = settings(max_examples=12, derandomize=True, deadline=None, database=None)


def of(home):
    """Return a mark: a test is about functions of this chapter."""
    return pytest.mark.parametrize("home", [home], scope="module")


@pytest.fixture(scope="module")
def book(chapter, home):
    """Return a function: name -> its definition in a test's chapter."""
    return lambda name: chapter(home)[name]


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


@of("masks")
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


@of("multi_head_attention")
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


@of("multi_head_attention")
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


@of("positional_encoding")
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


# What a function promises holds for every type and size, or it refuses.

FLOATS = st.sampled_from(["float16", "bfloat16", "float32", "float64"])
SOME = st.integers(0, 4)  # none at all is a size, too
# A mask of numbers: what a reader may hand over in the place of True.
NUMBERS = st.sampled_from(["uint8", "int32", "int64", "float32"])


def in_both(array, name):
    """Return an array as tensors of a type: PyTorch's and TensorFlow's."""
    import tensorflow as tf
    import torch

    tensor = torch.from_numpy(array).to(getattr(torch, name))
    return tensor, tf.cast(tf.constant(array), getattr(tf, name))


def as_float64(tensor):
    """Return a tensor of either framework as an array of float64."""
    import tensorflow as tf

    if hasattr(tensor, "detach"):
        return tensor.detach().double().numpy()
    return tf.cast(tensor, tf.float64).numpy()


def refusals(function, twin, *pairs):
    """Return what two functions raise for pairs of arguments."""
    raised = []
    for place, called in enumerate((function, twin)):
        with pytest.raises((TypeError, ValueError)) as error:
            called(*(pair[place] for pair in pairs))
        raised.append(error.type)
    return raised


@of("multi_head_attention")
@FEW
@given(B=SOME, T=SOME, H=SIZES, K=SIZES, name=FLOATS, step=st.integers(1, 2))
def test_heads_are_split_whatever_the_type_and_the_strides(
    book, B, T, H, K, name, step
):
    """An empty batch and one that lies scattered in memory included."""
    wide = np.arange(float(B * T * H * K * step)).reshape(B, T, H * K * step)
    x, x_tf = in_both(wide, name)
    x, x_tf, wide = (array[:, :, ::step] for array in (x, x_tf, wide))
    expected = wide.reshape(B, T, H, K).transpose(0, 2, 1, 3)
    heads = book("split_heads")(x, H)
    heads_tf = book("split_heads_tf")(x_tf, H)
    for split in (heads, heads_tf):
        np.testing.assert_array_equal(as_float64(split), expected)
    merged = book("merge_heads")(heads), book("merge_heads_tf")(heads_tf)
    for found in merged:
        np.testing.assert_array_equal(as_float64(found), wide)


@of("multi_head_attention")
@FEW
@given(B=SOME, D=st.integers(1, 9), H=st.integers(-1, 9))
def test_heads_that_do_not_divide_are_refused_by_both(book, B, D, H):
    """By a ValueError, for an empty batch too."""
    pair = in_both(np.zeros((B, 2, D)), "float32")
    split = book("split_heads"), book("split_heads_tf")
    if H > 0 and D % H == 0:
        assert split[0](pair[0], H).shape == (B, H, 2, D // H)
    else:
        assert refusals(*split, pair, (H, H)) == [ValueError] * 2


@of("multi_head_attention")
@FEW
@given(B=SOME, T=SIZES, H=SIZES, K=SIZES, heads_first=st.booleans())
def test_packed_projections_are_unpacked_for_any_batch(
    book, B, T, H, K, heads_first
):
    numbers = np.arange(float(B * T * 3 * H * K)).reshape(B, T, 3 * H * K)
    order = (B, T, H, 3, K) if heads_first else (B, T, 3, H, K)
    axes = (3, 0, 2, 1, 4) if heads_first else (2, 0, 3, 1, 4)
    expected = numbers.reshape(order).transpose(axes)
    for packed, name in zip(
        in_both(numbers, "float64"), ("unpack", "unpack_tf"), strict=True
    ):
        found = book(name)(packed, H, heads_first)
        np.testing.assert_array_equal(as_float64(found), expected)


@of("multi_head_attention")
@FEW
@given(B=SOME, T=SIZES, H=SIZES, K=SIZES, seed=st.integers(0, 99))
def test_the_layers_take_an_empty_batch(book, B, T, H, K, seed):
    x, x_tf = in_both(draw_arrays(seed, (B, T, H * K))[0], "float32")
    parameters = book("draw_parameters")(H * K, seed)
    layer = book("MultiHeadAttention")(H * K, H)
    layer_tf = book("MultiHeadAttentionTF")(H * K, H)
    book("load_parameters")(layer, *parameters)
    book("load_parameters_tf")(layer_tf, *parameters)
    out, out_tf = layer(x, x, x), layer_tf(x_tf, x_tf, x_tf)
    assert out.shape == (B, T, H * K)
    np.testing.assert_allclose(as_float64(out), out_tf, atol=1e-4)


@of("masks")
@FEW
@given(
    B=SOME,
    T=SIZES,
    S=SIZES,
    name=FLOATS,
    fill=st.sampled_from([-np.inf, 0.0, -1e4, -1e9, -1e38, -1e39, -1e308]),
    seed=st.integers(0, 99),
)
def test_fills_are_added_in_every_type_or_refused(
    book, B, T, S, name, fill, seed
):
    """No finite fill becomes infinite, in either framework."""
    import torch

    mask = draw_mask(seed, (B, T, S), empty_rows=True)
    dtype, dtype_tf = (tensor.dtype for tensor in in_both(mask[:0], name))
    twins = book("to_additive"), book("to_additive_tf")
    pairs = in_both(mask, "bool"), (fill, fill), (dtype, dtype_tf)
    if np.isfinite(fill) and -fill > torch.finfo(dtype).max:
        assert refusals(*twins, *pairs) == [ValueError] * 2
        return
    expected = np.where(mask, 0, torch.tensor(fill, dtype=dtype).double())
    for place, function in enumerate(twins):
        found = function(*(pair[place] for pair in pairs))
        assert found.dtype == pairs[2][place]
        np.testing.assert_array_equal(as_float64(found), expected)


@of("masks")
@FEW
@given(name=NUMBERS, seed=st.integers(0, 99))
def test_masks_of_numbers_are_refused_by_both(book, name, seed):
    """By a TypeError that names the type."""
    mask = in_both(1.0 * draw_mask(seed, (2, 3, 3), True), name)
    x = in_both(draw_arrays(seed, (2, 3, 3))[0], "float32")
    for function, *pairs in [
        ("to_additive", mask),
        ("count_places", mask),
        ("masked_mean", x, mask),
        ("attend_or_zero", x, x, x, mask),
        ("attend_filled", x, x, x, mask, (-1.0, -1.0)),
    ]:
        twins = book(function), book(f"{function}_tf")
        assert refusals(*twins, *pairs) == [TypeError] * 2, function


@of("masks")
@FEW
@given(B=SOME, T=SOME, name=FLOATS, seed=st.integers(0, 99))
def test_the_mean_of_words_in_every_type(book, B, T, name, seed):
    """Of thousands, whose sum float16 has no number for, too."""
    mask = draw_mask(seed, (B, T, 1), empty_rows=True)[..., 0]
    given_, given_tf = in_both(1e4 + 1e3 * draw_arrays(seed, (B, T))[0], name)
    values = as_float64(given_)
    given_[~in_both(mask, "bool")[0]] = np.nan
    bad = np.where(mask, 0, np.nan)
    given_tf = given_tf + in_both(bad, name)[1]
    right = values[mask].mean() if mask.any() else 0.0
    right = as_float64(in_both(np.array(right), name)[0])
    for x, m, function in zip(
        (given_, given_tf),
        in_both(mask, "bool"),
        ("masked_mean", "masked_mean_tf"),
        strict=True,
    ):
        found = book(function)(x, m)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(as_float64(found), right, rtol=1e-12)


@of("masks")
def test_long_means_in_half_precision(book):
    """More places than float16 can count."""
    values, mask = np.full(70_000, 100.0), np.ones(70_000, bool)
    for name in ("float16", "bfloat16"):
        pairs = zip(in_both(values, name), in_both(mask, "bool"), strict=True)
        for kind, given_ in zip(("", "_tf"), pairs, strict=True):
            assert as_float64(book(f"masked_mean{kind}")(*given_)) == 100


@of("masks")
def test_a_mean_of_other_values_or_shapes_is_refused(book):
    twins = book("masked_mean"), book("masked_mean_tf")
    mask = in_both(np.ones(3, bool), "bool")
    whole = in_both(np.ones(3), "int64")
    assert refusals(*twins, whole, mask) == [TypeError] * 2
    more = in_both(np.ones((2, 3)), "float32")
    assert refusals(*twins, more, mask) == [ValueError] * 2


@of("masks")
@FEW
@given(
    B=SOME,
    T=SIZES,
    name=st.sampled_from(["bool", "uint8", "int32", "int64", "float32"]),
    seed=st.integers(0, 99),
)
def test_the_mass_on_pads_for_masks_of_any_kind(book, B, T, name, seed):
    """The mean over words of what a loop sums up."""
    (weights,) = draw_arrays(seed, (B, T, T))
    mask = draw_mask(seed, (B, T, 1), empty_rows=True)[..., 0]
    masses = [
        weights[b, t, ~mask[b]].sum()
        for b in range(B)
        for t in range(T)
        if mask[b, t]
    ]
    right = np.mean(masses) if masses else 0
    for w in in_both(weights, "float64"):
        for m in (*in_both(1 * mask, name), mask.astype(name)):
            found = book("mass_on_pads")(w, m)
            assert found == pytest.approx(right, abs=6e-5)


@of("masks")
def test_the_mass_on_pads_refuses_a_mask_to_be_added(book):
    with pytest.raises(ValueError, match="True or 1 for a word"):
        book("mass_on_pads")(np.ones((1, 2, 2)), np.array([[0, -np.inf]]))


@of("multi_head_attention")
@FEW
@given(
    T=SIZES,
    D=st.integers(3, 6),
    name=st.sampled_from(["float32", "float64"]),
    causal=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_reach_looks_through_a_normalisation(
    book, T, D, name, causal, seed
):
    """It is what the mask allows, and the same in both frameworks."""
    import keras
    import torch

    mask = np.tri(T) > 0 if causal else np.ones((T, T), bool)
    pair = in_both(draw_arrays(seed, (1, T, D))[0], name)
    norm_tf = keras.layers.LayerNormalization(epsilon=1e-5, dtype=name)

    def run(x):
        y = x + book("attend")(x, x, x, torch.tensor(mask))[0]
        return torch.nn.functional.layer_norm(y, (D,))

    def run_tf(x):
        x = x + 0  # a tensor, also of a variable
        return norm_tf(x + book("attend_tf")(x, x, x, mask)[0])

    found = as_float64(book("reach")(run, pair[0]))
    found_tf = as_float64(book("reach_tf")(run_tf, pair[1]))
    np.testing.assert_allclose(found, found_tf, rtol=1e-2, atol=1e-4)
    np.testing.assert_array_equal(found > 1e-7, mask)


@of("multi_head_attention")
def test_what_depends_on_nothing_has_no_reach(book):
    import torch

    x, x_tf = in_both(np.ones((1, 3, 4)), "float32")
    assert not book("reach")(torch.ones_like, x).any()
    assert not book("reach_tf")(lambda x: 0 * x_tf, x_tf).numpy().any()


# The decoder, and the whole model

FEWER = settings(FEW, max_examples=4)  # whole models, built and run eagerly


def draw_transformers(book, seed, sizes, **options):
    """Return our Transformer and its twin with the same weights."""
    model = book("Transformer")(*sizes, **options)
    model_tf = book("TransformerTF")(*sizes, **options)
    book("draw_model")(model, seed)
    book("draw_model_tf")(model_tf, seed)
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
    library = book("to_torch_transformer")(model)
    keras_model = book("KerasTransformer")(model_tf)
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
        tf_gradients(lambda *x: keras_model(*x, past, words), arrays),
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
