"""The chapter on families of decoders: what it says of others."""

import inspect

import pytest
import torch

from benchmarks import traits

pytestmark = pytest.mark.xdist_group("frameworks")


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


def test_the_newest_have_what_the_table_says(book):
    """Counted again, where the installed version is the counted one."""
    counted, now = book["counted"], traits.counts()
    if now["version"] == counted["version"]:
        assert now == counted
    for name, (new, every) in now["traits"].items():
        assert 0 < new <= every, name
        assert every <= now["decoders"][1], name


def test_patterns_find_what_is_known():
    """Traits of families that this book builds."""
    found = traits.traits(traits.decoders())
    for name, family in {
        "experts": "mixtral",
        "windows": "gemma2",
        "heads norm": "qwen3",
        "shared expert": "deepseek_v3",
        "choice bias": "deepseek_v3",
        "several tokens": "qwen3_5",
        "output gate": "qwen3_5",
        "latents": "deepseek_v3",
        "part rotation": "qwen3_5",
        "soft caps": "gemma2",
        "state": "qwen3_5",
        "sinks": "gpt_oss",
    }.items():
        assert family in found[name] and "llama" not in found[name], name
