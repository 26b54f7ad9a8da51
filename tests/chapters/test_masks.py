"""The chapter on masks: its functions, its checks, and what it claims."""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")


def test_a_mean_is_over_the_tokens_whatever_the_pads_hold(twins):
    values = np.array([[1.0, 2.0, np.nan], [6.0, np.nan, np.inf]])
    mask = np.array([[True, True, False], [True, False, False]])
    for masked_mean in twins("masked_mean"):
        assert masked_mean(values, mask) == 3
        assert masked_mean(values, mask & False) == 0


@pytest.mark.parametrize("kind", ["bool", "uint8", "int64", "float32"])
def test_the_mass_on_pads_for_masks_of_any_kind(book, kind):
    """The mean over tokens of what a loop sums up; 0 without tokens."""
    rng = np.random.default_rng(0)
    weights, mask = rng.random((2, 5, 5)), rng.random((2, 5)) < 0.6
    masses = [weights[b, t, ~mask[b]].sum() for b, t in np.argwhere(mask)]
    for array in (np.array, torch.tensor, book["tf"].constant):
        mass = book["mass_on_pads"]
        found = mass(array(weights), array(mask.astype(kind)))
        assert found == pytest.approx(np.mean(masses), abs=6e-5)
        assert mass(array(weights), array((mask & False).astype(kind))) == 0


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


@pytest.mark.parametrize(
    ("kind", "fill"), [("float16", -65_510.0), ("float32", -1e39)]
)
def test_a_fill_that_the_type_does_not_have_is_refused(twins, kind, fill):
    """The first would be rounded to the largest number, 65,504."""
    mask, says = np.tri(3) > 0, "is beyond the range of "
    for to_additive in twins("to_additive"):
        with pytest.raises(ValueError, match=says):
            to_additive(mask, fill, np.dtype(kind))
        found = to_additive(mask, -65_504.0, np.dtype(kind))
        np.testing.assert_array_equal(found, np.where(mask, 0, -65_504))


def test_the_fill_is_added_to_the_scores_after_the_division(twins):
    rng = np.random.default_rng(0)
    query, key, value = map(rng.standard_normal, ((3, 4), (5, 4), (5, 2)))
    mask = np.tri(3, 5) > 0
    parts = np.exp(query @ key.T / 2 - 2.0 * ~mask)
    right = parts / parts.sum(axis=-1, keepdims=True) @ value
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
