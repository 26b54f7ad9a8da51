"""Which tokens the filters keep, and which a sampler draws.

Each test runs in both frameworks, or in the one that is installed, or in both
at once where they are compared.
"""

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

pytestmark = pytest.mark.xdist_group("frameworks")

SETTINGS = [
    dict(temperature=0),
    dict(temperature=0.7, k=7),
    dict(p=0.9),
    dict(p=0),
    dict(min_p=0.1),
    dict(min_p=1.0),
    dict(temperature=1.5, min_p=0.1),
    dict(temperature=1.3, k=20, p=0.8, min_p=0.05),
]


@pytest.fixture(params=[PyTorch, TensorFlow])
def framework(request):
    return request.param("float32")


@pytest.fixture
def both():
    return PyTorch("float32"), TensorFlow("float32")


def rows(count=200, columns=40, seed=0):
    return 3 * np.random.default_rng(seed).normal(size=(count, columns))


# What is kept


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64"]
)
def test_both_frameworks_keep_the_same(both, settings, dtype):
    found = []
    for framework in both:
        logits = framework.tensor(rows(), dtype)
        kept = framework.filter_logits(logits, **settings)
        wide = "float64" if dtype == "float64" else "float32"
        assert framework.kind(kept) == wide
        found.append(framework.wide(kept))
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("min_p", [0.01, 0.1, 0.5])
def test_min_p_in_half_precision_is_that_of_the_numbers(
    framework, dtype, min_p
):
    logits = framework.tensor(rows(600), dtype)
    found = framework.keep_min_p(logits, min_p)
    numbers = framework.wide(logits)
    gaps = numbers - numbers.max(-1, keepdims=True)
    wanted = np.where(np.exp(gaps) < min_p, -np.inf, numbers)
    np.testing.assert_array_equal(framework.wide(found), wanted)
    assert framework.kind(found) == dtype


def test_nan_is_kept_as_if_it_were_infinite(framework):
    given = [[1.0, np.nan, 3.0, 2.0], [np.inf, np.nan, 0.0, -np.inf]]
    for k, kept in [(1, [[1], [0]]), (2, [[1, 2], [0, 1]])]:
        found = framework.keep_top_k(framework.tensor(given), k)
        wanted = np.full((2, 4), -np.inf)
        for row, ids in enumerate(kept):
            wanted[row, ids] = np.array(given)[row, ids]
        np.testing.assert_array_equal(framework.wide(found), wanted)


# What is drawn


def test_a_seed_draws_the_same_in_both(both):
    logits = rows(50)
    for settings in SETTINGS:
        drawn = []
        for framework in both:
            choose = framework.sampler(7, **settings)
            given = framework.tensor(logits)
            drawn.append([np.asarray(choose(given)) for _ in range(3)])
        np.testing.assert_array_equal(*drawn)


def test_a_seed_stands_for_the_noise_of_numpy(framework):
    logits = framework.tensor(rows(5))
    noise = np.random.default_rng(7).gumbel(size=(3, 5, 40))
    by_seed, by_noise = framework.sampler(7), framework.sampler(noise)
    for row in noise:
        wanted = (framework.wide(logits) + row).argmax(-1)
        assert np.array_equal(by_seed(logits), wanted)
        assert np.array_equal(by_noise(logits), wanted)


@pytest.mark.parametrize("of_noise", ["float32", "float64", "array"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_noise_of_any_type_is_taken(framework, of_noise, dtype):
    noise = np.random.default_rng(0).gumbel(size=(2, 30, 40))
    given = noise
    if of_noise != "array":
        given = framework.tensor(noise, of_noise)
        noise = framework.wide(given)
    logits = framework.tensor(rows(30), dtype)
    choose = framework.sampler(given)
    for row in noise:
        wanted = (framework.wide(logits) + row).argmax(-1)
        assert np.array_equal(choose(logits), wanted)


def test_no_noise_is_left(framework):
    choose = framework.sampler(np.zeros((1, 2, 40)))
    logits = framework.tensor(rows(2))
    choose(logits)
    with pytest.raises(Exception, match="out of bounds"):
        choose(logits)


def test_temperature_zero_is_greedy_whatever_the_noise(framework):
    logits = framework.tensor(rows(50))
    found = framework.sampler(0, temperature=0)(logits)
    assert np.array_equal(found, framework.greedy(logits))


def test_shares_are_the_probabilities(framework):
    logits = np.log([[8.0, 4.0, 2.0, 1.0, 1.0]])
    logits = framework.tensor(logits.repeat(10_000, 0))
    drawn = np.asarray(framework.sampler(0)(logits))
    shares = np.bincount(drawn) / len(drawn)
    np.testing.assert_allclose(
        shares, [8 / 16, 4 / 16, 2 / 16, 1 / 16, 1 / 16], atol=0.01
    )


def test_noise_comes_to_the_device_of_the_logits():
    """A tensor made without a device would have no numbers here."""
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import sampler

    logits = torch.tensor(rows(3))
    wanted = sampler(0, k=9, p=0.9, min_p=0.01)(logits)
    with torch.device("meta"):
        found = sampler(0, k=9, p=0.9, min_p=0.01)(logits)
    assert torch.equal(found, wanted)


# Whole texts


@pytest.fixture
def llama():
    """A small Llama with weights so large that its logits differ."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=20,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=6,
        intermediate_size=32,
        pad_token_id=0,
        eos_token_id=2,
    )
    model = transformers.LlamaForCausalLM(config).requires_grad_(False)
    for weight in model.parameters():
        weight *= 15 if weight.ndim > 1 else 1
    return model.eval()


def test_texts_are_those_of_transformers(llama):
    import torch

    from cellbycell.pytorch import generate, sampler

    prompts = [[5, 3, 7], [4, 9, 11], [8, 8, 6], [13, 12, 19]]
    prompts, texts = torch.tensor(prompts), set()
    for seed, settings in enumerate(
        (
            dict(temperature=0),
            dict(temperature=1.5),
            dict(p=0.5),
            dict(temperature=0.7, k=3),
            dict(temperature=2.0, min_p=0.2),
        )
    ):
        theirs = dict(do_sample=False)
        if settings.get("temperature", 1) > 0:
            theirs = dict(do_sample=True, top_k=settings.get("k", 0))
            theirs |= dict(top_p=settings.get("p", 1.0))
            for name in ("temperature", "min_p"):
                theirs |= {n: x for n, x in settings.items() if n == name}
        torch.manual_seed(seed)
        wanted = llama.generate(prompts, max_new_tokens=12, **theirs)
        torch.manual_seed(seed)
        races = [torch.empty(4, 20).exponential_() for _ in range(12)]
        choose = sampler(-torch.stack(races).log(), **settings)
        found = generate(
            lambda ids: llama(ids).logits, prompts, 12, 2, choose=choose
        )
        assert torch.equal(found, wanted)
        texts.add(str(wanted.tolist()))
    assert len(texts) == 5
