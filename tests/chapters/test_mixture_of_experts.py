"""The chapter on experts: its functions."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.exercises.mixture_of_experts import softmax

pytestmark = pytest.mark.xdist_group("frameworks")


# What the chapter defines, beyond the rows that it shows


SIZES = dict(
    seed=st.integers(0, 99),
    T=st.integers(1, 9),
    C=st.integers(1, 6),
    count=st.integers(1, 3),
)


@given(**SIZES, to_one=st.booleans())
def test_any_choice_gives_the_dense_sum(book, seed, T, C, count, to_one):
    """Experts without rows, ties and a single expert included."""
    rng, count = np.random.default_rng(seed), min(count, C)
    scores = rng.normal(size=(T, C)).round(seed % 2)  # half with ties
    x = rng.normal(size=(T, 3))
    by = rng.normal(size=C)
    experts = [lambda rows, b=b: b * rows for b in by]
    order = np.argsort(-scores, -1, kind="stable")[:, :count]
    shares = softmax(scores)[np.arange(T)[:, None], order]
    if to_one:
        shares = shares / shares.sum(-1, keepdims=True)
    wanted = (by[order] * shares).sum(-1)[:, None] * x
    given = torch.tensor(scores)
    chosen = book["choose"](given, count, to_one)
    for way in ("by_loop", "by_sorting"):
        found = book[way](torch.tensor(x), *chosen, experts)
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    chosen = book["choose_tf"](scores, count, to_one)
    for way in ("by_loop_tf", "by_sorting_tf"):
        found = book[way](book["tf"].constant(x), *chosen, experts)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


@given(**SIZES, capacity=st.integers(0, 4))
def test_the_past_does_not_depend_on_the_future(
    book, seed, T, C, count, capacity
):
    rng, count = np.random.default_rng(seed), min(count, C)
    chosen = np.stack([rng.permutation(C)[:count] for _ in range(T)])
    cut = int(rng.integers(T + 1))
    kept = book["served"](chosen, capacity, False)
    counts = np.bincount(chosen[kept], minlength=C)
    wanted = np.minimum(np.bincount(chosen.flatten(), minlength=C), capacity)
    assert (counts == wanted).all()
    alone = book["served"](chosen[:cut], capacity, False)
    assert (alone == kept[:cut]).all()


def test_the_balance_loss_of_pads_and_of_small_batches(book):
    """It is no mean over rows: neither pads nor quarters give the same."""
    scores = torch.tensor(np.random.default_rng(1).normal(size=(64, 8)))
    scores = scores + torch.linspace(2, -2, 64)[:, None] * scores[:1]
    whole = book["balance_loss"](scores, 3)
    quarters = [book["balance_loss"](part, 3) for part in scores.chunk(4)]
    assert sum(quarters) / 4 > whole + 0.3
    pads = torch.cat([scores, scores[:1].repeat(192, 1)])
    assert book["balance_loss"](pads, 3) > whole + 0.3


def test_even_is_not_the_least_balance_loss(book):
    found = []
    for seed in range(300):
        scores = 0.1 * np.random.default_rng(seed).normal(size=(64, 8))
        found.append(float(book["balance_loss"](torch.tensor(scores), 3)))
    assert min(found) < 3


def test_grouped_products_want_widths_of_four():
    rows, ends = torch.ones(6, 8), torch.tensor([2, 6], dtype=torch.int32)
    F.grouped_mm(rows, torch.ones(2, 8, 4), offs=ends)
    with pytest.raises(RuntimeError):
        F.grouped_mm(rows, torch.ones(2, 8, 6), offs=ends)


@pytest.mark.parametrize("tokens", [1, 3, 20])
def test_a_batch_reads_what_the_formula_says(book, tokens):
    """On average over draws of even choices."""
    rng, found = np.random.default_rng(tokens), []
    for _ in range(300):
        scores = rng.normal(size=(tokens, 16))
        found.append(len(np.unique(np.argsort(-scores, -1)[:, :3])))
    wanted = book["experts_read"](16, 3, tokens)
    assert abs(np.mean(found) - wanted) < 0.3


# Latents, and keys that are chosen


@given(
    seed=st.integers(0, 99),
    T=st.integers(1, 4),
    past=st.integers(0, 4),
    count=st.integers(1, 9),
)
def test_the_best_keys_are_of_the_past(book, seed, T, past, count):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(2, T, past + T)).astype("f4")
    kept = book["keep_best"](torch.tensor(scores), count).numpy()
    kept_tf = book["keep_best_tf"](book["tf"].constant(scores), count)
    assert np.array_equal(kept, kept_tf)
    for b, t in np.ndindex(2, T):
        seen = scores[b, t, : past + t + 1]
        wanted = np.sort(np.argsort(-seen)[:count])
        assert np.array_equal(np.flatnonzero(kept[b, t]), wanted)


def test_a_warm_up_draws_scores_to_the_target(book):
    """The loss is zero where they agree, and pulls nothing there."""
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=(2, 5, 5)), requires_grad=True)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    target = scores.detach().masked_fill(~mask, -torch.inf).softmax(-1)
    loss = book["index_loss"](scores, target)
    loss.sum().backward()
    assert loss.abs().max() < 1e-9 and scores.grad.abs().max() < 1e-9
    assert (book["index_loss"](0 * scores, target).sum(0)[1:] > 0.01).all()


def test_operations_are_those_that_pytorch_counts(book):
    from torch.utils.flop_counter import FlopCounterMode

    heads, key, turned, value, latent = 6, 5, 4, 3, 10
    for new, seen in ((1, 7), (5, 5)):
        for absorbed in (False, True):
            given = [
                torch.zeros(1, heads, new, key),
                torch.zeros(1, heads, new, turned),
                torch.zeros(1, seen, latent),
                torch.zeros(1, seen, turned),
                torch.zeros(heads, key, latent),
                torch.zeros(heads, value, latent),
            ]
            with FlopCounterMode(display=False) as counter:
                book["attend_latents"](*given, absorbed)
            sizes = (key, turned, value, latent)
            wanted = book["operations"](new, seen, absorbed, heads, sizes)
            assert counter.get_total_flops() == wanted


def test_a_rotation_cannot_be_absorbed(book):
    """The matrix between query and latent differs for each distance."""
    rng = np.random.default_rng(0)
    down, up = (torch.tensor(rng.normal(size=(4, n))) for n in (6, 3))
    found = []
    for distance in range(4):
        eye = torch.eye(4, dtype=torch.float64)[None]
        turned = book["rotary"](eye, torch.full((1, 4), distance))[0]
        found.append(down.T @ turned @ up)
    assert all((x - found[0]).abs().max() > 0.5 for x in found[1:])


def test_grouped_heads_are_latents_with_a_matrix_that_copies(book):
    from cellbycell.pytorch import attend_grouped, make_causal_mask

    rng = np.random.default_rng(0)
    query, key, value = (
        torch.tensor(rng.normal(size=(2, heads, 7, 4))) for heads in (6, 2, 2)
    )
    wanted = attend_grouped(query, key, value, make_causal_mask(7))
    merged = [part.transpose(1, 2).flatten(2) for part in (key, value)]
    latent = torch.cat(merged, -1)
    up_key, up_value = torch.zeros(2, 6, 4, 16, dtype=torch.float64)
    for head in range(6):
        start = 4 * (head // 3)
        up_key[head, :, start : start + 4] = torch.eye(4)
        up_value[head, :, 8 + start : 12 + start] = torch.eye(4)
    nothing = torch.zeros(2, 6, 7, 0), torch.zeros(2, 7, 0)
    nothing = [part.double() for part in nothing]
    for absorbed in (False, True):
        found = book["attend_latents"](
            query, nothing[0], latent, nothing[1], up_key, up_value, absorbed
        )
        assert torch.allclose(found, wanted)


# A whole DeepSeek V3


def test_the_inner_norms_have_their_own_epsilon(book, of_both):
    """Transformers takes 1e-6 for them, whatever rms_norm_eps says."""
    theirs = book["small_deepseek"](rms_norm_eps=1e-3)
    for layer in theirs.model.layers:
        for name in ("kv_a_proj_with_mqa", "q_a_proj"):
            getattr(layer.self_attn, name).weight.data *= 0.01
    weights = of_both(theirs.state_dict())
    said = book["said"] | {"rms_norm_eps": 1e-3}
    config = book["deepseek_config"](said)
    ids = torch.tensor(book["token_ids"])
    with torch.no_grad():
        wanted = theirs(ids).logits
        found = book["run_deepseek"](weights, ids, config)
        config.inner.epsilon = 1e-3
        other = book["run_deepseek"](weights, ids, config)
    assert (found - wanted).abs().max() < 1e-4
    assert (other - wanted).abs().max() > 0.01


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "deepseek_v2"),
        ("attention_bias", True),
        ("q_lora_rank", None),
        ("rope_parameters", {"rope_type": "yarn", "rope_theta": 1e4}),
        ("rope_parameters", None),
        ("rope_interleave", False),
    ],
)
def test_what_is_not_computed_is_refused(book, field, value):
    with pytest.raises(ValueError, match=field):
        book["deepseek_config"](book["said"] | {field: value})


@pytest.mark.parametrize(
    ("absorbed", "kind"), [(False, ""), (True, ""), (True, "_sparse")]
)
def test_the_kit_finds_nothing(book, as_module, absorbed, kind, asked, often):
    from cellbycell.checks import check_model

    def run(weights, token_ids, cache):
        given = weights, token_ids, book[f"config{kind}"], cache, absorbed
        return book["run_deepseek"](*given)

    arrays, theirs = book[f"arrays{kind}"], book[f"theirs{kind}"]
    model = as_module(run, arrays)
    count = sum(weight.size for weight in arrays.values())
    report = check_model(model, **asked, reference=theirs, count=count)
    without_slope = ["training_gradients"] if kind else []  # the indexers
    assert [*report.failed] == without_slope and not report.errors, report
    assert not kind or "indexer" in str(report), report
    assert often | {
        "reference_parity",
        "parameter_count",
        "target_alignment",
    } <= {*report.passed}, report


@pytest.mark.parametrize("mistake", ["cache_consistency", "batch_invariance"])
def test_the_kit_finds_a_mistake(book, as_module, mistake, monkeypatch, asked):
    """A latent normalised twice; a capacity over the batch."""
    from cellbycell.checks import check_model

    config, choose = book["config"], book["choose_with_bias"]

    def run(weights, token_ids, cache):
        if mistake == "cache_consistency":
            cache = [
                (
                    book["scale_rows"](
                        latent,
                        weights,
                        f"model.layers.{i}.self_attn.kv_a_layernorm",
                        config.inner,
                    ),
                    shared,
                )
                for i, (latent, shared) in enumerate(cache)
            ]
        return book["run_deepseek"](weights, token_ids, config, cache)

    def choose_some(*given):
        chosen, shares = choose(*given)
        served = book["served"](chosen.numpy(), 6, False)
        return chosen, shares * torch.tensor(served)

    if mistake == "batch_invariance":
        names = book["routed_experts"].__globals__
        monkeypatch.setitem(names, "choose_with_bias", choose_some)
    report = check_model(as_module(run, book["arrays"]), **asked)
    assert mistake in report.failed and "causality" in report.passed, report
    assert mistake == "batch_invariance" or [*report.failed] == [
        "cache_consistency"
    ], report
