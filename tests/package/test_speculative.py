"""Two models that write one text: the judge, the caches, the ends.

Each test runs in both frameworks, or in the one that is installed.
"""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

from cellbycell.common import cut_cache, draw, judge, read_on, residual
from cellbycell.figures.names_model import stored_weights

pytestmark = pytest.mark.xdist_group("frameworks")

P = np.array([10, 6, 3, 1]) * Fraction(1, 20)
Q = np.array([5, 9, 4, 2]) * Fraction(1, 20)


@pytest.fixture(scope="module", params=[PyTorch, TensorFlow])
def framework(request):
    made = request.param("int64")
    stored, rng = stored_weights(), np.random.default_rng(1)
    made.target = made.llama(stored)
    made.draft = made.llama(
        {
            name: w + 0.3 * w.std() * rng.normal(size=w.shape) * (w.ndim > 1)
            for name, w in stored.items()
        }
    )
    return made


class Fixed:
    """Random numbers that are given."""

    def __init__(self, uniform, winner):
        self.uniform, self.winner = uniform, winner

    def random(self, size):
        return [self.uniform] * size

    def exponential(self, size):
        return np.where(np.arange(size) == self.winner, 1e-9, 1.0)


# The judge, without a framework


def test_the_law_of_the_judge_is_the_targets(monkeypatch):
    """Each border p / q is a twelfth, so twelve uniform numbers are exact."""
    rests = []

    def drawn(probs, rng):
        rests.append(probs)
        return -1

    module = import_module("cellbycell.common.speculative")
    monkeypatch.setattr(module, "draw", drawn)
    law = 0 * P
    for token, proposed in enumerate(Q):
        for step in range(12):
            rests.clear()
            rng = Fixed(Fraction(2 * step + 1, 24), 0)
            found = judge([token], [P, P], [Q], rng)
            chance = proposed / 12
            if len(found) == 2:
                assert found == [token, -1] and rests[0] is P
                law[token] += chance
            else:
                assert found == [-1]
                law = law + chance * rests[0]
    assert law.tolist() == P.tolist()


def test_what_is_accepted_and_the_residual_are_the_targets_law():
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = rng.integers(0, 9, (2, 5)) + np.eye(2, 5, dtype=int)
        p, q = (row * Fraction(1, int(row.sum())) for row in rows)
        both = np.minimum(p, q)
        assert (both + (1 - both.sum()) * residual(p, q) == p).all()


def test_the_judge_stops_at_the_first_rejection():
    p = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    q = np.full((3, 2), 0.5)
    assert judge([0, 0, 0], p, q, Fixed(0.5, 1)) == [0, 1]
    assert judge([0, 1, 0], p, q, Fixed(0.5, 1)) == [0, 1, 0, 1]
    assert judge([1, 1, 1], p, q, Fixed(0.5, 0)) == [1, 1, 0]
    assert judge([], p[:1], [], Fixed(0.5, 1)) == [1]


def test_the_residual_of_equal_rows_is_the_row():
    assert residual(P, P).tolist() == P.tolist()
    assert residual(P, Q).tolist() == [1, 0, 0, 0]
    one_hot = np.eye(3)
    assert residual(one_hot[0], one_hot[1]).tolist() == [1, 0, 0]


def test_what_has_no_probability_is_never_drawn():
    rng = np.random.default_rng(0)
    drawn = [draw(np.array([0.0, 0.25, 0.75, 0.0]), rng) for _ in range(2000)]
    shares = np.bincount(drawn, minlength=4) / 2000
    np.testing.assert_allclose(shares, [0, 0.25, 0.75, 0], atol=0.03)
    assert {*drawn} == {1, 2}


# Caches


def test_a_cache_is_cut_and_read_on(framework):
    ids = framework.tensor([[0, 19, 15, 13, 1]])
    whole, full = read_on(framework.target, ids, [])
    for length in range(1, 5):
        kept = cut_cache(full, length)
        assert {x.shape[2] for pair in kept for x in pair} == {length}
        found, again = read_on(framework.target, ids, kept)
        assert found.shape[1] == 5 - length and again[0][0].shape[2] == 5
        gap = np.asarray(found.detach() if hasattr(found, "detach") else found)
        rest = whole.detach() if hasattr(whole, "detach") else whole
        np.testing.assert_allclose(
            gap, np.asarray(rest)[:, length:], atol=1e-4
        )
    assert cut_cache([], 3) == []
    assert cut_cache(full, 99)[0][0].shape[2] == 5


# Whole texts


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_greedy_is_generate(framework, count):
    for start in ([[0]], [[0, 13, 1]]):
        ids = framework.tensor(start)
        for max_len in (0, 1, 2, 12):
            wanted = framework.generate(framework.target, ids, max_len)
            found, rounds = framework.speculate(
                framework.target,
                framework.draft,
                ids,
                max_len,
                count=count,
                temperature=0,
            )
            assert np.array_equal(found, wanted)
            assert sum(kept + 1 for _, kept in rounds) == max_len
            assert all(kept <= drafted <= count for drafted, kept in rounds)


def test_nothing_comes_after_the_end(framework):
    for seed in range(6):
        ids, rounds = framework.speculate(
            framework.target,
            framework.draft,
            framework.tensor([[0]]),
            20,
            end_id=0,
            rng=seed,
        )
        row = np.asarray(ids)[0, 1:].tolist()
        assert 0 not in row[:-1] and (row[-1] == 0 or len(row) == 20)
        written = sum(kept + 1 for _, kept in rounds)
        assert written - 1 <= len(row) <= written


def test_an_end_in_the_prompt_does_not_end_the_text(framework):
    ids, _ = framework.speculate(
        framework.target,
        framework.draft,
        framework.tensor([[13, 1, 0]]),
        4,
        end_id=0,
        temperature=0,
    )
    assert ids.shape[1] > 3


@pytest.mark.parametrize("settings", [{}, dict(temperature=1.7), dict(k=5)])
def test_a_draft_that_is_the_target_is_accepted(framework, settings):
    _, rounds = framework.speculate(
        framework.target,
        framework.target,
        framework.tensor([[0, 3]]),
        12,
        rng=1,
        **settings,
    )
    assert rounds == [(4, 4), (4, 4), (1, 1)]


def test_both_frameworks_write_the_same():
    found = []
    for framework in (PyTorch("int64"), TensorFlow("int64")):
        stored, rng = stored_weights(), np.random.default_rng(1)
        noisy = {
            name: w + 0.3 * w.std() * rng.normal(size=w.shape) * (w.ndim > 1)
            for name, w in stored.items()
        }
        models = framework.llama(stored), framework.llama(noisy)
        found.append([])
        for seed, settings in enumerate(({}, dict(temperature=0.7, p=0.9))):
            ids, rounds = framework.speculate(
                *models, framework.tensor([[0]]), 15, rng=seed, **settings
            )
            found[-1] += np.asarray(ids).tolist() + rounds
    assert found[0] == found[1]


@pytest.mark.parametrize("settings", [{}, dict(temperature=1.7, k=9)])
def test_the_judge_gets_the_rows_of_both_models(
    framework, monkeypatch, settings
):
    """As without a cache: after a rejection, and after none."""
    seen = []

    def recording(drafted, p, q, rng):
        new = judge(drafted, p, q, rng)
        seen.append((drafted, p, q, new))
        return new

    module = import_module(framework.speculate.__module__)
    monkeypatch.setattr(module, "judge", recording)

    def rows(model, ids, start):
        logits = model(framework.tensor([ids]))[0, start - 1 :]
        logits = logits.detach() if hasattr(logits, "detach") else logits
        kept = framework.filter_logits(logits, **settings)
        powers = np.exp(np.asarray(kept, float))
        return powers / powers.sum(-1, keepdims=True)

    ids = [0, 6]
    framework.speculate(
        framework.target,
        framework.draft,
        framework.tensor([ids]),
        15,
        count=3,
        rng=3,
        **settings,
    )
    for drafted, p, q, new in seen:
        both = rows(framework.target, ids + drafted, len(ids))
        np.testing.assert_allclose(p, both, atol=1e-4)
        for i in range(len(drafted)):
            own = rows(framework.draft, ids + drafted[:i], len(ids) + i)
            np.testing.assert_allclose(q[i], own[-1], atol=1e-4)
        ids = ids + new
    lengths = {len(new) - len(drafted) for drafted, _, _, new in seen}
    assert len(ids) == 17 and 1 in lengths and min(lengths) < 1


def test_several_texts_are_refused(framework):
    with pytest.raises(ValueError, match="2 texts"):
        framework.speculate(
            framework.target, framework.draft, framework.tensor([[0], [0]]), 3
        )


def test_ids_keep_their_type(framework):
    ids = framework.tensor([[0, 3]])
    found, _ = framework.speculate(framework.target, framework.draft, ids, 3)
    assert found.dtype == ids.dtype


# Guesses that stand in the text


def test_what_followed_is_what_came_after_the_last_time():
    followed = import_module("cellbycell.common").what_followed
    assert followed([1, 2, 3, 1, 2, 4, 1, 2]) == 4
    assert followed([1, 2, 3, 4, 5]) is None
    assert followed([7, 7, 7]) == 7
    assert followed([]) is None and followed([1]) is None
    assert followed([1, 2, 1], size=1) == 2


def test_guesses_of_the_text_change_no_text(framework):
    ids = framework.tensor([[0, 1, 14, 1, 14, 1]])
    wanted = framework.generate(framework.target, ids, 9)
    look_up = framework.look_up
    found, rounds = framework.speculate(
        framework.target,
        lambda new, cache: look_up(new, cache, 30),
        ids,
        9,
        temperature=0,
    )
    assert np.array_equal(found, wanted)
    assert any(drafted for drafted, _ in rounds)
    _, rounds = framework.speculate(
        framework.target,
        lambda new, cache: look_up(new, cache, 30),
        framework.tensor([[0, 1, 2]]),
        1,
        temperature=0,
    )
    assert rounds == [(0, 0)]
