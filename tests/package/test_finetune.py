"""Edges of packed rows and adapters, in the frameworks that are installed."""

from importlib import import_module

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(params=[PyTorch, TensorFlow])
def framework(request):
    return request.param()


def package():
    return import_module("cellbycell.common")


def llama(framework, tied=False):
    name = "Llama" if isinstance(framework, PyTorch) else "LlamaTF"
    sizes = dict(vocab_size=9, num_layers=2, d_model=12, num_heads=6)
    sizes |= dict(key_heads=2, d_head=4, d_ff=10, tied=tied)
    config = package().LlamaConfig(**sizes)
    model = getattr(framework.package, name)(config)
    import_module("cellbycell.names").initialise(model, seed=1)
    return model


def numbers(x):
    return np.asarray(x.detach() if hasattr(x, "detach") else x)


def test_targets_are_the_answers_and_their_ends():
    targets_of = package().answer_targets
    assert targets_of([([3, 4], False), ([5, 6], True)]) == (
        [3, 4, 5],
        [0, 5, 6],
    )
    assert targets_of([([3], 0), ([5], 1)]) == ([3], [5])
    turns = [([3], 0), ([5, 2], 1), ([4, 7], 0), ([6, 2], 1), ([8], 0)]
    assert targets_of(turns) == ([3, 5, 2, 4, 7, 6, 2], [5, 2, 0, 0, 6, 2, 0])
    for parts in ([], [([3, 4], False)], [([5], True)], [([], 0), ([5], 1)]):
        with pytest.raises(ValueError, match="nothing is asked"):
            targets_of(parts)


def test_only_the_assistants_words_and_ends_are_learned():
    turns = [("system", "s"), ("user", "u"), ("assistant", "a")]
    parts = package().chat_parts(turns)
    assert [text for text, learned in parts if learned] == ["a<|im_end|>"]
    text = "".join(text for text, _ in parts)
    assert text.startswith("<|im_start|>system\ns<|im_end|>\n<|im_start|>user")


def test_each_chat_comes_once_before_one_comes_again():
    rows = [([i, 9], [0, i]) for i in range(1, 6)]
    batches = package().chat_batches(rows, 5, 5)
    assert len(batches) == 5 and batches[0].shape == (4, 1, 5)
    first = [i for x in batches for i in x[1, 0] if i]
    assert sorted(first[:5]) == sorted(first[5:]) == [1, 2, 3, 4, 5]


def test_rows_are_filled_in_turn_to_the_last_place():
    pairs = [([3], [5, 2]), ([4, 4], [2]), ([6], [2]), ([7, 7, 7], [8, 2])]
    given = [package().answer_targets([(x, 0), (y, 1)]) for x, y in pairs]
    rows = package().pack_rows(given, 4)
    assert rows.shape == (4, 3, 4) and rows.dtype == np.int64
    ids, targets, texts, positions = rows
    assert ids.tolist() == [[3, 5, 4, 4], [6, 0, 0, 0], [7, 7, 7, 8]]
    assert targets.tolist() == [[5, 2, 0, 2], [2, 0, 0, 0], [0, 0, 8, 2]]
    assert texts.tolist() == [[1, 1, 2, 2], [1, 0, 0, 0], [1, 1, 1, 1]]
    assert positions.tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 2, 3]]
    with pytest.raises(ValueError, match="4 tokens, in rows of 3"):
        package().pack_rows(given, 3)


def test_a_mask_has_no_blind_row_and_no_text_sees_another():
    texts = np.array([[1, 1, 2, 0, 0], [1, 1, 1, 1, 1]])
    mask = package().block_mask(texts)
    assert mask.dtype == bool and mask.any(-1).all()
    assert mask[0].sum(-1).tolist() == [1, 2, 1, 1, 2]
    assert np.array_equal(mask[1], np.tri(5, dtype=bool))


@pytest.mark.parametrize("tied", [False, True])
def test_one_text_in_a_row_is_the_model(framework, tied):
    model = llama(framework, tied)
    ids = np.array([[3, 5, 4, 4], [6, 1, 2, 8]])
    mask = package().block_mask(np.ones_like(ids))
    positions = np.arange(4)[None].repeat(2, 0)
    given = map(framework.tensor, (ids, positions, mask))
    found = framework.packed_logits(model, *given)
    wanted = model(framework.tensor(ids))
    np.testing.assert_allclose(numbers(found), numbers(wanted), atol=1e-5)


def test_the_loss_leaves_out_what_is_not_asked(framework):
    model = llama(framework)
    texts = [([3, 5, 4], [0, 4, 2]), ([6, 1], [1, 2])]
    rows = package().pack_rows(texts, 4)
    found = numbers(framework.packed_loss(model, rows))
    logits = numbers(model(framework.tensor(rows[0]))).astype(float)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    asked = [(0, 1, 4), (0, 2, 2), (1, 0, 1), (1, 1, 2)]
    wanted = -np.mean([logs[place] for place in asked])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def loras(model):
    found = []
    for part, name in package().projections(model):
        if hasattr(getattr(part, name), "up"):
            found.append((name, getattr(part, name)))
    return found


def test_names_say_which_matrices_get_an_adapter(framework):
    model = llama(framework)
    framework.add_lora(model, 2, 4, names=("value_proj", "up"))
    assert [name for name, _ in loras(model)] == ["value_proj", "up"] * 2


def change(framework, model):
    for i, (_, lora) in enumerate(loras(model)):
        rng = np.random.default_rng(i)
        values = rng.normal(size=tuple(lora.up.shape)).astype("float32")
        if isinstance(framework, PyTorch):
            lora.up.data = framework.tensor(values)
        else:
            lora.up.assign(values)


@pytest.mark.parametrize("factor", [0, 1, 0.5])
def test_merged_is_unmerged_by_any_factor(framework, factor):
    model = llama(framework)
    ids = framework.tensor([[3, 5, 4, 4, 1]])
    base = numbers(model(ids))
    framework.add_lora(model, rank=3, alpha=2)
    assert np.array_equal(numbers(model(ids)), base)
    change(framework, model)
    assert abs(numbers(model(ids)) - base).max() > 0.1
    for _, lora in loras(model):
        lora.scale *= factor
    wanted = numbers(model(ids))
    for _, lora in loras(model):
        lora.scale = 2 / 3
    assert framework.merge_lora(model, factor=factor) is model
    assert not loras(model)
    found = numbers(model(ids))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert factor or np.array_equal(found, base)
