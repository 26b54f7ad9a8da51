"""The chapter on heads: what its checkers say, its layers and functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tools.notebooks import Notebook, definitions
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")

# Right and wrong answers


def joined(heads):
    return np.concatenate(list(heads.swapaxes(0, 1)), axis=-1)


def by_view(x, num_heads):
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def split(x, num_heads):
    batch_size, seq_len, _ = x.shape
    return x.reshape(batch_size, seq_len, num_heads, -1).swapaxes(1, 2)


def brackets(heads):
    batch_size, num_heads, seq_len, d_head = heads.shape
    return heads.reshape(batch_size, seq_len, num_heads * d_head)


def layer(split=split, merge=joined, of_model=False, last=True):
    """Return an answer to exercise 3 with the given mistakes."""

    def answer(query, key, value, matrices, biases, num_heads):
        query, key, value = (
            split(x @ matrices[i] + biases[i], num_heads)
            for i, x in enumerate((query, key, value))
        )
        width = query.shape[-1] * (num_heads if of_model else 1)
        scores = query @ key.swapaxes(-2, -1) / math.sqrt(width)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        merged = merge(weights @ value)
        return merged @ matrices[3] + biases[3] if last else merged

    return answer


def reordered(shape, axes):
    def answer(rows, num_heads):
        return rows.reshape(shape).transpose(axes).reshape(rows.shape)

    return answer


def folded(extra=lambda m, b: b[2] @ m[3], keep=(1, 0, 0, 1)):
    """Return an answer to exercise 5 that adds extra(m, b) to the output."""

    def answer(matrices, biases):
        new = biases * np.float32(keep)[:, None]
        new[3] += extra(matrices, biases)
        return new

    return answer


def in_place(matrices, biases):
    biases[3] += biases[2] @ matrices[3]
    biases[1:3] = 0
    return biases


def concatenated(heads, order=1):
    return np.concatenate(
        [heads[:, i] for i in range(heads.shape[1])][::order], axis=-1
    )


WRONG = {
    "parameter_count": {
        "16641 is wrong for 64, 4": lambda d, h, b: (
            4 * d * (d + b) + (d == 64)
        ),
        "biases are missing": lambda d, h, b: 4 * d * d,
        "projection is missing": lambda d, h, b: 3 * d * d + 3 * d * b,
        "width d / h": lambda d, h, b: 4 * h * d * d + (3 * h + 1) * d * b,
        "for each column": lambda d, h, b: 4 * d * d + 4 * b,
        "there are fewer": lambda d, h, b: 4 * d * d + 4 * d,
    },
    "merge_by_loop": {
        "are added up": lambda heads: heads.sum(axis=1),
        "along the tokens": lambda heads: np.concatenate(
            list(heads.swapaxes(0, 1)), axis=1
        ),
        "only brackets": brackets,
        "last head comes first": lambda heads: concatenated(heads, order=-1),
        "right, but by swapaxes": joined,
    },
    "numpy_multi_head": {
        "the split lacks": layer(split=by_view),
        "the merge lacks": layer(merge=brackets),
        "both lack": layer(split=by_view, merge=brackets),
        "not by sqrt(d)": layer(of_model=True),
        "projection is missing": layer(last=False),
    },
    "repack": {
        "nothing moved": lambda rows, h: rows,
        "the way back": reordered((4, 3, 2, 8), (1, 0, 2, 3)),
        "(H, K, 3)": reordered((3, 4, 2, 8), (1, 2, 0, 3)),
        "(3, K, H)": reordered((3, 4, 2, 8), (0, 2, 1, 3)),
        "always 4": reordered((3, 4, 2, 8), (1, 0, 2, 3)),
    },
    "fold_biases": {
        "still have a bias": folded(keep=(1, 1, 0, 1)),
        "queries' bias matters": folded(keep=(0, 0, 0, 1)),
        "it reaches the output": folded(lambda m, b: 0),
        "has to pass a matrix": folded(lambda m, b: b[2]),
        "output's own bias": folded(keep=(1, 0, 0, 0)),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("merge_by_loop", lambda heads: concatenated(heads).tolist()),
        ("numpy_multi_head", layer()),
        ("fold_biases", in_place),
    ],
)
def test_other_right_answer_is_accepted(book, name, answer):
    assert book[f"check_{name}"](answer).endswith(": correct.")


@pytest.mark.parametrize("kind", ["", "TF"])
def test_answer_may_come_from_a_layer(book, kind):
    """A tensor of either framework, with its gradient or without."""

    def answer(query, key, value, matrices, biases, num_heads):
        own = book[f"MultiHeadAttention{kind}"](len(biases[0]), num_heads)
        load = "load_parameters_tf" if kind else "load_parameters"
        book[load](own, matrices, biases)
        array = book["tf"].constant if kind else torch.tensor
        return own(*(array(np.float32(x)) for x in (query, key, value)))

    assert book["check_numpy_multi_head"](answer) == "Exercise 3: correct."


# Split, merge and unpack, for every type, size and stride

SIZES, SOME = st.integers(1, 4), st.integers(0, 4)


@given(
    B=SOME,
    T=SOME,
    H=SIZES,
    K=SIZES,
    kind=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    step=st.integers(1, 2),
)
def test_heads_are_split_and_merged(twins, B, T, H, K, kind, step):
    """Entry (b, h, t, k) is entry (b, t, h K + k), and back."""
    wide = np.arange(B * T * H * K * step).reshape(B, T, H * K * step)
    x = wide.astype(kind)[..., ::step]
    right = x.reshape(B, T, H, K).transpose(0, 2, 1, 3)
    pairs = zip(twins("split_heads"), twins("merge_heads"), strict=True)
    for split_heads, merge_heads in pairs:
        heads = split_heads(x, H)
        assert heads.dtype == x.dtype
        np.testing.assert_array_equal(heads, right)
        np.testing.assert_array_equal(merge_heads(heads), x)


@given(B=SOME, T=SOME, H=SIZES, K=SIZES, heads_first=st.booleans())
def test_packed_projections_are_unpacked(twins, B, T, H, K, heads_first):
    numbers = np.arange(B * T * 3 * H * K).reshape(B, T, 3 * H * K)
    order = (B, T, H, 3, K) if heads_first else (B, T, 3, H, K)
    axes = (3, 0, 2, 1, 4) if heads_first else (2, 0, 3, 1, 4)
    right = numbers.reshape(order).transpose(axes)
    for unpack in twins("unpack"):
        found = unpack(numbers, H, heads_first)
        np.testing.assert_array_equal(found, right)


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
    tf, names = book["tf"], dict(book)
    # As they are in the chapter; in a test, shape comments are assertions.
    notebook = Notebook.read(BOOK / "multi_head_attention.ipynb")
    for _, source, _ in definitions(notebook):
        exec(source, names)
    own = names["MultiHeadAttentionTF"](12, 3)
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


@given(
    T=SIZES,
    D=st.integers(3, 6),
    kind=st.sampled_from(["float32", "float64"]),
    causal=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_reach_looks_through_a_normalisation(
    book, T, D, kind, causal, seed
):
    """It is what the mask allows, and the same in both frameworks."""
    tf = book["tf"]
    mask = np.tri(T) > 0 if causal else np.ones((T, T), bool)
    x = np.random.default_rng(seed).standard_normal((1, T, D)).astype(kind)
    norm_tf = book["keras"].layers.LayerNormalization(epsilon=1e-5, dtype=kind)

    def run(query, key, value, mask):
        y = query + book["attend"](query, key, value, mask)[0]
        return torch.nn.functional.layer_norm(y, (D,))

    def run_tf(query, key, value, mask):
        return norm_tf(query + book["attend_tf"](query, key, value, mask)[0])

    found = book["reach"](run, torch.tensor(x), torch.tensor(mask))
    np.testing.assert_array_equal(found, mask)
    found_tf = book["reach_tf"](run_tf, tf.constant(x), mask)
    np.testing.assert_array_equal(found_tf, mask)


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
