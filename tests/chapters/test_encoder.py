"""The chapter on the encoder: its parts, and what it claims of them."""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")


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


# Dropout, and a library's promise.


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


# What is left out of a model


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


# Post-norm: a training with a warm-up, and a small start


def test_a_warm_up_of_one_step_is_the_training_of_all_chapters(book):
    rows = book["train_rows"][:200]
    one, other = (book["narrow_model"]("whole", 1) for _ in range(2))
    book["learn_warm"](one, rows, 1, steps=3)
    book["learn"](other, rows, steps=3)
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_small_start_makes_what_is_added_small(book):
    model = book["narrow_model"]("whole", 2, norm_first=False)
    layer = model[2].encoder.layers[1]
    x = torch.sin(torch.arange(96.0)).reshape(1, 3, 32)
    before = layer.attention(x, x, x), layer.feed_forward(x)
    book["start_small"](model)
    after = layer.attention(x, x, x), layer.feed_forward(x)
    for small, whole in zip(after, before, strict=True):
        assert torch.allclose(6 * small, whole, atol=1e-5)


@pytest.mark.parametrize("seed", [4, 9])
def test_a_small_start_alone_is_not_always_enough(book, seed):
    """Of ten seeds, three stay near the frequencies without a warm-up."""
    ended = {}
    for name, norm_first, warm_up in (
        ("small", False, 1),
        ("warm", False, 20),
        ("pre-norm", True, 1),
    ):
        model = book["narrow_model"]("whole", 8, norm_first)
        book["initialise"](model, seed)
        if not norm_first:
            book["start_small"](model)
        book["learn_warm"](model, book["train_rows"], warm_up)
        ended[name] = book["name_loss"](model, book["held_rows"]).item()
    assert ended["small"] > 2.95
    assert max(ended["warm"], ended["pre-norm"]) < 2.9
