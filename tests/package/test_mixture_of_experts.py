"""Experts and latents: edges of what the package has.

Each test runs in both frameworks, or in the one that is installed.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

from cellbycell.common import deepseek_config

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="module", params=[PyTorch, TensorFlow])
def framework(request):
    return request.param()


def test_equal_scores_choose_the_first(framework):
    scores = framework.tensor(np.zeros((2, 5)))
    chosen, shares = framework.choose(scores, 3)
    assert np.asarray(chosen).tolist() == [[0, 1, 2]] * 2
    np.testing.assert_allclose(shares, np.full((2, 3), 1 / 3))
    _, shares = framework.choose(scores, 3, to_one=False)
    np.testing.assert_allclose(shares, np.full((2, 3), 1 / 5))
    bias = framework.tensor(np.zeros(5))
    chosen, shares = framework.choose_with_bias(scores, bias, 2, to_one=False)
    assert np.asarray(chosen).tolist() == [[0, 1]] * 2
    np.testing.assert_allclose(shares, np.full((2, 2), 0.5))


def test_an_expert_without_rows_and_no_tokens(framework):
    x = framework.tensor(np.arange(6.0).reshape(3, 2))
    chosen = framework.tensor([[3, 0], [0, 1], [3, 1]])
    shares = framework.tensor(np.ones((3, 2)))
    factors = (1.0, 10.0, 1000.0, 100.0)
    experts = [lambda rows, by=by: by * rows for by in factors]
    found = framework.by_sorting(x, chosen, shares, experts)
    np.testing.assert_allclose(found, [[0, 101], [22, 33], [440, 550]])
    nothing = framework.by_sorting(x[:0], chosen[:0], shares[:0], experts)
    assert nothing.shape == (0, 2)


def test_pairs_are_sorted_stably(framework):
    chosen = framework.tensor([[1, 0], [0, 1], [3, 0]])
    order, counts = framework.sort_pairs(chosen, 5)
    assert np.asarray(order).tolist() == [1, 2, 5, 0, 3, 4]
    assert np.asarray(counts).tolist() == [3, 2, 0, 1, 0]


def test_even_and_collapsed_loads(framework):
    even = framework.tensor(30.0 * np.eye(4))
    one = framework.tensor(30.0 * np.eye(4)[[2] * 4])
    assert float(framework.balance_loss(even, 1)) == pytest.approx(1)
    assert float(framework.balance_loss(one, 1)) == pytest.approx(4)
    same = framework.tensor(np.zeros((4, 4)))
    assert float(framework.balance_loss(same, 2)) == pytest.approx(2)


def test_the_bias_moves_against_the_load(framework):
    chosen = framework.tensor([[0, 1], [0, 1], [0, 2]])
    bias = framework.tensor(np.zeros(4, "float32"))
    moved = framework.update_router_bias(bias, chosen, 0.5)
    np.testing.assert_allclose(moved, [-0.5, -0.5, 0.5, 0.5])


def test_the_bias_is_not_in_the_shares(framework):
    scores = framework.tensor(np.array([[0.0, 1.0, 2.0]]))
    bias = framework.tensor(np.array([5.0, 0.0, 0.0]))
    chosen, shares = framework.choose_with_bias(scores, bias, 1, to_one=False)
    assert np.asarray(chosen).tolist() == [[0]]
    np.testing.assert_allclose(shares, [[0.5]])


def test_only_the_best_groups_are_chosen(framework):
    config = SimpleNamespace(n_group=3, topk_group=1)
    scores = framework.tensor(np.array([[9.0, -9, 1, 1, -9, -9]]))
    bias = framework.tensor(np.full(6, -2.0))
    found = framework.bias_by_groups(scores, bias, config)
    none = -np.inf
    np.testing.assert_array_equal(found, [[none, none, -2, -2, none, none]])


@pytest.mark.parametrize("absorbed", [False, True])
def test_steps_are_the_whole(framework, absorbed):
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 5, 4), (2, 3, 5, 2), (2, 5, 6), (2, 5, 2)]
    shapes += [(3, 4, 6), (3, 5, 6)]
    given = [framework.tensor(rng.normal(size=s)) for s in shapes]
    query, turned, latent, shared, *ups = given
    whole = framework.attend_latents(*given, absorbed)
    assert whole.shape == (2, 3, 5, 5)
    last = framework.attend_latents(
        query[:, :, 3:], turned[:, :, 3:], latent, shared, *ups, absorbed
    )
    np.testing.assert_allclose(last, whole[:, :, 3:])
    first = framework.attend_latents(
        query[:, :, :2],
        turned[:, :, :2],
        latent[:, :2],
        shared[:, :2],
        *ups,
        not absorbed,
    )
    np.testing.assert_allclose(first, whole[:, :, :2])


def test_an_empty_config_is_refused():
    with pytest.raises(ValueError, match="model_type"):
        deepseek_config({})
