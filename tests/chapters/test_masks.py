"""The chapter on masks: what its checkers say, and its functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import re

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Right and wrong answers


def triangle(n):
    return n * (n + 1) // 2


def window(allowed):
    """Return an answer: allowed(k steps back, window of w) or not."""

    def mask(seq_len, width):
        positions = np.arange(seq_len)
        return allowed(positions[:, None] - positions, width)

    return mask


def packed(allowed):
    """Return an answer: allowed(s: same text, p: not later, t: a token)."""

    def mask(text_ids):
        same = text_ids[:, :, None] == text_ids[:, None, :]
        past = np.tri(text_ids.shape[1]) > 0
        return allowed(same, past, (text_ids != 0)[:, None, :])

    return mask


def itself(mask):
    return mask | np.eye(mask.shape[-1], dtype=bool)


def multiplied_mean(vectors, key_mask):
    counts = np.maximum(key_mask.sum(1), 1)
    return (vectors * key_mask[..., None]).sum(1) / counts[:, None]


def mean_by_counts(vectors, key_mask):
    kept = np.where(key_mask[..., None], vectors, 0)
    return kept.sum(1) / key_mask.sum(1)[:, None]


def where_tokens(reduce):
    """Return an answer that reduces the vectors with zeros for the pads."""

    def mean(vectors, key_mask):
        return reduce(np.where(key_mask[..., None], vectors, 0))

    return mean


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def unshifted(scores, mask, axis=-1):
    e = np.exp(scores) * mask
    return e / e.sum(axis, keepdims=True)


def pairs(num_tokens, seq_len):
    return triangle(num_tokens) + (seq_len - num_tokens) * num_tokens


WRONG = {
    "count_pairs": {
        "are the causal pairs": lambda n, size: triangle(size),
        "the padding mask alone": lambda n, size: n * size,
        "rows of pads": lambda n, size: triangle(n),
        "diagonal is missing": lambda n, size: pairs(n, size) - n,
        "the future included": lambda n, size: n * n,
    },
    "window_mask": {
        "inverted": window(lambda k, w: (k < 0) | (k >= w)),
        "does not see itself": window(lambda k, w: (k > 0) & (k <= w)),
        "one position too many": window(lambda k, w: (k >= 0) & (k <= w)),
        "into the future": window(lambda k, w: abs(k) < w),
        "far past is not": window(lambda k, w: k >= 0),
        "False at [1, 0] (query, key)": window(
            lambda k, w: (k >= 0) & (k < w) & (k != 1)
        ),
    },
    "packed_mask": {
        "inverted": packed(lambda s, p, t: ~itself(s & p & t)),
        "the texts before it": packed(lambda s, p, t: itself(p & t)),
        "the future of its text": packed(lambda s, p, t: itself(s & t)),
        "rows are blind": packed(lambda s, p, t: s & p & t),
        "transposed": packed(lambda s, p, t: itself(s & p.T & t)),
    },
    "mean_of_tokens": {
        "pads are in the mean": lambda x, mask: x.mean(1),
        "by all positions": where_tokens(lambda kept: kept.mean(1)),
        "this is the sum": where_tokens(lambda kept: kept.sum(1)),
        "nan at a pad": multiplied_mean,
        "gets no zeros": mean_by_counts,
    },
    "masked_softmax": {
        "after the softmax": lambda z, mask: softmax(z) * mask,
        "over the queries": lambda z, mask: unshifted(z, mask, axis=0),
        "large scores fail": unshifted,
        "low scores fail": [
            lambda z, mask: softmax(np.where(mask, z, -1e9)),
            lambda z, mask: softmax(np.where(mask, z, -1e30)),
        ],
        "gets nan at [1, 0], not zeros": lambda z, mask: softmax(
            np.where(mask, z, -np.inf)
        ),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


@pytest.mark.parametrize("kind", ["list", "torch", "tf"])
@pytest.mark.parametrize("name", list(WRONG)[1:])
def test_answer_may_be_a_list_or_a_tensor(book, name, kind):
    convert = {
        "list": np.ndarray.tolist,
        "torch": torch.from_numpy,
        "tf": book["tf"].constant,
    }[kind]
    solution = book[f"{name}_solution"]
    verdict = book[f"check_{name}"](lambda *given: convert(solution(*given)))
    assert verdict.endswith(": correct.")


def test_answers_may_write_on_what_they_are_given(book):
    def in_place(vectors, key_mask):
        vectors[~key_mask] = 0
        vectors /= np.maximum(key_mask.sum(1), 1)[:, None, None]
        return vectors.sum(1)

    assert book["check_mean_of_tokens"](in_place) == "Exercise 4: correct."


# Every type and size

SIZES, SOME = st.integers(1, 4), st.integers(0, 4)
FLOATS = st.sampled_from(["float16", "bfloat16", "float32", "float64"])


def draw_mask(rng, shape):
    """Return a random mask with rows in which nothing is True."""
    return (rng.random(shape) < 0.6) & (rng.random(shape[:-1]) < 0.7)[
        ..., None
    ]


@given(
    shape=st.tuples(SOME, SIZES, SIZES),
    kind=FLOATS,
    fill=st.sampled_from(
        [-np.inf, 0.0, 65_504.0, -65_504.0, -65_600.0, -1e38, -1e39, -1e308]
    ),
    seed=st.integers(0, 99),
)
# It would be rounded to the largest number, 65,504.
@example(shape=(1, 1, 1), kind="float16", fill=-65_510.0, seed=0)
def test_fills_are_added_in_every_type_or_refused(
    book, twins, shape, kind, fill, seed
):
    """No finite fill becomes infinite, in either framework."""
    mask, dtype = draw_mask(np.random.default_rng(seed), shape), np.dtype(kind)
    largest = torch.finfo(getattr(torch, kind)).max
    for to_additive in twins("to_additive"):
        if np.isfinite(fill) and abs(fill) > largest:
            says = re.escape(f"{fill} is beyond the range of ")
            with pytest.raises(ValueError, match=says):
                to_additive(mask, fill, dtype)
        else:
            found = to_additive(mask, fill, dtype)
            assert found.dtype == dtype
            right = np.where(mask, 0, fill).astype(dtype)
            np.testing.assert_array_equal(found, right)


@given(B=SOME, T=SOME, kind=FLOATS, seed=st.integers(0, 99))
def test_the_mean_of_tokens_in_every_type(twins, B, T, kind, seed):
    """Of thousands, whose sum float16 has no number for, beside NaN."""
    rng = np.random.default_rng(seed)
    mask = draw_mask(rng, (B, T))
    values = (1e4 + 1e3 * rng.standard_normal((B, T))).astype(kind)
    right = values[mask].astype(float).mean() if mask.any() else 0.0
    values[~mask] = np.nan
    for masked_mean in twins("masked_mean"):
        found = masked_mean(values, mask)
        assert found.dtype == values.dtype
        assert found == np.array(right).astype(kind)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_long_means_in_half_precision(twins, kind):
    """More positions than float16 can count."""
    for masked_mean in twins("masked_mean"):
        values, mask = np.full(70_000, 100).astype(kind), np.ones(70_000, bool)
        assert masked_mean(values, mask) == 100


@given(
    B=SOME,
    T=SIZES,
    kind=st.sampled_from(["bool", "uint8", "int64", "float32"]),
    seed=st.integers(0, 99),
)
def test_the_mass_on_pads_for_masks_of_any_kind(book, B, T, kind, seed):
    """The mean over tokens of what a loop sums up; 0 without tokens."""
    rng = np.random.default_rng(seed)
    weights, mask = rng.standard_normal((B, T, T)), draw_mask(rng, (B, T))
    masses = [
        weights[b, t, ~mask[b]].sum()
        for b in range(B)
        for t in range(T)
        if mask[b, t]
    ]
    right = np.mean(masses) if masses else 0
    for array in (np.array, torch.tensor, book["tf"].constant):
        given_ = array(weights), array(mask.astype(kind))
        found = book["mass_on_pads"](*given_)
        assert found == pytest.approx(right, abs=6e-5)


# What is refused, and in which words


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64", "float32"])
def test_a_mask_of_numbers_is_refused_with_a_sentence(twins, kind):
    mask = np.tri(3).astype(kind)
    x = np.ones((3, 3))
    says = "a mask holds True and False, not .*; compare first, as in mask =="
    for name, *given_ in [
        ("to_additive", mask),
        ("count_positions", mask),
        ("masked_mean", x, mask),
        ("attend_or_zero", x, x, x, mask),
        ("attend_filled", x, x, x, mask, -1.0),
    ]:
        for function in twins(name):
            with pytest.raises(TypeError, match=says):
                function(*given_)


@pytest.mark.parametrize(
    ("error", "says", "values"),
    [
        (TypeError, "int64.* have no mean of that type$", np.array([1, 2])),
        (ValueError, "under a mask", np.ones((1, 2))),
        (ValueError, "under a mask", np.ones(3)),
    ],
)
def test_what_has_no_mean_is_refused(twins, error, says, values):
    for masked_mean in twins("masked_mean"):
        with pytest.raises(error, match=says):
            masked_mean(values, np.array([True, False]))


@pytest.mark.parametrize("mask", [[[0, -np.inf]], [[1, 2]], [[-2, -1]]])
def test_the_mass_on_pads_wants_ones_and_zeros(book, mask):
    with pytest.raises(
        ValueError, match="True or 1 for a token, else False or 0$"
    ):
        book["mass_on_pads"](np.ones((1, 2, 2)), np.array(mask))


# What the chapter's functions do at the edges


def test_blocked_scores_count_for_nothing_however_low_the_others(twins):
    given_ = [[-1e12]], [[1.0], [1.0]], [[2.0], [3.0]], [[True, False]]
    for attend_or_zero in twins("attend_or_zero"):
        output, weights = attend_or_zero(*map(np.array, given_))
        assert output.tolist() == [[2]] and weights.tolist() == [[1, 0]]


def test_a_blind_row_of_one_position_is_zero(twins):
    one, blind = np.ones((1, 1, 1)), np.zeros((1, 1, 1), bool)
    for attend_or_zero in twins("attend_or_zero"):
        output, weights = attend_or_zero(one, one, one, blind)
        assert output == weights == 0


def test_the_fill_is_added_to_the_scores_after_the_division(twins):
    rng = np.random.default_rng(0)
    query, key, value = (
        rng.standard_normal(shape) for shape in ((3, 4), (5, 4), (5, 2))
    )
    mask = np.tri(3, 5) > 0
    right = softmax(query @ key.T / 2 - 2.0 * ~mask) @ value
    for attend_filled in twins("attend_filled"):
        found = attend_filled(query, key, value, mask, fill=-2.0)
        assert np.allclose(found, right)


# The checks of the mistakes


def test_a_check_that_raises_has_caught_something(book):
    assert book["passes"](lambda: True) is True
    assert book["passes"](lambda: torch.ones(2) @ torch.ones(3)) is False
    with pytest.raises(KeyError):
        book["passes"](lambda: {}["a mistake in the check"])


def test_the_checks_pass_on_random_vectors_and_see_the_future(book):
    table = torch.randn(12, 4, generator=torch.Generator().manual_seed(3))
    ids = torch.tensor([[3, 4, 0, 0, 0], [5, 6, 7, 8, 0], [9, 0, 0, 0, 0]])

    def padded(ids, mask):
        return book["weigh"](ids, table, mask[:, None])

    def causal(ids, mask):
        past = torch.ones(2 * [ids.shape[1]]).tril() > 0
        return book["weigh"](ids, table, past & mask[:, None])

    def shared(ids, mask):
        return causal(ids, mask) + len(ids)

    assert all(book["run_checks"](causal, ids, table).values())
    found = book["run_checks"](padded, ids, table)
    assert [name for name in found if not found[name]] == ["future"]
    assert not book["run_checks"](shared, ids, table)["alone"]


def test_in_the_next_layer_nan_spreads_to_every_query(book, twins):
    """Of tokens behind pads on the left, and a causal mask."""
    x = np.random.default_rng(0).standard_normal((5, 4))
    token = np.arange(5) > 1
    mask = np.tri(5) > 0
    for attend, attend_or_zero in zip(
        twins("attend"), twins("attend_or_zero"), strict=True
    ):
        first = attend(x, x, x, mask & token)[0]
        assert np.array_equal(np.isnan(first).all(-1), ~token)
        assert np.isnan(attend(first, first, first, mask & token)[0]).all()
        first = attend_or_zero(x, x, x, mask & token)[0]
        second = attend_or_zero(first, first, first, mask & token)[0]
        assert np.isfinite(second).all()


# What the models of names learn


def test_a_loss_token_by_token_is_that_of_one_pass_if_nothing_leaks(book):
    """Of models that are new, for rows that hold names of all lengths."""
    rows = np.array([[0, 3, 0, 0, 0], [0, 9, 8, 7, 0], [0, 5, 6, 0, 0]])
    for end in ("", "_tf"):
        judges = [book[f"{of}_loss{end}"] for of in ("token_by_token", "name")]
        for causal in (True, False):
            model = book[f"model_of_names{end}"](causal)
            with torch.no_grad():
                stepwise, forced = (float(of(model, rows)) for of in judges)
            assert np.isclose(stepwise, forced, atol=1e-5) == causal


def test_a_loss_of_all_positions_is_the_mean_of_each(book):
    rows = np.array([[0, 3, 4, 0, 0], [0, 9, 8, 7, 0]])
    each = np.arange(240.0).reshape(2, 4, 30) ** 2 % 7
    losses = np.log(np.exp(each).sum(-1)) - np.take_along_axis(
        each, rows[:, 1:, None], -1
    ).squeeze(-1)
    for end, array in (("", torch.tensor), ("_tf", book["tf"].constant)):
        logits = array(each)
        found = book[f"loss_of_all{end}"](lambda ids, z=logits: z, rows)
        assert np.isclose(float(found), losses.mean())


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_leak_and_look_better_too(book, seed):
    def held_out(causal=True, loss_of=book["name_loss"]):
        model = book["model_of_names"](causal)
        book["initialise"](model, seed)
        rows = book["train_rows"]
        book["learn"](model, rows, seed=seed, loss_of=loss_of)
        judges = book["name_loss"], book["loss_of_all"]
        return [judge(model, book["held_rows"]).item() for judge in judges]

    letters, shown = held_out(loss_of=book["loss_of_all"])
    assert held_out(causal=False)[0] < 0.05
    assert shown + 0.9 < (honest := held_out()[0]) < letters + 0.01
    assert letters < honest + 0.1
