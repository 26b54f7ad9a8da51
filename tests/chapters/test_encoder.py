"""The chapter on the encoder: its checkers, and its parts at the edges.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution. The parts are
held to both libraries on sizes and masks that are drawn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# Few examples, chosen the same way on every run: the frameworks are slow.
FEW = settings(max_examples=8, derandomize=True, deadline=None, database=None)
SIZES = st.integers(1, 3)
pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("encoder")


# Wrong answers by exercise: the verdict after its number, and the answer.


def layer(d, f):
    return 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d


def norm(x, variance, epsilon=0.0):
    """Return rows without their mean, over the root of a variance."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + epsilon)


def biased(x):
    return x.var(-1, keepdims=True)


def sample(x):
    return x.var(-1, keepdims=True) * x.shape[-1] / max(x.shape[-1] - 1, 0.5)


def right(x, epsilon):
    return norm(x, biased(x), epsilon)


def factor(v, e):
    return 1 / np.sqrt(v / (v + e) + e)


WRONG = {
    "encoder_parameters": [
        ("the final norm is missing.", lambda n, d, f: n * layer(d, f)),
        (
            "this is one layer, without the final norm.",
            lambda n, d, f: layer(d, f),
        ),
        ("num_layers is not used.", lambda n, d, f: layer(d, f) + 2 * d),
        (
            "there is one final norm.",
            lambda n, d, f: n * (layer(d, f) + 2 * d),
        ),
        ("a norm has two vectors.", lambda n, d, f: n * layer(d, f) + d),
        (
            "attention has four biases.",
            lambda n, d, f: n * (layer(d, f) - 4 * d) + 2 * d,
        ),
        (
            "a layer has two norms.",
            lambda n, d, f: n * (layer(d, f) - 2 * d) + 2 * d,
        ),
        (
            "linear layers have biases.",
            lambda n, d, f: n * (layer(d, f) - 5 * d - f) + 2 * d,
        ),
        (
            "feed-forward has two matrices.",
            lambda n, d, f: n * (layer(d, f) - d * f) + 2 * d,
        ),
        (
            "attention has four matrices.",
            lambda n, d, f: n * (layer(d, f) - d * d) + 2 * d,
        ),
        ("7 is wrong for 6 layers.", lambda n, d, f: 7),
    ],
    "numpy_layer_norm": [
        (
            "the variance divides by D - 1.",
            lambda x, g, b, e: norm(x, sample(x), e) * g + b,
        ),
        (
            "epsilon stands outside of the root.",
            lambda x, g, b, e: norm(x, (np.sqrt(biased(x)) + e) ** 2) * g + b,
        ),
        (
            "rows of equal numbers give NaN: epsilon is missing.",
            lambda x, g, b, e: norm(x, biased(x)) * g + b,
        ),
        (
            "there is no epsilon.",
            lambda x, g, b, e: norm(x, np.maximum(biased(x), 1e-9)) * g + b,
        ),
        (
            "the mean is not subtracted.",
            lambda x, g, b, e: x / np.sqrt(biased(x) + e) * g + b,
        ),
        (
            "take the root of the variance.",
            lambda x, g, b, e: norm(x, (biased(x) + e) ** 2) * g + b,
        ),
        (
            "one mean for all places.",
            lambda x, g, b, e: (x - x.mean()) / np.sqrt(x.var() + e) * g + b,
        ),
        ("scale and shift are missing.", lambda x, g, b, e: right(x, e)),
        ("the scale is missing.", lambda x, g, b, e: right(x, e) + b),
        ("the shift is missing.", lambda x, g, b, e: right(x, e) * g),
        (
            "the shift comes after the scale.",
            lambda x, g, b, e: (right(x, e) + b) * g,
        ),
        (
            "wrong numbers for the shape (4,).",
            lambda x, g, b, e: (right(x, e) * g + b) * (x.ndim > 1),
        ),
        (
            "rows of equal numbers should give the shift.",
            lambda x, g, b, e: right(x, e) * g + b + (not x.any()),
        ),
    ],
    "pre_norm_layer": [
        (
            "one residual around both.",
            lambda x, f, g, a, b: x + g(b(f(a(x)))),
        ),
        (
            "the norms come behind the sub-layers.",
            lambda x, f, g, a, b: x + a(f(x)) + b(g(x + a(f(x)))),
        ),
        (
            "this is post-norm.",
            lambda x, f, g, a, b: b(a(x + f(x)) + g(a(x + f(x)))),
        ),
        (
            "the first residual starts behind its norm.",
            lambda x, f, g, a, b: a(x) + f(a(x)) + g(b(a(x) + f(a(x)))),
        ),
        (
            "the second residual starts behind its norm.",
            lambda x, f, g, a, b: b(x + f(a(x))) + g(b(x + f(a(x)))),
        ),
        (
            "the residuals start behind the norms.",
            lambda x, f, g, a, b: b(a(x) + f(a(x))) + g(b(a(x) + f(a(x)))),
        ),
        (
            "no residual connections.",
            lambda x, f, g, a, b: g(b(f(a(x)))),
        ),
        (
            "the first residual is missing.",
            lambda x, f, g, a, b: f(a(x)) + g(b(f(a(x)))),
        ),
        (
            "the second residual is missing.",
            lambda x, f, g, a, b: g(b(x + f(a(x)))),
        ),
        (
            "the second residual is that of x.",
            lambda x, f, g, a, b: x + g(b(x + f(a(x)))),
        ),
        (
            "one norm for both.",
            lambda x, f, g, a, b: x + f(a(x)) + g(a(x + f(a(x)))),
        ),
        (
            "the norms have changed places.",
            lambda x, f, g, a, b: x + f(b(x)) + g(a(x + f(b(x)))),
        ),
        (
            "both sub-layers read x.",
            lambda x, f, g, a, b: x + f(a(x)) + g(b(x)),
        ),
        ("no norms.", lambda x, f, g, a, b: x + f(x) + g(x + f(x))),
        (
            "the second norm is missing.",
            lambda x, f, g, a, b: x + f(a(x)) + g(x + f(a(x))),
        ),
        (
            "the first norm is missing.",
            lambda x, f, g, a, b: x + f(x) + g(b(x + f(x))),
        ),
        (
            "feed-forward comes first.",
            lambda x, f, g, a, b: x + g(a(x)) + f(b(x + g(a(x)))),
        ),
        ("feed-forward is missing.", lambda x, f, g, a, b: x + f(a(x))),
        (
            "these are the numbers of another layer.",
            lambda x, f, g, a, b: x,
        ),
    ],
    "fold_norm": [
        (
            "the shift is lost.",
            lambda g, s, m, b: np.vstack([g[:, None] * m, b]),
        ),
        (
            "the layer's own bias is lost.",
            lambda g, s, m, b: np.vstack([g[:, None] * m, s @ m]),
        ),
        (
            "the shift meets the old matrix.",
            lambda g, s, m, b: np.vstack(
                [g[:, None] * m, s @ (g[:, None] * m) + b]
            ),
        ),
        (
            "the scale is missing.",
            lambda g, s, m, b: np.vstack([m, s @ m + b]),
        ),
        (
            "the scale belongs to rows.",
            lambda g, s, m, b: np.vstack([m * g, s @ m + b]),
        ),
        (
            "the shift has to pass the matrix.",
            lambda g, s, m, b: np.vstack([g[:, None] * m, s + b]),
        ),
        (
            "wrong for a matrix of 4 rows and 4 columns.",
            lambda g, s, m, b: np.vstack([m, b]),
        ),
    ],
    "second_norm_factor": [
        (
            "this is the factor of the first norm.",
            lambda v, e: (v + e) ** -0.5,
        ),
        (
            "the first norm leaves less than one.",
            lambda v, e: (1 + e) ** -0.5,
        ),
        ("take the root.", lambda v, e: factor(v, e) ** 2),
        (
            "this is the variance after the first norm.",
            lambda v, e: v / (v + e),
        ),
        (
            "this is the variance after both norms.",
            lambda v, e: v / (v + e) * factor(v, e) ** 2,
        ),
        (
            "epsilon acts in the second norm as well.",
            lambda v, e: (v / (v + e)) ** -0.5,
        ),
        (
            "this divides; the factor is one over it.",
            lambda v, e: 1 / factor(v, e),
        ),
        (
            "these are both factors together.",
            lambda v, e: (v + e) ** -0.5 * factor(v, e),
        ),
        (
            "without epsilon, too, there is a factor: 1.",
            lambda v, e: factor(v, e) / (e > 0),
        ),
        ("2.0000 is wrong for variance 4.0 and epsilon 0.5.", lambda v, e: 2),
    ],
}


def test_wrong_answer_is_named(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


# The parts, held to both libraries.


def draw_case(seed, sizes, padding, causal):
    """Return vectors, and masks of words and of the past, as arrays."""
    batch_size, seq_len, d_model = sizes
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((batch_size, seq_len, d_model))
    words = rng.random((batch_size, seq_len)) < 0.6
    words = words if padding else np.ones_like(words)
    past = np.tri(seq_len) > 0 if causal else np.ones((seq_len, seq_len)) > 0
    return x, words, past


SITUATION = {
    "seed": st.integers(0, 99),
    "sizes": st.tuples(SIZES, SIZES, SIZES, SIZES, SIZES, SIZES),
    "norm_first": st.booleans(),
    "padding": st.booleans(),
    "causal": st.booleans(),
}


@FEW
@given(**SITUATION)
def test_the_stack_is_pytorch_s_in_double_precision(
    book, seed, sizes, norm_first, padding, causal
):
    import torch

    num_layers, num_heads, d_head, d_ff, *batch = sizes
    d_model = num_heads * d_head
    x, words, past = draw_case(seed, (*batch, d_model), padding, causal)
    stack = book["Encoder"](num_layers, d_model, num_heads, d_ff, norm_first)
    stack = stack.double()
    book["draw_weights"](stack, seed)
    mask = torch.tensor(words[:, None] & past)  # (B, T, S)
    arguments = {"mask": torch.tensor(~past)}
    arguments["src_key_padding_mask"] = torch.tensor(~words)
    theirs = book["to_torch_encoder"](stack)
    x = torch.tensor(x, requires_grad=True)
    results = []
    # A place that may attend to nothing, and a sentence with such a place.
    sound = mask.any(-1).all(-1)
    for network, masks in [
        (stack, {"attention_mask": mask}),
        (theirs, arguments),
    ]:
        output = network(x, **masks)[sound]
        factors = torch.arange(1.0, output.numel() + 1).view_as(output)
        loss = (output * factors.double().sin()).sum()
        grad = torch.autograd.grad(loss, x)[0][sound]
        results.append((output.detach(), grad))
    for one, other in zip(*results, strict=True):
        assert np.allclose(one, other, atol=1e-8)


@FEW
@given(**SITUATION)
def test_the_stack_is_keras_and_both_frameworks_agree(
    book, seed, sizes, norm_first, padding, causal
):
    import tensorflow as tf
    import torch

    num_layers, num_heads, d_head, d_ff, *batch = sizes
    given = (num_layers, num_heads * d_head, num_heads, d_ff, norm_first)
    x, words, past = draw_case(seed, (*batch, given[1]), padding, causal)
    x, mask = np.float32(x), words[:, None] & past
    stack, stack_tf = book["Encoder"](*given), book["EncoderTF"](*given)
    book["draw_weights"](stack, seed)
    book["draw_weights_tf"](stack_tf, seed)
    sound = mask.any(-1).all(-1)
    with torch.no_grad():
        output = stack(torch.tensor(x), torch.tensor(mask)).numpy()[sound]
    mask_tf = tf.constant(mask)
    output_tf = stack_tf(tf.constant(x), mask_tf).numpy()[sound]
    theirs = book["KerasEncoder"](stack_tf)(tf.constant(x), mask_tf)
    assert np.allclose(output, output_tf, atol=1e-3)
    assert np.allclose(output_tf, theirs.numpy()[sound], atol=1e-3)


@FEW
@given(
    seed=st.integers(0, 99),
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    kind=st.sampled_from(["float64", "float32", "float16"]),
    scale=st.sampled_from([1e-3, 1, 200]),
)
def test_the_norm_is_the_libraries_in_every_precision(
    book, seed, shape, kind, scale
):
    import keras
    import tensorflow as tf
    import torch

    rng = np.random.default_rng(seed)
    rows = (scale * rng.standard_normal(shape)).astype(kind)
    found = book["normalise"](torch.tensor(rows))
    found_tf = book["normalise_tf"](tf.constant(rows))
    theirs = torch.nn.functional.layer_norm(torch.tensor(rows), shape[-1:])
    layer = keras.layers.LayerNormalization(epsilon=1e-5, dtype=kind)
    theirs_tf = layer(tf.constant(rows).numpy()[None])[0]
    atol = {"float64": 1e-9, "float32": 2e-4, "float16": 4e-3}[kind]
    assert str(found.numpy().dtype) == str(found_tf.numpy().dtype) == kind
    assert np.allclose(found, theirs, atol=atol)
    assert np.allclose(found, found_tf, atol=atol)
    assert np.allclose(found_tf, theirs_tf, atol=max(atol, 2e-4))


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_empty_sentence_harms_no_other(book, norm_first):
    import torch

    stack = book["Encoder"](2, 6, 3, 5, norm_first)
    x = torch.arange(24.0).sin().reshape(2, 2, 6)
    mask = torch.tensor([[[True, True]], [[False, False]]])
    found = stack(x, mask)
    assert torch.allclose(found[0], stack(x[:1])[0], atol=1e-6)
    assert found[1].isnan().all()


def test_training_reaches_every_dropout_in_both_frameworks(book):
    import torch

    x = torch.arange(24.0).sin().reshape(2, 2, 6)
    given = (1, 6, 3, 5, False, 0.5)
    stack, stack_tf = book["Encoder"](*given), book["EncoderTF"](*given)
    first = stack.layers[0]
    parts = (first.attention, first.feed_forward)
    parts += (first.around_attention, first.around_feed_forward)
    for part in parts:
        for other in parts:
            other.dropout.p = 0.5 if other is part else 0.0
        assert not torch.equal(stack(x), stack(x))
    one, other = (stack_tf(x.numpy(), training=True) for _ in range(2))
    assert not np.allclose(one, other)
    assert np.array_equal(stack_tf(x.numpy()), stack_tf(x.numpy()))


@pytest.mark.parametrize("name", ["EncoderLayer", "EncoderLayerTF"])
def test_heads_that_do_not_divide_the_width_are_refused(book, name):
    with pytest.raises(ValueError, match="cannot be divided"):
        book[name](10, 4, 8)
