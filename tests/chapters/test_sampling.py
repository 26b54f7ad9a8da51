"""The chapter on sampling: its functions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.exercises.sampling import softmax

pytestmark = pytest.mark.xdist_group("frameworks")


# What the chapter defines, beyond the rows that it shows


def drawn(seed, rows, columns, ties):
    logits = 3 * np.random.default_rng(seed).normal(size=(rows, columns))
    return logits.round(0 if ties else 9)


SIZES = dict(seed=st.integers(0, 99), B=st.integers(1, 4), N=st.integers(1, 9))


@given(**SIZES, k=st.integers(1, 12), ties=st.booleans())
def test_top_k_keeps_the_first_of_the_largest(twins, seed, B, N, k, ties):
    logits = drawn(seed, B, N, ties)
    order = np.argsort(-logits, axis=-1, kind="stable")[:, :k]
    wanted = np.full((B, N), -np.inf)
    np.put_along_axis(wanted, order, logits[np.arange(B)[:, None], order], 1)
    for keep_top_k in twins("keep_top_k"):
        np.testing.assert_array_equal(keep_top_k(logits, k), wanted)


@given(**SIZES, p=st.sampled_from([0, 0.3, 0.83, 1]), ties=st.booleans())
def test_top_p_keeps_the_fewest_that_reach_p(twins, seed, B, N, p, ties):
    logits = drawn(seed, B, N, ties)
    for keep_top_p in twins("keep_top_p"):
        for row, found in zip(logits, keep_top_p(logits, p), strict=True):
            probs, kept = softmax(row), np.isfinite(found)
            np.testing.assert_array_equal(found[kept], row[kept])
            assert probs[kept].min() >= probs[~kept].max(initial=0)
            assert kept.any() and probs[kept].sum() > p - 1e-9
            fewer = probs[kept].sum() - probs[kept].min()
            assert fewer < max(p, 1e-9)


@given(**SIZES, least=st.sampled_from([0, 0.1, 0.7, 1]))
def test_min_p_is_a_share_of_the_best(twins, seed, B, N, least):
    logits = drawn(seed, B, N, False)
    top = logits.max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        wanted = logits - top >= np.log(least)
    for keep_min_p in twins("keep_min_p"):
        found = keep_min_p(logits, least)
        np.testing.assert_array_equal(np.isfinite(found), wanted)


@given(**SIZES)
def test_nothing_is_cut_unless_asked_and_zero_is_greedy(twins, seed, B, N):
    logits = drawn(seed, B, N, False)
    for filter_logits in twins("filter_logits"):
        np.testing.assert_array_equal(filter_logits(logits), logits)
        for settings in dict(temperature=0), dict(p=0.0), dict(k=1):
            found = filter_logits(logits, **settings)
            np.testing.assert_array_equal(
                np.isfinite(found).nonzero()[1], logits.argmax(-1)
            )


def test_half_precision_is_summed_in_double(book):
    logits = torch.tensor(drawn(0, 1, 5000, False)).bfloat16()
    found = book["keep_top_p"](logits, 0.99)
    wanted = book["keep_top_p"](logits.double(), 0.99)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found.isfinite(), wanted.isfinite())


def test_one_beam_is_greedy_and_all_beams_find_the_best(book):
    rng = np.random.default_rng(0)
    table = np.log(rng.dirichlet(np.ones(4), size=4))  # by the last token

    def logs_of(rows):
        return table[[row[-1] for row in rows]]

    ((score, row),) = book["beam_search"](logs_of, [0], 1, None, 3)
    for before, after in zip(row[:-1], row[1:], strict=True):
        assert after == table[before].argmax()
    assert np.isclose(score, sum(table[row[i], row[i + 1]] for i in range(3)))
    paths = np.array(np.meshgrid(*[range(4)] * 3)).reshape(3, -1)
    sums = table[0, paths[0]] + table[paths[0], paths[1]]
    sums += table[paths[1], paths[2]]
    (best_score, best_row), *_ = book["beam_search"](logs_of, [0], 64, None, 3)
    assert np.isclose(best_score, sums.max())
    assert best_row[1:] == tuple(paths[:, sums.argmax()])


@pytest.mark.parametrize("penalty", [-1.0, 0.0, 1.0])
def test_beams_are_those_of_generate(book, penalty):
    rng = np.random.default_rng(1 + int(penalty))
    for letters in rng.integers(1, 27, (2, 2)).tolist():
        prompt = [0, *letters]
        theirs = book["llama"].generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, 3, dtype=torch.int64),
            do_sample=False,
            num_beams=3,
            max_new_tokens=8,
            length_penalty=penalty,
            num_return_sequences=3,
            output_scores=True,
            return_dict_in_generate=True,
        )
        ours = book["beam_search"](
            book["llama_logs"], prompt, 3, 0, 8, penalty
        )
        for (_, row), wanted in zip(ours, theirs.sequences, strict=True):
            assert list(row) == wanted[: len(row)].tolist()
            assert len(row) == len(wanted) or row[-1] == 0
        scores = [score for score, _ in ours]
        assert np.allclose(scores, theirs.sequences_scores, atol=1e-4)


def read_by_keras_hub(book, sampler, **settings):
    """Return the rows that a sampler of KerasHub writes, from the dot on."""
    empty = np.zeros((1, 20), "int64")

    def next_logits(prompt, cache, index):
        return book["model_tf"](prompt)[:, index - 1], None, cache

    empty = book["tf"].constant(empty)
    return sampler(next_logits, empty, index=1, **settings)


def test_keras_hub_writes_the_same_greedily(book):
    from keras_hub.samplers import GreedySampler

    found = read_by_keras_hub(book, GreedySampler())
    names = book["decode_names"](found.numpy())
    assert names == book["written"]["greedy"][:1]


def test_keras_hub_has_the_same_beams(book):
    from keras_hub.samplers import BeamSampler

    sampler = BeamSampler(3, return_all_beams=True)
    rows, scores = read_by_keras_hub(book, sampler)
    ours = book["beam_search"](book["logs_of_tf"], [0], 3, None, 19)
    assert np.array_equal([row for _, row in ours], rows[0])
    assert np.allclose([score for score, _ in ours], scores[0], atol=1e-4)


def test_libraries_differ_on_ties_and_borders(book):
    equal = torch.zeros(1, 8)
    kept = book["keep_top_p"](equal, 0.5)[0].isfinite().nonzero()
    no_ids = torch.zeros(1, 0, dtype=torch.int64)
    theirs = book["TopPLogitsWarper"](0.5)(no_ids, equal)[0]
    assert kept[:, 0].tolist() == [0, 1, 2, 3]
    assert theirs.isfinite().nonzero()[:, 0].tolist() == [4, 5, 6, 7]
    tied = torch.tensor([[2.0, 1.0, 1.0, 1.0, 0.0]])
    assert book["TopKLogitsWarper"](2)(no_ids, tied).isfinite().sum() == 4
    assert book["keep_top_k"](tied, 2).isfinite().sum() == 2
    tf, halves = book["tf"], [[0.5, 0.25, 0.25]]
    hub = book["TopPSampler"](0.5, seed=0)
    assert len({*hub.get_next_token(halves * 500).numpy().tolist()}) == 2
    kept = book["keep_top_p_tf"](tf.math.log(halves), 0.5)
    assert np.isfinite(kept).sum() == 1


def test_rounding_draws_no_other_letter(book):
    """Another machine moves a logit by a few millionths."""
    torch = book["torch"]
    for name, settings in book["all_settings"].items():
        rng, gaps = np.random.default_rng(7), []
        going = torch.ones(len(book["starts"]), dtype=bool)

        def choose(logits, settings=settings, rng=rng, gaps=gaps):
            nonlocal going
            heat = settings.get("temperature", 1)
            noise = torch.tensor(rng.gumbel(size=logits.shape))
            kept = book["filter_logits"](logits, **settings)
            best = (kept + noise).topk(2)
            gaps.extend((best.values[:, 0] - best.values[:, 1])[going])
            if heat:
                probs = (logits.double() / heat).softmax(-1)
                probs = probs.sort(descending=True).values[going]
                before = probs.cumsum(-1) - probs
                k = settings.get("k", 29)
                gaps.extend(probs[:, k - 1].log() - probs[:, k].log())
                gaps.extend((before - settings.get("p", 2)).abs().amin(-1))
                shares = probs / probs[:, :1]
                least = settings.get("min_p", -1)
                gaps.extend((shares - least).abs().amin(-1))
            going = going & (best.indices[:, 0] != 0)
            return best.indices[:, 0]

        book["generate"](book["model"], book["starts"], 20, 0, choose=choose)
        assert min(gaps) > 1e-5, (
            f"{name}: a letter hangs on the last digits of a logit; take "
            "another number, or another seed"
        )


def test_the_story_is_the_mistake_of_the_table(book):
    """`keep_unsorted` is the row of the matrix."""
    logits = torch.tensor(drawn(0, 50, 20, False)).float()
    by_story = book["keep_unsorted"](logits, 0.8).softmax(-1)
    by_table = book["mistakes"]["not sorted back"](logits, p=0.8)
    assert torch.allclose(by_story, by_table)


def test_another_processor_says_the_same(book):
    """No token of SmolLM2 hangs on the last digits of a logit."""
    model, asked = book["smol"], book["asked"]
    for heat, p in (0.7, 0.9), (1.0, 1.0):
        rng, gaps = np.random.default_rng(0), []
        going = torch.ones(len(asked), dtype=bool)

        def choose(logits, heat=heat, p=p, rng=rng, gaps=gaps):
            nonlocal going
            noise = torch.tensor(rng.gumbel(size=logits.shape))
            kept = book["filter_logits"](logits, temperature=heat, p=p)
            best = (kept + noise).topk(2)
            gaps.extend((best.values[:, 0] - best.values[:, 1])[going])
            if p < 1:
                probs = (logits.double() / heat).softmax(-1)
                probs = probs.sort(descending=True).values[going]
                sums = probs.cumsum(-1) - probs
                gaps.extend((sums - p).abs().amin(-1))
            going = going & (best.indices[:, 0] != book["END"])
            return best.indices[:, 0]

        book["generate"](model, asked, 20, book["END"], choose=choose)
        assert min(gaps) > 1e-4
