"""The chapter on the encoder: its checkers, and its parts at the edges.

test_exercises.py tries each checker on the stub and the solution. The norms
are held to both libraries on sizes that are drawn.
"""

from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers


def layer(d, f):
    return 4 * d * d + 2 * d * f + 2 * d


def norm(x, variance, epsilon=0.0):
    """Return rows without their mean, over the root of a variance."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + epsilon)


def over(axis):
    """Return an answer whose mean and variance run over another axis."""

    def answer(x, g, b, e):
        if x.ndim == 1:
            return norm(x, biased(x), e) * g + b
        centred = x - x.mean(axis, keepdims=True)
        return centred / np.sqrt(x.var(axis, keepdims=True) + e) * g + b

    return answer


def root_mean_square_norm(x, g, b, e):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + e) * g


def annotated(x, g, b, e):
    centred = x - x.mean(-1, keepdims=True)
    return centred / (np.sqrt(sample(x)) + e) * g + b


def biased(x):
    return x.var(-1, keepdims=True)


def sample(x):
    return x.var(-1, keepdims=True) * x.shape[-1] / max(x.shape[-1] - 1, 0.5)


WRONG = {
    "encoder_parameters": {
        "final norm is missing": lambda n, d, f: n * layer(d, f),
        "with biases and shifts": lambda n, d, f: (
            n * (layer(d, f) + 7 * d + f) + 2 * d
        ),
        "keep no biases": lambda n, d, f: n * (layer(d, f) + 5 * d + f) + d,
        "keep no shifts": lambda n, d, f: n * (layer(d, f) + 2 * d) + 2 * d,
        "one final norm": lambda n, d, f: n * (layer(d, f) + d),
        "7 is wrong for 6 layers": lambda n, d, f: 7,
        "18881025 is wrong": lambda n, d, f: n * layer(d, f) + d + 1,
    },
    "numpy_layer_norm": {
        "divides by D - 1.": lambda x, g, b, e: norm(x, sample(x), e) * g + b,
        "outside of the root": lambda x, g, b, e: (
            norm(x, (np.sqrt(biased(x)) + e) ** 2) * g + b
        ),
        "epsilon is missing": lambda x, g, b, e: norm(x, biased(x)) * g + b,
        "over axis 0": over(0),
        "over axis 1": over(1),
        "no mean, and no shift": root_mean_square_norm,
        "is not subtracted": lambda x, g, b, e: (
            root_mean_square_norm(x, g, b, e) + b
        ),
        "the Annotated Transformer's": annotated,
        "keepdims=True keeps the axis": lambda x, g, b, e: x - x.mean(-1),
        "one mean for all": lambda x, g, b, e: (
            (x - x.mean()) / np.sqrt(x.var() + e) * g + b
        ),
    },
    "pre_norm_layer": {
        "one residual around both": lambda x, f, g, a, b: x + g(b(f(a(x)))),
        "this is post-norm": lambda x, f, g, a, b: b(
            a(x + f(x)) + g(a(x + f(x)))
        ),
        "starts behind its norm": lambda x, f, g, a, b: (
            a(x) + f(a(x)) + g(b(a(x) + f(a(x))))
        ),
        "one norm for both": lambda x, f, g, a, b: (
            x + f(a(x)) + g(a(x + f(a(x))))
        ),
    },
    "fold_norm": {
        "shift is lost": lambda g, s, m, b: np.vstack([g[:, None] * m, b]),
        "meets the old matrix": lambda g, s, m, b: np.vstack(
            [g[:, None] * m, s @ (g[:, None] * m) + b]
        ),
    },
    "second_norm_factor": {
        "factor of the first norm": lambda v, e: (v + e) ** -0.5,
        "leaves less than one": lambda v, e: (1 + e) ** -0.5,
        "take the root": lambda v, e: 1 / (v / (v + e) + e),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


def half(x, g, b, e):
    x, g, b = (np.float16(given) for given in (x, g, b))
    return norm(x, biased(x), np.float16(e)) * g + b


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("encoder_parameters", Fraction),
        ("numpy_layer_norm", np.float16),
        (
            "numpy_layer_norm",
            lambda found: torch.tensor(found, requires_grad=True),
        ),
    ],
)
def test_numbers_of_other_types_are_right_too(book, name, make):
    solution = book[f"{name}_solution"]
    verdict = book[f"check_{name}"](lambda *given: make(solution(*given)))
    assert verdict.endswith(": correct.")


def test_half_precision_is_right_and_hides_no_mistake(book):
    assert book["check_numpy_layer_norm"](half) == "Exercise 2: correct."
    for says in ("divides by D - 1.", "outside of the root"):
        answer = WRONG["numpy_layer_norm"][says]
        verdict = book["check_numpy_layer_norm"](
            lambda *given, answer=answer: np.float16(answer(*given))
        )
        assert says in verdict


# The parts, held to both libraries


in_every_precision = given(
    seed=st.integers(0, 99),
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    kind=st.sampled_from(["float64", "float32", "float16"]),
    scale=st.sampled_from([1e-3, 1, 200]),
)


@in_every_precision
def test_the_norm_is_the_libraries_in_every_precision(
    book, twins, seed, shape, kind, scale
):
    rng = np.random.default_rng(seed)
    rows = (scale * rng.standard_normal(shape)).astype(kind)
    norm = book["keras"].layers.LayerNormalization(epsilon=1e-5, dtype=kind)
    theirs = F.layer_norm(torch.tensor(rows), shape[-1:])
    theirs_tf = norm(rows[None])[0]
    atol = {"float64": 1e-12, "float32": 2e-4, "float16": 4e-3}[kind]
    for normalise in twins("normalise"):
        found = normalise(rows)
        assert found.dtype == kind
        assert np.allclose(found, theirs, rtol=0, atol=atol)
        assert np.allclose(found, theirs_tf, atol=max(atol, 2e-4))


@in_every_precision
def test_rms_norm_is_pytorch_s_in_every_precision(
    book, seed, shape, kind, scale
):
    """In Keras, a layer casts what it is given to its own type."""
    tf, rng = book["tf"], np.random.default_rng(seed)
    rows = torch.tensor((scale * rng.standard_normal(shape)).astype(kind))
    found = book["RMSNorm"](shape[-1]).to(rows.dtype)(rows).detach()
    theirs = F.rms_norm(rows, shape[-1:], eps=1e-6)
    found_tf = book["RMSNormTF"](shape[-1])(tf.constant(rows, tf.float32))
    atol = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3}[kind]
    assert found.dtype == rows.dtype
    assert np.allclose(found, theirs, rtol=0, atol=atol)
    assert np.allclose(found, found_tf, rtol=0, atol=max(atol, 1e-5))


def test_a_norm_of_whole_numbers_is_float32(twins):
    for normalise in twins("normalise"):
        found = normalise(np.array([[1, 1, 5, 5]]))
        assert found.dtype == np.float32
        assert np.allclose(found, [[-1, -1, 1, 1]], atol=1e-5)


def test_a_closed_gate_lets_nothing_through(book):
    """The gate of SwiGLU and not its other matrix is the one that closes."""
    tf = book["tf"]
    x = np.ones((1, 1, 4), "float32")
    ours, ours_tf = book["SwiGLU"](4, 5), book["SwiGLUTF"](4, 5)
    for part, closed in [("gate", True), ("up", False)]:
        weight = np.full((4, 5), -5.0, "float32")
        book["draw_weights"](ours, 0), book["draw_weights_tf"](ours_tf, 0)
        getattr(ours, part).weight.data = torch.tensor(weight.T)
        getattr(ours_tf, part).kernel.assign(weight)
        found = ours(torch.tensor(x)).detach()
        assert np.allclose(found, ours_tf(tf.constant(x)), atol=1e-5)
        assert (abs(found).max() < 1e-4).item() is closed


@pytest.mark.parametrize("name", ["LayerNorm", "LayerNormTF"])
def test_a_new_norm_has_pytorch_s_epsilon(book, name):
    assert book[name](3).epsilon == book["nn"].LayerNorm(3).eps


# Weights and epsilon, carried to the libraries.


def test_drawn_norms_have_scales_near_one_in_library_layers_too(book):
    layer = torch.nn.TransformerEncoderLayer(6, 3, 5)
    norm = book["keras"].layers.LayerNormalization()
    norm.build((None, 6))
    for ours in (book["Encoder"](1, 6, 3, 5), layer):
        book["draw_weights"](ours, 0, spread=0)
        for name, weight in ours.named_parameters():
            if weight.ndim == 1:
                assert (weight == (not name.endswith(("bias", "shift")))).all()
    for ours in (book["LayerNormTF"](6), norm):
        book["draw_weights_tf"](ours, 0, spread=0)
        scale, shift = ours.get_weights()
        assert (scale == 1).all() and (shift == 0).all()


@pytest.mark.parametrize("norm_first", [False, True])
def test_each_epsilon_is_carried_to_pytorch_and_is_the_twins(book, norm_first):
    tf = book["tf"]
    given, x = (2, 6, 3, 5, norm_first), torch.arange(24.0).sin()
    x = x.reshape(2, 2, 6)
    stack, stack_tf = book["Encoder"](*given), book["EncoderTF"](*given)
    book["draw_weights"](stack, 0), book["draw_weights_tf"](stack_tf, 0)
    for ours in (stack, stack_tf):
        ours.norm.epsilon = 0.5
        for number, layer in enumerate(ours.layers, 1):
            layer.around_attention.norm.epsilon = 0.1 * number
            layer.around_feed_forward.norm.epsilon = 1.0 * number
    theirs = book["to_torch_encoder"](stack)
    x_tf = tf.constant(x.numpy())
    assert torch.allclose(stack(x), theirs(x), atol=1e-5)
    assert np.allclose(stack_tf(x_tf), stack(x).detach(), atol=1e-5)


# Dropout, and the chapter's own checks.


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_dropout_sits_where_the_text_says(book, kind):
    """A rate near one leaves what dropout does not reach."""
    import cellbycell.pytorch
    import cellbycell.tensorflow

    tf = book["tf"]
    rows = np.float32(np.random.default_rng(0).normal(size=(2, 5, 6)))
    x = tf.constant(rows) if kind else torch.tensor(rows)
    told = {"training": True} if kind else {}

    def numbers(tensor):
        return tensor.numpy() if kind else tensor.detach().numpy()

    def made(name, *sizes):
        part = book[name + kind.strip("_").upper()](*sizes, dropout=1 - 1e-7)
        book[f"draw_weights{kind}"](part, 0)
        return part

    got = []
    attend = vars(cellbycell.tensorflow if kind else cellbycell.pytorch)[
        f"attend{kind}"
    ]
    output, weights = attend(x, x, x, dropout=lambda w: got.append(w) or 0 * w)
    assert np.array_equal(numbers(got[0]), numbers(weights))
    assert not numbers(output).any()

    attention = made("MultiHeadAttention", 6, 3)
    output, weights = attention(x, x, x, need_weights=True, **told)
    bias = numbers(attention.output_proj.bias)
    assert bias.all() and np.allclose(numbers(output), bias)
    assert np.allclose(numbers(weights).sum(-1), 1)

    network = made("FeedForward", 6, 8)
    bias = numbers(network.narrow.bias)
    assert bias.all() and np.allclose(numbers(network(x, **told)), bias)

    for norm_first in (True, False):
        around = made("AddAndNorm", 6, norm_first)
        found = around(x, sublayer=lambda x: x + 1, **told)
        kept = x if norm_first else around.norm(x)
        assert np.allclose(numbers(found), numbers(kept))


def test_a_promise_is_not_believed_beside_a_padding_mask():
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True
    )
    x = torch.sin(torch.arange(80.0)).reshape(2, 5, 8)
    everything = torch.zeros(5, 5, dtype=torch.bool)
    pads = torch.arange(5).repeat(2, 1) > 3
    for given_, believed in [
        ({}, True),
        ({"src_key_padding_mask": pads}, False),
    ]:
        given_ = given_ | {"src_mask": everything}
        found = layer(x, is_causal=True, **given_)
        assert torch.allclose(found, layer(x, **given_)) != believed


# What learns, and what is left out of it


@pytest.mark.parametrize("kind", ["", "TF"])
def test_a_causal_stack_reads_no_later_position(book, kind):
    x = np.float32(np.random.default_rng(0).normal(size=(2, 5, 6)))
    changed = x.copy()
    changed[:, 3, 0] += 1
    stack = book[f"Causal{kind}"](book[f"Encoder{kind}"](2, 6, 3, 5, True))
    tensor = book["tf"].constant if kind else torch.tensor
    with torch.no_grad():
        moved = np.asarray(stack(tensor(x))) - np.asarray(
            stack(tensor(changed))
        )
    assert np.allclose(moved[:, :3], 0, atol=1e-6)
    assert (abs(moved[:, 3:]).max(axis=-1) > 1e-3).all()


def test_a_narrow_model_lacks_what_it_says_and_no_more(book):
    """With silent sub-layers, a token passes a residual connection alone."""
    for kind, passes in [
        ("whole", True),
        ("no norm", True),
        ("no residual", False),
    ]:
        model = book["narrow_model"](kind, 2)
        stack = model[2].encoder
        for layer in stack.layers:
            for proj in (
                layer.attention.output_proj,
                layer.feed_forward.narrow,
            ):
                for weight in proj.parameters():
                    weight.data.zero_()
        with torch.no_grad():
            logits = model(torch.tensor([[3, 4, 5, 3]]))[0]
            x = 5 + 2 * torch.sin(torch.arange(64.0)).reshape(1, 2, 32)
            assert torch.equal(stack.norm(x), x) == (kind == "no norm")
        moved = abs(logits[0] - logits[1]).max().item()
        assert (moved > 1e-3) == passes
