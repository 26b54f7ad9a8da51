"""The chapter on heads: its layers, its functions, and what it claims."""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")

# Split and unpack


@pytest.mark.parametrize("heads_first", [False, True])
def test_packed_projections_are_unpacked(twins, heads_first):
    numbers = np.arange(2 * 5 * 24).reshape(2, 5, 24)  # 2 heads of width 4
    order = (2, 5, 2, 3, 4) if heads_first else (2, 5, 3, 2, 4)
    axes = (3, 0, 2, 1, 4) if heads_first else (2, 0, 3, 1, 4)
    right = numbers.reshape(order).transpose(axes)
    for unpack in twins("unpack"):
        assert np.array_equal(unpack(numbers, 2, heads_first), right)


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("num_heads", [0, -1, 4, 11])
def test_heads_that_do_not_divide_the_width(
    book, twins, num_heads, batch_size
):
    says = f"d_model=10 cannot be divided among {num_heads} heads; num_heads"
    for split_heads in twins("split_heads"):
        with pytest.raises(ValueError, match=says):
            split_heads(np.zeros((batch_size, 5, 10)), num_heads)
    for layer_class in ("MultiHeadAttention", "MultiHeadAttentionTF"):
        with pytest.raises(ValueError, match=says):
            book[layer_class](10, num_heads)


# The layers


def test_a_mask_may_differ_from_head_to_head(book):
    own, x = book["layer"], book["x"]
    mask = torch.ones(2, 3, 5, 5, dtype=torch.bool)
    mask[:, 1] = torch.eye(5, dtype=torch.bool)
    _, weights = own(x, x, x, mask, need_weights=True)
    assert torch.equal(weights[:, 1], torch.eye(5).expand(2, 5, 5))
    assert (weights[:, [0, 2]] > 0).all()


def test_the_layers_take_an_empty_batch(book):
    for kind, library in (("", "torch"), ("_tf", "tf")):
        x = book[library].zeros((0, 5, 12))
        assert tuple(book[f"layer{kind}"](x, x, x).shape) == (0, 5, 12)


def test_the_keras_layer_works_in_a_compiled_function_of_any_size(book):
    # The package's: in a test, shape comments of the chapter are assertions.
    from cellbycell.tensorflow import MultiHeadAttentionTF

    tf, own = book["tf"], MultiHeadAttentionTF(12, 3)
    book["load_parameters_tf"](own, book["matrices"], book["biases"])
    spec = tf.TensorSpec((None, None, 12), tf.float32)
    compiled = tf.function(lambda x: own(x, x, x), input_signature=[spec])
    for x in (book["x_tf"], book["memory_tf"][:1]):
        wanted = book["layer_tf"](x, x, x)
        assert np.allclose(compiled(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_the_layer_by_view_is_the_layer_with_its_split_and_merge(book, kind):
    own, x, mask = (
        book[f"{name}{kind}"] for name in ("layer", "x", "causal_mask")
    )
    upper = kind.removeprefix("_").upper()
    moves = {move: book[f"{move}_heads{kind}"] for move in ("split", "merge")}
    other = book[f"AttentionByView{upper}"](12, 3, **moves)
    book[f"load_parameters{kind}"](other, book["matrices"], book["biases"])
    for given_ in ((x, x, x), (x, x, x, mask)):
        found, right = other(*given_), own(*given_)
        if not kind:
            found, right = found.detach(), right.detach()
        assert np.allclose(found, right, rtol=1e-4, atol=1e-5)


def test_what_the_sublayers_add_to_what(book):
    given_ = 2, 3, lambda x: 10 * x, lambda x: x + 1
    assert book["mended_sublayer"](*given_) == (10 * (3 + 2 + 1) + 3) + 1
    assert book["residual_sublayer"](*given_) == (2 + 10 * 3) + 1


# Which position reaches which


@pytest.mark.parametrize("causal", [False, True])
def test_the_reach_looks_through_a_normalisation(book, causal):
    """It is what the mask allows, and the same in both frameworks."""
    tf = book["tf"]
    mask = np.tri(4) > 0 if causal else np.ones((4, 4), bool)
    x = np.float32(np.random.default_rng(0).standard_normal((1, 4, 5)))
    norm_tf = book["keras"].layers.LayerNormalization(epsilon=1e-5)

    def run(query, key, value, mask):
        y = query + book["attend"](query, key, value, mask)[0]
        return torch.nn.functional.layer_norm(y, (5,))

    def run_tf(query, key, value, mask):
        return norm_tf(query + book["attend_tf"](query, key, value, mask)[0])

    found = book["reach"](run, torch.tensor(x), torch.tensor(mask))
    assert np.array_equal(found, mask)
    assert np.array_equal(book["reach_tf"](run_tf, tf.constant(x), mask), mask)


def test_what_depends_on_nothing_has_no_reach(book):
    tf = book["tf"]
    x, x_tf = torch.ones(1, 3, 4), tf.ones((1, 3, 4))
    nothing = book["reach"](lambda *given_: torch.ones(1, 3, 4), x)
    assert not nothing.any()
    nothing_tf = book["reach_tf"](lambda *given_: x_tf, x_tf)
    assert not nothing_tf.numpy().any()


# What more heads learn


@pytest.mark.parametrize("seed", [1, 2])
def test_more_heads_learn_more_from_other_seeds_too(book, seed):
    """And one head learns both letters in time."""
    nn, attention = torch.nn, book["MultiHeadAttention"]

    def trained(sizes, heads, rows, steps=300, **given_):
        count, width, classes = sizes
        model = nn.Sequential(
            nn.Embedding(count, width),
            book["AddPositions"](),
            book["SelfAttention"](attention(width, heads)),
            nn.Linear(width, classes),
        )
        book["initialise"](model, seed)
        book["learn"](model, rows, steps, seed=seed, **given_)
        return model

    def right(heads, steps):
        given_ = {"rate": 0.02, "loss_of": book["pair_loss"]}
        model = trained(
            (10, 32, 100), heads, book["letter_rows"], steps, **given_
        )
        logits = model(torch.tensor(book["new_rows"]))[:, 3:]
        return (logits.argmax(-1).numpy() == book["new_pairs"]).mean()

    assert 0.3 < right(1, 200) < 0.5 < 0.98 < right(2, 200)
    assert 0.8 < right(1, 600) < 0.9
    found = [
        book["name_loss"](
            trained((30, 48, 30), heads, book["train_rows"]), book["held_rows"]
        ).item()
        for heads in (1, 4)
    ]
    assert found[0] > found[1] + 0.02
