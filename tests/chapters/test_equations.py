"""The numbered equations that a function is, written out in NumPy.

Where a chapter's own cells do not compute an equation by other means, its two
sides are compared here.
"""

import math

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")
RNG = np.random.default_rng(0)


def near(found, expected, within=1e-6):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=within, atol=within)


def attention_by_hand(query, key, value):
    scores = query @ key.T / math.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def positions_by_hand(p, d_model):
    columns = range(d_model)
    angles = [p / 10000 ** ((i - i % 2) / d_model) for i in columns]
    return [(math.cos if i % 2 else math.sin)(angles[i]) for i in columns]


@pytest.mark.parametrize(
    ("name", "queries"),
    [("attention", 5), ("cache", 1), ("multi_head_attention", 5)],
)
def test_attention(chapter, name, queries):
    """(2) of Attention, (1) of The cache and of Heads."""
    import torch

    query, key, value = (RNG.normal(size=(n, 4)) for n in (queries, 7, 7))
    output, _ = chapter(name)["attend"](
        *map(torch.tensor, (query, key, value))
    )
    near(output, attention_by_hand(query, key, value))


@pytest.mark.parametrize("name", ["attention"])
def test_derivatives_of_softmax(chapter, name):
    """The Jacobian of Attention, which has no number."""
    p = RNG.dirichlet(np.ones(5))
    jacobian = chapter(name)["softmax_jacobian"](p)
    near(
        jacobian,
        [[p[i] * ((i == j) - p[j]) for j in range(5)] for i in range(5)],
    )


@pytest.mark.parametrize(
    ("name", "function", "equation"),
    [
        # (7) of Attention, (2) of The cache, (4) of Heads
        (
            "attention",
            "self_attend_flops",
            lambda n, d: 6 * n * d**2 + 4 * n**2 * d,
        ),
        ("cache", "step_operations", lambda n, d: 6 * d**2 + 4 * n * d),
        (
            "multi_head_attention",
            "attention_flops",
            lambda n, d: 8 * n * d**2 + 4 * n**2 * d,
        ),
        # (5) of The encoder, (3) of The decoder
        (
            "encoder",
            "layer_parameters",
            lambda d, f: 4 * d**2 + 4 * d + 2 * d * f + f + d + 4 * d,
        ),
        (
            "decoder",
            "decoder_layer_parameters",
            lambda d, f: 8 * d**2 + 8 * d + 2 * d * f + f + d + 6 * d,
        ),
        # (1), (2), (5) of Training
        ("training", "known_key", lambda t, m: m - 1 - t),
        ("training", "loss_at_start", lambda n, v: math.log(n) + v / 2),
        ("training", "best_without_positions", lambda t, m: 1 / (m - t)),
    ],
)
def test_counts(chapter, name, function, equation):
    for pair in ((3, 5), (2, 16), (8, 9)):
        assert chapter(name)[function](*pair) == pytest.approx(equation(*pair))


@pytest.mark.parametrize("name", ["masks"])
def test_causal_mask(chapter, name):
    """(2) of Masks."""
    mask = chapter(name)["make_causal_mask"](5)
    assert mask.tolist() == [[s <= t for s in range(5)] for t in range(5)]


@pytest.mark.parametrize("name", ["positional_encoding"])
@pytest.mark.parametrize("d_model", [4, 9, 512])
def test_table_of_positions(chapter, name, d_model):
    """(1) and (3) of Positional encoding."""
    table = chapter(name)["position_table"](50, d_model)
    near(table, [positions_by_hand(p, d_model) for p in range(50)], 1e-6)


@pytest.mark.parametrize("name", ["position_similarity"])
def test_similarity_of_positions(chapter, name):
    """(2) of The similarity."""
    similarity = chapter(name)["similarity"]
    for p, q in ((3, 3), (7, 2), (0, 99)):
        dot = np.dot(positions_by_hand(p, 64), positions_by_hand(q, 64))
        near(similarity(p - q, 64), dot)


@pytest.mark.parametrize("name", ["position_similarity"])
def test_rotations(chapter, name):
    """(3) and (4) of The similarity."""
    turn = chapter(name)["rotation_matrix"]

    def matrix(k):
        return turn(k, 8).numpy()

    for a, b in ((3, 5), (2.5, -4), (0, 7)):
        near(matrix(a) @ positions_by_hand(b, 8), positions_by_hand(a + b, 8))
        near(matrix(a) @ matrix(b), matrix(a + b))
        near(np.linalg.inv(matrix(a)), matrix(-a))
        near(matrix(a).T, matrix(-a))
    near(matrix(0), np.eye(8))


@pytest.mark.parametrize("name", ["position_similarity"])
@pytest.mark.parametrize("offset", [1, 5, 40])
def test_limit_of_the_similarity(chapter, name, offset):
    """(5), (6) and (7) of The similarity, at the base b."""
    names, b, d = chapter(name), 10000.0, 512
    share = 2 / d * names["similarity"](offset, d)
    limit = names["limit_similarity"](offset)
    logs = np.linspace(math.log(offset / b), math.log(offset), 10**6)
    area = np.trapezoid(np.cos(np.exp(logs)), logs)  # du / u is d log u
    near(limit, area / math.log(b))
    correction = (math.cos(offset) - math.cos(offset / b)) / d
    near(share, limit + correction, 3e-4)
    line = 1 - (math.log(offset) + np.euler_gamma) / math.log(b)
    near(limit, line, 1 / (offset * math.log(b)))


@pytest.mark.parametrize("name", ["rotary"])
def test_rotary_positions(chapter, name):
    """(1) and (3) of Rotary positions."""
    import torch

    rotary = chapter(name)["rotary"]
    x, y = RNG.normal(size=(2, 8))
    for p, q in ((0, 4), (9, 2), (31, 31)):
        at_p, at_q = positions_by_hand(p, 8), positions_by_hand(q, 8)
        similarity = sum(math.cos((p - q) / 10**i) for i in range(4))
        terms = x @ y + x @ at_q + at_p @ y + similarity
        near((x + at_p) @ (y + at_q), terms)

        def turned(row, position):
            return rotary(torch.tensor(row), torch.tensor(position)).numpy()

        near(turned(x, p) @ turned(y, q), x @ turned(y, q - p))


@pytest.mark.parametrize("name", ["training"])
@pytest.mark.parametrize(("n", "alpha"), [(13, 0.1), (2, 0.5), (50, 0.01)])
def test_floor_of_smoothed_targets(chapter, name, n, alpha):
    """(3) of Training."""
    targets = np.full(n, alpha / n)
    targets[0] += 1 - alpha
    floor = chapter(name)["smoothing_floor"](n, alpha)
    near(floor, -(targets * np.log(targets)).sum())


@pytest.mark.parametrize("name", ["training"])
@pytest.mark.parametrize("step", [1, 399, 4000, 4001, 90000])
def test_learning_rate(chapter, name, step):
    """(4) of Training."""
    rate = chapter(name)["learning_rate"](step, 512, 4000)
    assert rate == pytest.approx(
        512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    )
