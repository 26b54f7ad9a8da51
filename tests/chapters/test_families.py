"""The chapter on families of decoders: its checkers, what it says of others.

test_exercises.py tries each checker on the stub and the solution.
"""

import inspect

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")

SLIDING = "sliding_attention"


def by_kind(window=None, base=None, swap=False):
    """Return a reading of a config with a mistake."""

    def read(config):
        rows = []
        for kind in config["layer_types"]:
            if swap:
                others = {*config["layer_types"]} - {kind}
                kind = others.pop()
            own = config["sliding_window"] if kind == SLIDING else 0
            theta = config["rope_parameters"][kind]["rope_theta"]
            rows.append((own if window is None else window, base or theta))
        return rows

    return read


def exchanged_bases(config):
    rows = by_kind()(config)
    return [(window, 1e4 if base == 1e6 else 1e6) for window, base in rows]


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def shares(pick=lambda x, n: np.argsort(-x)[:n], divide="asked", give=None):
    """Return a router with a mistake."""

    def shares_of(scores, count, to_one):
        kept, best = np.zeros_like(scores), pick(scores, count)
        every = softmax(scores)
        kept[best] = every[best] if give is None else give(scores, every, best)
        to_one = to_one if divide == "asked" else divide
        return kept / kept.sum() if to_one else kept

    return shares_of


def in_order(scores, count, to_one):
    right = shares()(scores, count, to_one)
    found = np.zeros_like(scores)
    found[:count] = np.sort(right)[::-1][:count]
    return found


def among_chosen(scores, every, best):
    return softmax(scores[best])


def capped(cap_it, late=False, masked_first=False, mask_it=True, axis=-1):
    """Return weights of attention with a mistake."""

    def weights(scores, cap, mask):
        mask = mask if mask_it else np.ones_like(mask)
        if masked_first:
            return softmax(cap_it(np.where(mask, scores, -np.inf), cap))
        if late:
            return cap_it(softmax(np.where(mask, scores, -np.inf)), cap)
        scores = np.where(mask, cap_it(scores, cap), -np.inf)
        return softmax(scores) if axis == -1 else softmax(scores.T).T

    return weights


def soft(x, cap):
    return cap * np.tanh(x / cap)


def divided(x, cap):
    return soft(x, cap) / soft(x, cap).sum(axis=-1, keepdims=True)


WRONG = {
    "windows_and_bases": {
        "two kinds are exchanged": by_kind(swap=True),
        "full attention has its own": by_kind(base=1e4),
        "windows have their own": by_kind(base=1e6),
        "full attention sees all": by_kind(window=512),
        "no layer has a window": by_kind(window=0),
        "bases are exchanged": exchanged_bases,
        "its window and its base": by_kind(window=511),
    },
    "shares_of": {
        "not divided by their sum": shares(divide=False),
        "to_one is False": [
            shares(divide=True),
            shares(divide=False, give=among_chosen),
        ],
        "every expert has a share": shares(lambda x, n: np.arange(5)),
        "a second time": shares(give=lambda s, e, b: softmax(e[b])),
        "equal shares": shares(give=lambda s, e, b: 1 / len(b)),
        "worst experts": shares(lambda x, n: np.argsort(x)[:n]),
        "order of their size": in_order,
        "take the softmax": shares(divide=False, give=lambda s, e, b: s[b]),
        "keep the best": lambda scores, count, to_one: np.ones(5),
    },
    "capped_weights": {
        "cut at the cap": capped(lambda x, cap: x.clip(-cap, cap)),
        "score of -cap": capped(soft, masked_first=True),
        "after the softmax.": capped(soft, late=True),
        "rows are divided again": capped(divided, late=True),
        "not multiplied": capped(lambda x, cap: np.tanh(x / cap)),
        "not divided by the cap": capped(lambda x, c: c * np.tanh(x)),
        "there is no cap": capped(lambda x, cap: x),
        "mask is missing": capped(soft, mask_it=False),
        "over the queries": capped(soft, axis=0),
        "in this order": lambda scores, cap, mask: scores,
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


# What the chapter says about Transformers


def test_each_family_is_a_file_of_hundreds_of_lines(book):
    for numbers in book["known"].values():
        module = inspect.getmodule(type(numbers["model"]))
        assert inspect.getsource(module).count("\n") > 300


def test_the_numbers_that_agree_are_not_small(book):
    for numbers in book["known"].values():
        assert numbers["logits"].std() > 0.3
        assert all(g.any() for g in numbers["gradients"].values())


def test_the_row_of_a_pad_gets_no_gradient(book):
    model = book["AutoModelForCausalLM"].from_config(
        book["tiny_config"]("llama", pad_token_id=0)
    )
    model(torch.tensor([[0, 3, 5]])).logits.square().sum().backward()
    of_rows = model.model.embed_tokens.weight.grad.abs().sum(-1)  # (N,)
    assert of_rows[0] == 0 and of_rows[3] > 0


def test_a_cap_of_scores_disables_sdpa(book, tmp_path):
    load = book["AutoModelForCausalLM"].from_pretrained
    for family in ("llama", "gemma2"):
        book["known"][family]["model"].save_pretrained(tmp_path / family)
    by_default = {
        family: load(tmp_path / family).config._attn_implementation
        for family in ("llama", "gemma2")
    }
    assert by_default == {"llama": "sdpa", "gemma2": "eager"}
    with pytest.raises(ValueError, match="scaled_dot_product_attention"):
        load(tmp_path / "gemma2", attn_implementation="sdpa")


def test_without_a_dtype_a_model_has_that_of_its_folder(book, tmp_path):
    book["tiny_model"]("llama").bfloat16().save_pretrained(tmp_path)
    model = book["AutoModelForCausalLM"].from_pretrained(tmp_path)
    assert model.dtype == torch.bfloat16


def test_scores_of_new_weights_are_near_zero(book):
    """Unless queries and keys are normalised, and positions matter little."""
    for family, is_small in (("llama", True), ("qwen3", False)):
        numbers = book["known"][family]
        config = numbers["config"]
        small = book["as_initialised"](numbers["weights"], config)
        small = {name: torch.tensor(w) for name, w in small.items()}
        x = small["model.embed_tokens.weight"][torch.tensor(book["token_ids"])]
        x = book["scale_rows"](
            x, small, "model.layers.0.input_layernorm", config
        )
        query, key = (
            book["asking_heads"](x, small, 0, part, config) for part in "qk"
        )
        key = key.repeat_interleave(config.num_heads // config.key_heads, 1)
        scores = query @ key.mT / config.d_head**0.5
        assert (scores.abs().max() < 0.1) == is_small


def test_older_models_have_these_epsilons(book):
    assert book["gpt2_config"].layer_norm_epsilon == 1e-5
    assert book["bert_config"].layer_norm_eps == 1e-12
    for _, _, right in book["older"].values():
        assert right.std() > 0.5


def test_the_table_names_each_family_but_llama_and_phi3(book):
    named = {family for row in book["differ"].values() for family in row}
    assert named == book["FAMILIES"].keys() - {"llama", "phi3"}
