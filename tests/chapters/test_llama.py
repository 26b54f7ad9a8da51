"""The chapter on Llama: its model, its file, and its mistakes."""

from dataclasses import replace

import keras
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")


def smallest_gap(book, model, prompt, answer):
    """Return how far the likeliest token of an answer is ahead, at least."""
    ids = [book["tokenizer"].encode(x).ids for x in (prompt, answer)]
    with torch.no_grad():
        logits = model(torch.tensor([sum(ids, [])]))[0, len(ids[0]) - 1 :]
    two_best = logits.topk(2).values  # (T, 2)
    gaps = (two_best[:, 0] - two_best[:, 1]).tolist()
    return min(gaps[: max(len(ids[1]), 1)])


def test_heads_wider_than_the_model(chapter):
    """Rows of the queries' matrix are not the width of the model."""
    from cellbycell.pytorch import draw_model
    from cellbycell.tensorflow import draw_model_tf

    book = chapter("llama")
    sizes = {"vocab_size": 11, "num_layers": 1, "d_model": 10, "d_ff": 7}
    heads = {"num_heads": 4, "key_heads": 2, "d_head": 6}
    config = book["LlamaConfig"](**sizes, **heads)
    model, model_tf = book["Llama"](config), book["LlamaTF"](config)
    draw_model(model, 0)
    draw_model_tf(model_tf, 0)
    ids = torch.arange(5)[None]
    found = model(ids).detach().numpy()
    assert np.allclose(found, model_tf(ids.numpy()), atol=1e-4)


def test_no_race_between_two_tokens_of_an_answer_is_close(chapter):
    book = chapter("llama")
    model, wrong = book["model"], book["wrong"]
    for question, answer in zip(book["ANSWERS"], book["texts"], strict=True):
        prompt = book["chat"](question)
        assert smallest_gap(book, model, prompt, answer) > 2e-3, question
    start = "My grandmother kept a small shop"
    story = book["said"](wrong, book["tokenizer"], start, 20)
    assert smallest_gap(book, wrong, start, story) > 2e-3
    assert smallest_gap(book, wrong, book["prompt"], "") > 2e-3
    for mistake in book["mistakes"]:
        given = book["config"], book["weights"], mistake
        made = book["loaded_so"](*given)
        answer = book["said"](made, book["tokenizer"], book["prompt"], 8)
        gap = smallest_gap(book, made, book["prompt"], answer)
        assert gap > 2e-3, mistake


def test_half_precision_runs(chapter):
    """And the usual type of Keras is what it was."""
    book = chapter("llama")
    found = book["loaded"](torch.tensor([book["text"]]))
    assert found.dtype == torch.bfloat16
    assert 0.3 < (found.float() - book["logits"]).abs().max() < 3
    types = {w.dtype for w in book["loaded_tf"].weights}
    assert types == {"bfloat16"}
    assert keras.config.dtype_policy().name == "float32"


def test_unsorted_rows_are_wrong_from_the_second_token_on(chapter):
    """The first token is right, and the second as bad as any other."""
    book = chapter("llama")
    with torch.no_grad():
        found = book["wrong"](torch.tensor([book["text"]]))
    gap = (found - book["logits"])[0].abs().amax(-1)  # (T,)
    assert gap[0] < 1e-3 and gap[1:].min() > 0.5


def test_transformers_agrees_with_unsorted_rows(chapter):
    """So a comparison with its class does not see them."""
    book = chapter("llama")
    theirs = book["to_transformers"](book["config"], book["unsorted"])
    ids = torch.tensor([book["text"][:20]])
    with torch.no_grad():
        gap = (theirs(ids).logits - book["wrong"](ids)).abs().max()
    assert gap < 1e-3


def test_prompts_padded_on_the_left(chapter):
    """Tokens and logits are those of a prompt alone, and Transformers'."""
    book = chapter("llama")
    model, generate = book["small"], book["generate"]
    padded = torch.tensor([[5, 3, 7, 2, 9, 1, 4], [0, 0, 0, 22, 10, 11, 13]])
    mask = padded != 0
    given = book["sizes_of_names"], book["llama_weights"](model)
    theirs = book["to_transformers"](*given).generate(
        padded, attention_mask=mask.long(), max_new_tokens=8, do_sample=False
    )
    alone = generate(model, padded[1:, 3:], 8)
    assert torch.equal(generate(model, padded, 8, key_mask=mask), theirs)
    assert torch.equal(theirs[1:, 3:], alone)
    model_tf = book["filled_llama_tf"](
        book["LlamaTF"](given[0]),
        {name: w.detach().numpy() for name, w in given[1].items()},
    )
    ids = padded.numpy().astype("int32")
    found = book["generate_tf"](model_tf, ids, 8, key_mask=mask.numpy())
    assert np.array_equal(found, theirs)
    with torch.no_grad():
        behind = model(padded, key_mask=mask)[1, 3:]
        assert torch.allclose(behind, model(padded[1:, 3:])[0], atol=1e-4)
        assert (model(padded)[1, 3:] - behind).abs().max() > 0.1


def test_the_kit_says_the_same_of_both_frameworks(chapter):
    reports = [chapter("llama")[name] for name in ("report", "report_tf")]
    assert reports[0].failed == reports[1].failed == []
    assert [*reports[0].passed] == [*reports[1].passed]
    assert {"causality", "cache_consistency"} <= {*reports[0].passed}


def test_a_mistake_changes_the_same_logits_in_tensorflow(chapter):
    book = chapter("llama")
    ids = torch.tensor(book["two_rows"])
    for mistake in book["mistakes"]:
        given = book["sizes_of_names"], book["stored_weights"](), mistake
        config, weights = book["misread"](*given)
        made_tf = book["filled_llama_tf"](book["LlamaTF"](config), weights)
        found = book["loaded_so"](*given)(ids)
        assert np.allclose(found, made_tf(ids.numpy()), atol=1e-3), mistake


def test_which_mistakes_a_new_model_shows(chapter):
    """And the worst are those that anybody sees."""
    book = chapter("llama")
    costs, changes = book["lost"], book["changes"]
    right = costs["no mistake"]
    hidden = ["epsilon 1e-6", "base 10,000", "rows in the file's order"]
    assert all(costs[name] < right + 2 for name in hidden)
    others = [name for name in book["mistakes"][1:] if name not in hidden]
    assert all(costs[name] > 8 for name in others)
    shown = [name for name in changes if changes[name] > book["limit"]]
    assert not {*hidden} & {*shown}
    assert len(shown) <= (len(book["mistakes"]) - 1) // 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"key_heads": 4}, "4 key heads for 9 heads"),
        ({"d_head": 5}, "of width 5"),
    ],
)
def test_sizes_have_to_fit(chapter, change, says):
    book = chapter("llama")
    with pytest.raises(ValueError, match=says):
        replace(book["config"], **change)


def test_all_gradients_are_those_of_transformers(chapter):
    """Of a small Llama, in both frameworks."""
    import tensorflow as tf

    from cellbycell.checkpoint import to_transformers
    from cellbycell.figures.names_model import stored_config, stored_weights

    book, loss_of = chapter("llama"), torch.nn.functional.cross_entropy
    sizes, ids = stored_config(), torch.tensor([[5, 3, 7, 2, 9, 1, 4]])
    small, small_tf = book["Llama"](sizes), book["LlamaTF"](sizes)
    own = {name: w.copy() for name, w in stored_weights().items()}
    book["filled_llama"](small, own)
    book["filled_llama_tf"](small_tf, stored_weights())
    reference = to_transformers(sizes, stored_weights())
    reference(ids, labels=ids).loss.backward()
    loss_of(small(ids)[0, :-1], ids[0, 1:]).backward()
    with tf.GradientTape() as tape:
        errors = tf.nn.sparse_softmax_cross_entropy_with_logits(
            ids.numpy()[0, 1:], small_tf(ids.numpy())[0, :-1]
        )
        loss = tf.reduce_mean(errors)
    by_name = book["llama_weights_tf"](small_tf)
    grads = tape.gradient(loss, [*by_name.values()])
    found = dict(zip(by_name, grads, strict=True))
    weights = book["llama_weights"](small)
    assert weights.keys() == dict(reference.named_parameters()).keys()
    for name, weight in weights.items():
        wanted = reference.get_parameter(name).grad
        assert torch.allclose(weight.grad, wanted, atol=1e-5)
        other = tf.convert_to_tensor(found[name]).numpy()
        other = other if "embed" in name else other.T
        assert np.allclose(other, wanted, atol=1e-5)
        assert wanted.abs().max() > 1e-4
