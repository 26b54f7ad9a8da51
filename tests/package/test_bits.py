"""Edges of quantising, in the frameworks that are installed."""

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(params=[PyTorch, TensorFlow])
def framework(request):
    return request.param("float32")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def as_groups(w, group):
    return np.asarray(w, "float32").reshape(*w.shape[:-1], -1, group)


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 3, 6)])
@pytest.mark.parametrize("group", [1, 3, 6])
def test_no_weight_is_wrong_by_more_than_half_a_step(
    framework, bits, shape, group
):
    w, top = normal(*shape), 2 ** (bits - 1) - 1
    whole, scale = framework.quantise(framework.tensor(w), bits, group)
    parts, whole = as_groups(w, group), np.asarray(whole)
    largest = np.abs(parts).max(-1, keepdims=True)
    np.testing.assert_allclose(scale, largest / top, rtol=1e-6)
    assert whole.dtype == np.int8 and whole.shape == parts.shape
    assert np.all(np.abs(whole).max(-1) == top)
    found = framework.restore(framework.tensor(whole, "int8"), scale)
    assert found.shape == w.shape
    wrong = np.abs(as_groups(np.asarray(found), group) - parts)
    assert np.all(wrong <= np.asarray(scale) * 0.5001)


def test_both_frameworks_have_the_same_numbers():
    w = normal(40, 96, seed=1)
    for bits in range(2, 9):
        found = [
            [np.asarray(x) for x in f.quantise(f.tensor(w), bits, 32)]
            for f in (PyTorch("float32"), TensorFlow("float32"))
        ]
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types_are_rounded_in_float32(framework, dtype):
    w = framework.tensor(normal(4, 64), dtype)
    wanted = framework.quantise(framework.tensor(w, "float32"), 4, 32)
    for one, other in zip(framework.quantise(w, 4, 32), wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_zeros_stay_zeros_and_spoil_no_neighbour(framework, dtype):
    w = normal(3, 64)
    w[1] = 0
    w[2, 32:] = 0
    whole, scale = framework.quantise(framework.tensor(w, dtype))
    found = np.asarray(framework.restore(whole, scale))
    assert np.isfinite(found).all()
    assert not found[1].any() and not found[2, 32:].any()
    np.testing.assert_allclose(found[0], w[0], atol=0.05)


def test_tiny_and_huge_weights(framework):
    for size in (1e-25, 1e30):
        w = normal(2, 32) * np.float32(size)
        whole, scale = framework.quantise(framework.tensor(w))
        found = np.asarray(framework.restore(whole, scale))
        np.testing.assert_allclose(found / size, w / size, atol=0.02)
    lost, _ = framework.quantise(framework.tensor(normal(2, 32) * 1e-35))
    assert not np.asarray(lost).any()


def test_columns_that_do_not_fit_raise(framework):
    with pytest.raises(Exception, match="33|66"):
        framework.quantise(framework.tensor(normal(2, 33)))


@pytest.mark.parametrize("size", [(1, 1, 1), (7, 5, 64), (2, 3, 4096)])
def test_int8_product_is_the_product_of_the_restored(framework, size):
    rows, outputs, columns = size
    x, w = normal(rows, columns), normal(outputs, columns, seed=1)
    found = framework.int8_product(framework.tensor(x), framework.tensor(w))
    rough = [
        np.asarray(
            framework.restore(
                *framework.quantise(framework.tensor(y), group=columns)
            ),
            float,
        )
        for y in (x, w)
    ]
    wanted = rough[0] @ rough[1].T
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_the_longest_row_does_not_wrap(framework):
    ones = framework.tensor(np.ones((1, 133_144)))
    found = np.asarray(framework.int8_product(ones, ones))
    np.testing.assert_allclose(found, 133_144, rtol=1e-6)
