"""The chapter on Llama: its model."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

pytestmark = pytest.mark.xdist_group("frameworks")


def test_heads_wider_than_the_model(chapter):
    """Rows of the queries' matrix are not the width of the model."""
    book = chapter("llama")
    sizes = {"vocab_size": 11, "num_layers": 1, "d_model": 10, "d_ff": 7}
    heads = {"num_heads": 4, "key_heads": 2, "d_head": 6}
    config = book["LlamaConfig"](**sizes, **heads)
    model, model_tf = book["Llama"](config), book["LlamaTF"](config)
    book["draw_model"](model, 0)
    book["draw_model_tf"](model_tf, 0)
    ids = torch.arange(5)[None]
    found = model(ids).detach().numpy()
    assert np.allclose(found, model_tf(ids.numpy()), atol=1e-4)


def test_no_race_between_two_tokens_is_close(chapter):
    book = chapter("llama")
    two_best = book["loaded"](book["written"]).topk(2).values[:, 8:-1]
    assert (two_best[..., 0] - two_best[..., 1]).min() > 0.01


def test_half_precision_runs(chapter):
    book = chapter("llama")
    half = book["load_llama"](book["folder"]).bfloat16()
    found = half(book["prompts"])
    assert found.dtype == torch.bfloat16
    wanted = book["by_library"]
    assert (found.float() - wanted).abs().max() < 0.2


def test_pairs_for_halves_are_wrong_from_the_second_token_on(chapter):
    """The first token is right, and the second as bad as any other."""
    book = chapter("llama")
    right, wrong = (
        book["loaded_so"](book["changed"], book["strong"], mistake)
        for mistake in ("", "rotary by pairs")
    )
    ids = book["far_ids"]
    with torch.no_grad():
        gap = (wrong(ids) - right(ids)).abs().amax((0, 2))  # (T,)
    assert gap[0] < 1e-4
    assert gap[1:].min() > 0.1
    assert gap[1:20].mean() > 0.5 * gap[-100:].mean()


def test_prompts_padded_on_the_left(chapter):
    """Tokens and logits are those of a prompt alone, and Transformers'."""
    book = chapter("llama")
    model, generate = book["model"], book["generate"]
    padded = book["token_ids"].clone()
    padded[1, :3] = 0
    mask = padded != 0
    theirs = book["theirs"].generate(
        padded, attention_mask=mask.long(), max_new_tokens=8, do_sample=False
    )
    alone = generate(model, padded[1:, 3:], 8)
    assert torch.equal(generate(model, padded, 8, key_mask=mask), theirs)
    assert torch.equal(theirs[1:, 3:], alone)
    given = padded.numpy().astype("int32"), 8
    found = book["generate_tf"](
        book["model_tf"], *given, key_mask=mask.numpy()
    )
    assert np.array_equal(found, theirs)
    with torch.no_grad():
        behind = model(padded, key_mask=mask)[1, 3:]
        assert torch.allclose(behind, model(padded[1:, 3:])[0], atol=1e-4)
        assert (model(padded)[1, 3:] - behind).abs().max() > 0.1


def test_the_kit_says_the_same_of_both_frameworks(chapter):
    reports = [chapter("llama")[name] for name in ("report", "report_tf")]
    assert reports[0].failed == reports[1].failed == []
    assert [*reports[0].passed] == [*reports[1].passed]
    assert {
        "causality",
        "cache_consistency",
        "padding_invariance",
        "reference_parity",
    } <= {*reports[0].passed}


def test_a_mistake_changes_the_same_logits_in_tensorflow(chapter, tmp_path):
    book = chapter("llama")
    ids = book["token_ids"]

    class NormAfterTF(book["LlamaLayerTF"]):
        def call(self, x, positions, attention_mask, cache=None):
            found, cache = self.attention(
                self.attention_norm(x), positions, attention_mask, cache
            )
            x = self.feed_forward_norm(x + found)
            return x + self.feed_forward(x), cache

    for mistake in book["mistakes"]:
        given = book["changed"], book["strong"], mistake
        said, weights = book["misread"](*given)
        tensors = {
            name: np.ascontiguousarray(weight, "float32")
            for name, weight in weights.items()
        }
        save_file(tensors, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(said))
        wrong_tf = book["load_llama_tf"](tmp_path)
        if mistake == "norm after attention":
            for layer in wrong_tf.layers:
                layer.__class__ = NormAfterTF
        found = book["loaded_so"](*given)(ids).detach()
        assert np.allclose(found, wrong_tf(ids.numpy()), atol=1e-3), mistake


def test_the_copy_in_order_is_that_of_the_matrix(chapter):
    """The story's loader makes the mistake of the table."""
    book = chapter("llama")
    wrong = book["load_in_order"](book["folder"], book["orders"]["up first"])
    given = book["said"], book["tensors"], "gate and up exchanged"
    ids = book["prompts"]
    found = wrong(ids).detach()
    assert np.allclose(found, book["loaded_so"](*given)(ids).detach())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"key_heads": 4}, "4 key heads for 6 heads"),
        ({"d_head": 5}, "of width 5"),
    ],
)
def test_sizes_have_to_fit(chapter, change, says):
    book = chapter("llama")
    with pytest.raises(ValueError, match=says):
        book["replace"](book["config"], **change)
