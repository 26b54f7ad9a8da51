"""The chapter on tiles: its functions."""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend

pytestmark = pytest.mark.xdist_group("frameworks")


# What the chapter defines, beyond the sizes that it shows


def drawn(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [3 * rng.standard_normal(shape) for shape in shapes]


def whole(query, key, value, mask):
    """Return the output of attention and its log-sums, in NumPy."""
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    total = np.logaddexp.reduce(scores, axis=-1)
    some = np.where(np.isneginf(total), 0, total)
    return np.exp(scores - some[..., None]) @ value, total


SIZES = st.integers(1, 6)


@given(T=SIZES, S=SIZES, V=SIZES, size=SIZES, seed=st.integers(0, 99))
def test_tiles_of_any_mask_are_the_whole(twins, T, S, V, size, seed):
    """Queries without a key included."""
    given = drawn(seed, (2, T, 4), (2, S, 4), (2, S, V))
    mask = np.random.default_rng(seed).random((2, T, S)) < 0.5
    wanted = whole(*given, mask)
    for attend_in_tiles in twins("attend_in_tiles"):
        found = attend_in_tiles(*given, mask, size)
        for x, y in zip(found, wanted, strict=True):
            assert x.dtype == np.float64
            np.testing.assert_allclose(x, y, atol=1e-12)
    for attend_with_sum in twins("attend_with_sum"):
        for x, y in zip(attend_with_sum(*given, mask), wanted, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)


@given(T=SIZES, S=SIZES, V=SIZES, size=SIZES, seed=st.integers(0, 99))
def test_gradients_in_tiles_are_those_of_pytorch(book, T, S, V, size, seed):
    tf = book["tf"]
    *given, pull = drawn(seed, (T, 4), (S, 4), (S, V), (T, V))
    mask = np.random.default_rng(seed).random((T, S)) < 0.5
    leaves = [torch.tensor(x, requires_grad=True) for x in given]
    torch_mask = torch.tensor(mask)
    kept = book["attend_with_sum"](*leaves, torch_mask)
    pulled = torch.tensor(pull)
    wanted = torch.autograd.grad(kept[0], leaves, pulled)
    kept = [x.detach() for x in kept]
    plain = [x.detach() for x in leaves]
    found = book["gradients_in_tiles"](*plain, torch_mask, kept, pulled, size)
    found_tf = book["gradients_in_tiles_tf"](
        *map(tf.constant, given),
        tf.constant(mask),
        [tf.constant(x.numpy()) for x in kept],
        tf.constant(pull),
        size,
    )
    for x, x_tf, y in zip(found, found_tf, wanted, strict=True):
        assert y.isfinite().all()
        np.testing.assert_allclose(x, y, atol=1e-12)
        np.testing.assert_allclose(x_tf, y, atol=1e-12)


@given(T=SIZES, S=SIZES, V=SIZES, size=SIZES, seed=st.integers(0, 99))
def test_streaming_is_the_whole(book, T, S, V, size, seed):
    given = drawn(seed, (T, 4), (S, 4), (S, V))
    wanted, _ = whole(*given, np.full((T, S), True))
    streaming = book["attend_streaming"](*given, size)
    np.testing.assert_allclose(streaming, wanted, atol=1e-12)
    by_whole = book["attend_whole"](*given)
    np.testing.assert_allclose(by_whole, wanted, atol=1e-12)


def test_tiles_that_are_blocked_throughout_spoil_no_gradient(book):
    """Of the frameworks' own backward pass; query 2 has no key at all."""
    tf = book["tf"]
    given = [x.astype("float32") for x in drawn(0, (5, 4), (5, 4), (5, 2))]
    mask = np.tri(5) > 0
    mask[2] = False
    leaves = [torch.tensor(x, requires_grad=True) for x in given]
    out, _ = book["attend_in_tiles"](*leaves, torch.tensor(mask), 2)
    found = torch.autograd.grad(out.square().sum(), leaves)
    variables = [tf.Variable(x) for x in given]
    with tf.GradientTape() as tape:
        out, _ = book["attend_in_tiles_tf"](*variables, tf.constant(mask), 2)
        loss = tf.reduce_sum(out**2)
    twin = tape.gradient(loss, variables)
    for x, x_tf in zip(found, twin, strict=True):
        assert x.isfinite().all()
        np.testing.assert_allclose(x, x_tf, atol=1e-4)


def test_joining_is_a_sum_with_a_zero(book):
    """Any order, any brackets, and an empty set that changes nothing."""
    out, total = drawn(0, (3, 5, 2), (3, 5))
    none = np.zeros((5, 2)), np.full(5, -np.inf)
    for join, tensor in [
        (book["join_attention"], torch.tensor),
        (book["join_attention_tf"], book["tf"].constant),
    ]:
        a, b, c, zero = (
            (tensor(x), tensor(y))
            for x, y in [*zip(out, total, strict=True), none]
        )
        for one, two in [
            (join(join(a, b), c), join(a, join(c, b))),
            (join(a, zero), a),
            (join(zero, a), a),
            (join(zero, zero), zero),
        ]:
            for x, y in zip(one, two, strict=True):
                np.testing.assert_allclose(x, y, atol=1e-12)


def test_a_sink_far_below_takes_nothing_and_far_above_takes_all(twins):
    out, total = drawn(0, (3, 5, 2), (3, 5))
    for with_sink in twins("with_sink"):
        np.testing.assert_allclose(with_sink(out, total, total - 90), out)
        np.testing.assert_allclose(with_sink(out, total, total), out / 2)
        assert abs(with_sink(out, total, total + 90)).max() < 1e-30


def test_in_one_tile_only_low_scores_show_a_finite_fill(book):
    query, key, value = book["query"], book["key"], book["value"]
    mask, size = book["causal_mask"], query.shape[-2]
    right, wrong = (
        book["mistakes"][name] for name in ("no mistake", "a finite fill")
    )
    for level, seen in [(0, False), (-20_000, True)]:
        queries = query + level * 2
        keys = key * (level == 0) + (level < 0)
        given_ = queries, keys, value, mask, size
        assert book["differs"](wrong(*given_)[0], right(*given_)[0]) == seen


# What the chapter says about PyTorch


def kept_bytes(attention, given):
    """Return the bytes that a call keeps for gradients, beyond its inputs."""
    kept = {}

    def note(x):
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        output = attention(*given)  # alive, so that no address is used twice
    assert output.requires_grad
    inputs = {x.untyped_storage().data_ptr() for x in given}
    return sum(size for place, size in kept.items() if place not in inputs)


def test_what_is_kept_for_the_backward_pass(book):
    T, K = 1024, book["wide_head"]
    given = [torch.randn(1, 1, T, K, requires_grad=True) for _ in range(3)]
    mask = book["make_causal_mask"](T)
    whole = kept_bytes(lambda *x: book["attend"](*x, mask)[0], given)
    library = functools.partial(F.scaled_dot_product_attention, is_causal=True)
    assert whole == 4 * T**2 + T**2  # the weights, and the mask
    assert kept_bytes(library, given) == 4 * T * (K + 1)


@pytest.mark.parametrize(
    ("change", "backend"),
    [
        ({}, SDPBackend.FLASH_ATTENTION),
        ({"is_causal": True}, SDPBackend.FLASH_ATTENTION),
        ({"attn_mask": "plain"}, SDPBackend.FLASH_ATTENTION),
        ({"attn_mask": "learns"}, SDPBackend.MATH),
        ({"dropout_p": 0.1}, SDPBackend.MATH),
        ({"width": 2}, SDPBackend.MATH),
        ({"batch": 0}, SDPBackend.MATH),
    ],
)
def test_what_disables_the_tiles_on_a_cpu(book, change, backend):
    query, key, value = book["query"], book["key"], book["value"]
    change = dict(change)
    value = value[..., : change.pop("width", None)]
    if change.pop("batch", None) == 0:
        query, key, value = query[0], key[0], value[0]
    if mask := change.pop("attn_mask", None):
        zeros = torch.zeros(query.shape[-2], key.shape[-2])
        change["attn_mask"] = zeros.requires_grad_(mask == "learns")
    chosen = torch._fused_sdp_choice(query, key, value, **change)
    assert SDPBackend(chosen) == backend


def test_keras_has_no_tiles_on_tensorflow(book):
    x = book["tf"].zeros((1, 2, 1, 4))
    attention = book["keras"].ops.dot_product_attention
    with pytest.raises(ValueError, match="not supported in tensorflow"):
        attention(x, x, x, flash_attention=True)


@given(T=SIZES, S=SIZES, V=SIZES, size=SIZES, seed=st.integers(0, 99))
def test_causal_tiles_are_causal(twins, T, S, V, size, seed):
    given = drawn(seed, (T, 4), (S, 4), (S, V))
    wanted, _ = whole(*given, np.tri(T, S) > 0)
    for causal_in_tiles in twins("causal_in_tiles"):
        found = causal_in_tiles(*given, size)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
