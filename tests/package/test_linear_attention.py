"""States: edges of the rules, which no chapter shows.

Each test runs in both frameworks, or in the one that is installed.
"""

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="module", params=[PyTorch, TensorFlow])
def framework(request):
    return request.param()


def drawn(seed, T, K=3, V=2, lead=(2, 2), dtype="float64"):
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, *lead, T, K)).astype(dtype)
    key /= np.sqrt((key**2).sum(-1, keepdims=True))
    value = rng.normal(size=(*lead, T, V)).astype(dtype)
    decay = -rng.exponential(size=(*lead, T)).astype(dtype)
    beta = rng.random((*lead, T)).astype(dtype)
    state = rng.normal(size=(*lead, K, V)).astype(dtype)
    return query, key, value, decay, beta, state


def by_hand(query, key, value, decay, beta, state):
    """Return outputs and state of equation (5), token by token."""
    rows = []
    for t in range(query.shape[-2]):
        k = key[..., t, :, None]
        state = np.exp(decay[..., t, None, None]) * state
        said = 0 if beta is None else (k * state).sum(-2)
        wrong = value[..., t, :] - said
        wrong = wrong if beta is None else beta[..., t, None] * wrong
        state = state + k * wrong[..., None, :]
        rows.append((query[..., t, :, None] * state).sum(-2))
    return np.stack(rows, -2), state


@pytest.mark.parametrize("size", [1, 2, 5, 7, 100])
@pytest.mark.parametrize("rule", ["linear_chunk", "delta_chunk"])
def test_chunks_are_the_loop(framework, rule, size):
    *given, state = drawn(size, 7)
    if rule == "linear_chunk":
        given = given[:-1]
    wanted = by_hand(*given, *[None] * (5 - len(given)), state)
    found = framework.in_chunks(
        getattr(framework, rule),
        size,
        *map(framework.tensor, given),
        state=framework.tensor(state),
    )
    for ours, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, right, atol=1e-10)


@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3)])
def test_any_axes_before_the_tokens(framework, lead):
    given = drawn(0, 4, lead=lead)
    found = framework.delta_chunk(*map(framework.tensor, given))
    for ours, right in zip(found, by_hand(*given), strict=True):
        np.testing.assert_allclose(ours, right, atol=1e-10)


def test_a_strong_decay_begins_anew(framework):
    """Nothing before such a token is left."""
    query, key, value, decay, beta, state = drawn(0, 5, dtype="float32")
    decay[..., 0] = -1e4
    given = map(framework.tensor, (query, key, value, decay, beta, state))
    output, _ = framework.in_chunks(
        framework.delta_chunk, 1, *[*given][:-1], state=framework.tensor(state)
    )
    wanted, _ = by_hand(query, key, value, decay, beta, state * 0)
    np.testing.assert_allclose(output, wanted, atol=1e-5)


@pytest.mark.parametrize("pace", [0.0, -0.5, -4.0, -80.0])
def test_factors_of_long_chunks_are_finite(framework, pace):
    decay = np.full((1, 200), pace, "float32")
    found = np.asarray(framework.decay_mask(framework.tensor(decay)))[0]
    apart = np.arange(200)[:, None] - np.arange(200)
    with np.errstate(under="ignore"):
        wanted = np.exp(pace * np.maximum(apart, 0)) * (apart >= 0)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_row_of_zeros_has_no_direction(framework):
    rows = framework.tensor(np.zeros((1, 3), "float32"))
    assert not np.asarray(framework.unit(rows)).any()


def test_a_convolution_goes_on(framework):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, 6, 3)), rng.normal(size=(3, 4))
    none = np.zeros((2, 3, 3))
    x, kernel, none = map(framework.tensor, (x, kernel, none))
    whole, past = framework.short_conv(x, kernel, none)
    first, kept = framework.short_conv(x[:, :1], kernel, none)
    later, kept = framework.short_conv(x[:, 1:], kernel, kept)
    np.testing.assert_allclose(np.concatenate([first, later], 1), whole)
    np.testing.assert_allclose(kept, past)
    np.testing.assert_allclose(past, x[:, 3:])


def test_a_bias_is_added_before_silu(framework):
    x, kernel, bias = np.zeros((1, 2, 3)), np.ones((3, 4)), np.arange(3.0)
    given = map(framework.tensor, (x, kernel, np.zeros((1, 3, 3)), bias))
    found, _ = framework.short_conv(*given)
    np.testing.assert_allclose(found[0, 1], bias / (1 + np.exp(-bias)))
