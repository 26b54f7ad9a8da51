"""What the package computes in half precision, and of whole numbers.

Each test runs in both frameworks, or in the one that is installed. The
reference is in float64, of the same rounded numbers.
"""

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

pytestmark = pytest.mark.xdist_group("frameworks")

EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
HALF = ["float16", "bfloat16"]
WHOLE = ["int32", "int64"]


@pytest.fixture(params=[PyTorch, TensorFlow])
def framework(request):
    return request.param("float32")


# Attention in tiles


def near(level, T=16, S=24, K=8, V=5):
    """Return query, key, value and a mask, all scores near a level."""
    rng = np.random.default_rng(level)
    column = np.sqrt(level * np.sqrt(K + 1))
    query, key = (
        np.append(rng.normal(size=(n, K)), np.full((n, 1), column), axis=1)
        for n in (T, S)
    )
    mask = rng.random((T, S)) < 0.7
    mask[3] = False
    return query, key, rng.normal(size=(S, V)), mask


def attention(query, key, value, mask):
    """Return the output and the log-sums in float64, in NumPy."""
    scores = query @ key.T / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    total = np.logaddexp.reduce(scores, axis=-1)
    some = np.where(np.isneginf(total), 0, total)
    return np.exp(scores - some[:, None]) @ value, total


def gradients(query, key, value, mask, pull):
    """Return the gradients by query, key and value in float64, in NumPy."""
    root = np.sqrt(query.shape[-1])
    weights, _ = attention(query, key, np.eye(len(key)), mask)
    weight_grad = pull @ value.T
    mean = (weights * weight_grad).sum(axis=-1, keepdims=True)
    score_grad = weights * (weight_grad - mean) / root
    return score_grad @ key, score_grad.T @ query, weights.T @ pull


def steps_of_scores(level, dtype):
    """Return how far apart scores are, in the type that computes them."""
    step = min(EPSILON[dtype], EPSILON["float32"])
    return 16 * step * max(level, 1)


@pytest.mark.parametrize("level", [0, 10, 100, 20_000])
@pytest.mark.parametrize("dtype", EPSILON)
def test_tiles_are_as_exact_as_their_numbers(framework, dtype, level):
    *given, mask = near(level)
    given = [framework.tensor(x, dtype) for x in given]
    wanted = attention(*map(framework.wide, given), mask)
    mask = framework.tensor(mask, "bool")
    coarse = steps_of_scores(level, dtype)
    fine = "float64" if dtype == "float64" else "float32"
    for found, rounded in [
        (framework.attend_with_sum(*given, mask), fine),
        (framework.attend_in_tiles(*given, mask, 5), dtype),
        (framework.attend_in_tiles(*given, mask, 64), dtype),
    ]:
        assert [framework.kind(x) for x in found] == [rounded, fine]
        output, total = map(framework.wide, found)
        most = abs(wanted[0]).max()
        error = (coarse + EPSILON[rounded]) * most
        np.testing.assert_allclose(output, wanted[0], rtol=0, atol=error)
        np.testing.assert_allclose(total, wanted[1], rtol=0, atol=coarse)


@pytest.mark.parametrize("level", [0, 10, 100])
@pytest.mark.parametrize("dtype", EPSILON)
def test_gradients_are_as_exact_as_their_numbers(framework, dtype, level):
    *given, mask = near(level)
    given.append(np.cos(np.arange(16 * 5.0)).reshape(16, 5))
    *given, pull = [framework.tensor(x, dtype) for x in given]
    wanted = gradients(*map(framework.wide, given), mask, framework.wide(pull))
    mask = framework.tensor(mask, "bool")
    step = EPSILON[dtype]
    for kept, error in [
        (framework.attend_with_sum(*given, mask), step),
        (framework.attend_in_tiles(*given, mask, 5), 3 * step),
    ]:
        error += steps_of_scores(level, dtype)
        found = framework.gradients_in_tiles(*given, mask, kept, pull, 5)
        for x, y in zip(found, wanted, strict=True):
            assert framework.kind(x) == dtype
            atol = error * abs(y).max()
            np.testing.assert_allclose(framework.wide(x), y, 0, atol)


@pytest.mark.parametrize("dtype", HALF)
def test_tiles_of_two_machines_are_joined(framework, dtype):
    """Outputs come in half precision, log-sums in float32."""
    query, key, value, mask = near(10)
    given = [framework.tensor(x, dtype) for x in (query, key, value)]
    wanted, total = attention(*map(framework.wide, given), mask)
    mask = framework.tensor(mask, "bool")
    parts = [
        framework.attend_in_tiles(
            given[0], given[1][s], given[2][s], mask[:, s], 5
        )
        for s in (slice(0, 9), slice(9, 24))
    ]
    found = framework.join_attention(*parts)
    assert [framework.kind(x) for x in found] == ["float32", "float32"]
    error = 2 * EPSILON[dtype]
    np.testing.assert_allclose(found[0], wanted, atol=error)
    np.testing.assert_allclose(found[1], total, atol=1e-4)
    sink = framework.tensor(0.5, dtype)
    sunk = framework.with_sink(*parts[0], sink)
    assert framework.kind(sunk) == dtype
    output, total = map(framework.wide, parts[0])
    share = 1 / (1 + np.exp(0.5 - total))
    sunk = framework.wide(sunk)
    np.testing.assert_allclose(sunk, share[:, None] * output, atol=error)


def test_whole_values_are_averaged(framework):
    query, key, _, mask = near(1)
    value = np.arange(24 * 5).reshape(24, 5)
    *given, wide = map(framework.tensor, (query, key, value))
    whole = framework.tensor(value, "int64")
    mask = framework.tensor(mask, "bool")
    wanted, _ = framework.attend_with_sum(*given, wide, mask)
    output, _ = framework.attend_in_tiles(*given, whole, mask, 5)
    assert framework.kind(output) == "float32"
    np.testing.assert_allclose(output, wanted, rtol=1e-5)


# Norms


@pytest.mark.parametrize("dtype", EPSILON)
def test_rows_of_equal_numbers_become_zeros(framework, dtype):
    """Exactly: the mean of 511 times -6573.8 is not that number."""
    rng = np.random.default_rng(0)
    for width in (3, 12, 511):
        rows = rng.uniform(-6e4, 6e4, size=(200, 1)).repeat(width, axis=1)
        found = framework.normalise(framework.tensor(rows, dtype))
        assert framework.kind(found) == dtype
        assert not framework.wide(found).any()


@pytest.mark.parametrize("dtype", EPSILON)
def test_a_first_column_far_from_the_others_spoils_no_norm(framework, dtype):
    rows = np.random.default_rng(1).normal(size=(50, 64))
    rows[:, 0] = 1000
    given = framework.tensor(rows, dtype)
    wide = framework.wide(given)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    variance = wide.var(axis=-1, keepdims=True)
    wanted = centred / np.sqrt(variance + 1e-5)
    found = framework.wide(framework.normalise(given))
    error = EPSILON[dtype] if dtype in HALF else 16 * EPSILON[dtype]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error * 8)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
@pytest.mark.parametrize("dtype", WHOLE)
def test_norms_widen_whole_numbers(framework, name, dtype):
    rows = np.array([[1, 1, 5, 5], [-10, 10, 50, 50]])
    norm = framework.layer(name, 4, dtype="float32")
    found = norm(framework.tensor(rows, dtype))
    assert framework.kind(found) == "float32"
    wanted = framework.wide(norm(framework.tensor(rows)))
    assert np.array_equal(framework.wide(found), wanted)
    assert (wanted % 1).all()


def test_a_gate_cuts_no_whole_numbers(framework):
    """PyTorch's linear layers refuse them, and Keras' widen them."""
    x = np.arange(6).reshape(2, 3)
    layer = framework.layer("SwiGLU", 3, 5, dtype="float32")
    wanted = framework.wide(layer(framework.tensor(x)))
    try:
        found = layer(framework.tensor(x, "int64"))
    except RuntimeError as error:
        assert "type" in str(error)
    else:
        assert framework.kind(found) == "float32"
        assert np.array_equal(framework.wide(found), wanted)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "SwiGLU"])
@pytest.mark.parametrize("dtype", HALF)
def test_layers_in_half_precision_are_near_those_in_float64(
    framework, name, dtype
):
    """Squares of the first row's numbers are more than float16 holds."""
    x = np.random.default_rng(2).normal(size=(9, 8))
    if name != "SwiGLU":
        x[0] *= 1000
    sizes = [8, 16] if name == "SwiGLU" else [8]
    layer = framework.layer(name, *sizes, dtype=dtype)
    wide = framework.layer(name, *sizes, dtype="float64")
    framework.draw_weights(layer, seed=0)
    framework.draw_weights(wide, seed=0)
    x = framework.tensor(x, dtype)
    found = layer(x)
    wanted = wide(framework.tensor(framework.wide(x), "float64"))
    wanted = framework.wide(wanted)
    assert framework.kind(found) == dtype
    error = 4 * EPSILON[dtype] * abs(wanted).max()
    np.testing.assert_allclose(framework.wide(found), wanted, atol=error)


# Rotary positions

ROTARY = ["rotary", "rotary_halves"]


@pytest.mark.parametrize("name", ROTARY)
@pytest.mark.parametrize("dtype", [*EPSILON, *WHOLE])
def test_turns_are_as_exact_as_their_numbers(framework, name, dtype):
    """At far positions, which half precision cannot tell apart."""
    x = np.round(9 * np.random.default_rng(3).normal(size=(4, 16)))
    where = np.array([0, 257, 4099, 60_001])
    positions = framework.tensor(where, "int64")
    turn = getattr(framework, name)
    found = turn(framework.tensor(x, dtype), positions)
    assert framework.kind(found) == ("float32" if dtype in WHOLE else dtype)
    wanted = turn(framework.tensor(x, "float64"), positions)
    error = EPSILON[framework.kind(found)]
    if dtype != "float64":
        error += 60_001 * EPSILON["float32"]
    np.testing.assert_allclose(
        framework.wide(found), wanted, rtol=0, atol=error * abs(x).max()
    )


@pytest.mark.parametrize("name", [*ROTARY, "cosines_and_sines"])
@pytest.mark.parametrize(
    ("width", "turns"), [(3, 2), (6, 1), (4, 4), (8, 3), (2, 0)]
)
def test_frequencies_have_to_fit(framework, name, width, turns):
    x = framework.tensor(np.ones((2, width)))
    positions = framework.tensor([0, 1], "int64")
    says = f"x has {width} columns, not {2 * turns}"
    with pytest.raises(ValueError, match=says):
        getattr(framework, name)(x, positions, np.ones(turns))


@pytest.mark.parametrize("name", ROTARY)
@pytest.mark.parametrize("base", [10_000.0, np.ones(2), [1.0, 0.5]])
def test_turns_are_made_where_the_numbers_are(name, base):
    """PyTorch's meta device stands for a GPU; the positions are elsewhere."""
    framework = PyTorch("float32")
    x = framework.torch.ones(3, 4, device="meta")
    turn = getattr(framework, name)
    assert turn(x, framework.torch.arange(3), base).device == x.device


@pytest.mark.parametrize("dtype", EPSILON)
def test_weights_are_drawn_where_they_are(dtype):
    framework = PyTorch("float32")
    layer = framework.layer("FeedForward", 4, 6, dtype=dtype)
    framework.draw_weights(layer, seed=0)
    assert {framework.kind(x) for x in layer.parameters()} == {dtype}
    framework.draw_weights(layer.to("meta"), seed=0)
    assert {str(x.device) for x in layer.parameters()} == {"meta"}


# The loss


@pytest.mark.parametrize("target", [-100, -1, 4, 9])
@pytest.mark.parametrize("dtype", WHOLE)
def test_targets_that_are_no_tokens_are_refused(framework, target, dtype):
    logits = framework.tensor(np.zeros((1, 3, 4)))
    target_ids = framework.tensor([[1, 3, target]], dtype)
    with pytest.raises(framework.refused):
        framework.smoothed_loss(logits, target_ids)
    with pytest.raises(framework.refused):
        framework.smooth_targets(target_ids, 4)


@pytest.mark.parametrize("dtype", HALF)
def test_a_loss_in_half_precision_is_that_of_float32(framework, dtype):
    logits = np.random.default_rng(4).normal(size=(2, 3, 500))
    logits = framework.tensor(logits, dtype)
    target_ids = framework.tensor([[1, 499, 0], [7, 8, 9]], "int64")
    found = framework.smoothed_loss(logits, target_ids)
    assert framework.kind(found) == "float32"
    logits = framework.tensor(framework.wide(logits), "float64")
    wanted = framework.smoothed_loss(logits, target_ids)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


# A mixture of experts


def test_of_equal_experts_the_first_are_asked(framework):
    """PyTorch's topk does not say which of them it takes."""
    scores = np.random.default_rng(0).integers(0, 3, (64, 8))  # (B, C)
    order = np.argsort(-scores, axis=-1, kind="stable")
    for count in (1, 3, 7):
        found = framework.router_shares(
            framework.tensor(scores * 1.0), count, 1
        )
        asked = np.zeros(scores.shape, bool)
        np.put_along_axis(asked, order[:, :count], True, axis=-1)
        assert np.array_equal(framework.wide(found) > 0, asked)


# Checks


def test_no_checks_are_enough_for_a_row_that_passes_them_all():
    rows = {"wrong": {"u": False, "v": True}, "right": {"u": True, "v": True}}
    from cellbycell.common.positional_encoding import smallest_sets

    with pytest.raises(ValueError, match="every check passes right$"):
        smallest_sets(rows)
