"""The chapter on the key-value cache: its functions."""

import numpy as np
import pytest
import torch
from transformers import DynamicCache

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.mark.parametrize("sizes", [[9], [1] * 9, [5, 1, 3], [2, 2, 5]])
def test_chunks_are_the_whole_in_both_frameworks(chapter, sizes):
    book = chapter("cache")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 9, 12))
    layers = rng.normal(size=(3, 3, 12, 12)) / 12**0.5
    whole, caches = book["read"](*map(torch.tensor, (x, layers)), 2, [9])
    found, kept = book["read"](*map(torch.tensor, (x, layers)), 2, sizes)
    twin, _ = book["read_tf"](*map(book["tf"].constant, (x, layers)), 2, sizes)
    assert torch.allclose(found, whole, atol=1e-10)
    assert np.allclose(twin, whole, atol=1e-6)
    assert all(
        torch.allclose(a, b)
        for pair in zip(caches, kept, strict=True)
        for a, b in zip(*pair, strict=True)
    )


@pytest.mark.parametrize("key_heads", [1, 2, 3, 6])
def test_grouped_attention_is_that_of_copies(chapter, key_heads):
    book = chapter("cache")
    x = torch.sin(torch.arange(2 * 6 * 5 * 4.0) ** 2).reshape(2, 6, 5, 4)
    key, value = x[:, :key_heads].cos(), x[:, -key_heads:]
    copies = [y.repeat_interleave(6 // key_heads, dim=1) for y in (key, value)]
    mask = torch.ones(5, 5).tril().bool()
    right, _ = book["attend"](x, *copies, mask)
    found = book["attend_grouped"](x, key, value, mask)
    assert torch.allclose(found, right, atol=1e-6)
    given = [y.numpy() for y in (x, key, value, mask)]
    assert np.allclose(book["attend_grouped_tf"](*given), right, atol=1e-5)


def test_no_race_between_two_tokens_is_close(chapter):
    book = chapter("cache")
    written = book["by_cache"]
    two_best = book["model"](written[:, :-1]).topk(2).values[:, 8:]
    assert (two_best[..., 0] - two_best[..., 1]).min() > 0.01


def near(one, other):
    return np.allclose(one, other, atol=1e-5)


def far(one, other):
    return np.abs(np.asarray(one) - np.asarray(other)).max() > 0.1


def test_cases_differ_alike_in_both_frameworks(chapter):
    book = chapter("cache")
    no_mistake = book["no_mistake"]
    for name, correct in {
        "at_zero": book["right"],
        "twice": no_mistake,
        "turned_again": book["right"],
        "two_countings": no_mistake[:, :, 4:5],
        "tiled": book["by_copies"],
    }.items():
        assert near(book[name], book[f"{name}_tf"]), name
        assert far(book[name], correct), name
    assert near(book["twice"][:, :, :4], no_mistake[:, :, :4])
    assert near(book["tiled"][:, [0, 5]], book["by_copies"][:, [0, 5]])
    assert near(book["weights"], book["weights_tf"])
    assert near(book["signed_tf"], book["weights_tf"])
    assert far(book["absolute_tf"], book["weights_tf"])


def test_side_roads_hold_in_both_frameworks(chapter):
    book = chapter("cache")
    windowed, alone = book["windowed"], torch.stack(book["alone"])
    assert near(torch.cat(book["rows"], 2), windowed)
    assert near(book["tf"].concat(book["rows_tf"], 2), windowed)
    assert far(windowed, book["no_mistake"])
    assert (
        set(book["by_room"].values()) == {0} == {*book["by_room_tf"].values()}
    )
    for padded in (book["padded"], book["padded_tf"]):
        assert near(padded["by token"], alone)
        assert near(padded["by column"], alone)
        assert far(padded["mixed"], alone)
    one_layer = book["window_mask"].float()
    reach = int(((one_layer @ one_layer)[-1] > 0).sum())
    assert reach == 2 * (book["room"] - 1) + 1
    for found in (book["by_count"], book["by_count_tf"]):
        one, other = (
            np.abs(np.asarray(found["true", rest] - found["in cache", rest]))
            for rest in ("window only", "with sinks")
        )
        assert one.max() < 1e-4 < 0.01 < other.max()


def test_the_library_keeps_what_cache_bytes_counts(chapter):
    book = chapter("cache")
    sizes, cache = book["sizes"], book["cache"]
    kept = [y for layer in cache.layers for y in (layer.keys, layer.values)]
    one = book["cache_bytes"](
        sizes.num_layers, sizes.key_heads, sizes.d_head, 1, bits=32
    )
    assert sum(y.nbytes for y in kept) == 4 * 22 * one  # the last is not read
    ids = book["by_library"][:, :-1]
    _, own = book["model"](ids, cache=[])
    assert torch.allclose(kept[0], own[0][0], atol=1e-4)  # turned keys


def test_checkpointing_in_training_turns_the_cache_off(chapter):
    book = chapter("cache")
    llama, prompts = book["llama"], book["prompts"]
    kept = DynamicCache(config=llama.config)
    name = "activation_checkpointing"  # in older versions: gradient_...
    if not hasattr(llama, f"{name}_enable"):
        name = "gradient_checkpointing"
    try:
        llama.train()
        getattr(llama, f"{name}_enable")()
        llama(prompts, past_key_values=kept)
        assert kept.get_seq_length() == 0
    finally:
        getattr(llama, f"{name}_disable")()
        llama.eval()
    llama(prompts, past_key_values=kept)
    assert kept.get_seq_length() == prompts.shape[1]


def test_the_kernel_is_wrong_in_chunks_alone(chapter):
    """With one query, or as many as keys, it is attend_grouped."""
    book = chapter("cache")
    x = torch.sin(torch.arange(2 * 4 * 5 * 6.0) ** 2).reshape(2, 4, 5, 6)
    key, value = x[:, :2].cos(), x[:, 2:]
    mask = torch.ones(5, 5).tril().bool()
    for first, is_same in ((0, True), (4, True), (3, False)):
        given = x[:, :, first:], key, value, mask[first:]
        right = book["attend_grouped"](*given)
        arrays = [y.numpy() for y in given]
        found = book["attend_kernel"](*given)
        assert near(found, book["attend_kernel_tf"](*arrays))
        assert near(found, right) == is_same


def test_a_published_model_reads_less_with_a_cache(chapter):
    book = chapter("cache")
    length, count = book["story"].shape[1], 8
    assert book["kept_read"] == length + count - 1
    assert book["all_read"] == sum(length + n for n in range(count))
    logits = book["smol"](book["kept_ids"])[:, length - 1 : -1]
    best, second = logits.topk(2).values.unbind(-1)
    assert (best - second).min() > 0.1  # another processor writes the same
