"""The chapter on families of decoders: its checkers, loader and functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import json

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")

SLIDING = "sliding_attention"
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


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
        "every expert is asked": shares(lambda x, n: np.arange(5)),
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


def default_config(book, family):
    """Return the config.json of a family as Transformers has it, a dict."""
    config = book["AutoConfig"].for_model(family)
    return json.loads(config.to_json_string())


def test_the_default_config_of_each_family_is_known(chapter):
    book = chapter("families")
    for family in book["FAMILIES"]:
        config = default_config(book, family)
        switches = book["switches_from"](config)
        assert len(switches.bases) == config["num_hidden_layers"], family
        assert switches.num_heads == config["num_attention_heads"], family


# Fields that change the numbers, if they have these values.
REFUSED = [
    ("cohere", {"use_qk_norm": True}, "use_qk_norm"),
    ("llama", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping"),
    ("llama", {"logit_scale": 0.5}, "logit_scale"),
    ("llama", {"something_new": 0.1}, "something_new"),
    ("llama", {"something_new": True}, "something_new"),
    ("llama", {"something_new": False}, "something_new"),
    ("llama", {"is_causal": False}, "is_causal"),
    ("llama", {"is_causal": None}, "is_causal"),
    ("gemma2", {"hidden_act": "silu"}, "Two activations"),
    ("gemma", {"hidden_activation": "silu"}, "Two activations"),
    ("smollm3", {"layer_types": [SLIDING] * 36}, "a window"),
    ("gemma2", {"sliding_window": None}, "a window"),
    (
        "qwen2",
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        "rope_scaling",
    ),
    ("gemma3_text", {"rope_parameters": {"rope_theta": 1e6}}, "its bases"),
    (
        "llama",
        {"rope_parameters": {"full_attention": {"rope_theta": 1e4}}},
        "its bases",
    ),
    (
        "llama",
        {"rope_parameters": STRETCHED}
        | {"original_max_position_embeddings": 64},
        "two values",
    ),
    ("olmo3", {"rope_parameters": STRETCHED}, "in some layers only"),
    ("gemma", {"use_bidirectional_attention": True}, "bidirectional"),
    ("qwen3_moe", {"mlp_only_layers": [1]}, "mlp_only_layers"),
    ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
    ("gemma3_text", {"attn_logit_softcapping": 50.0}, "softcapping"),
    ("llama", {"hidden_act": "gelu"}, "gelu"),
    ("llama", {"rms_norm_eps": None, "model_type": "vicuna"}, "vicuna"),
    ("gemma2", {"layer_types": None}, "layer_types"),
    ("qwen2", {"layer_types": ["linear_attention"] * 32}, "linear_attention"),
    ("phi3", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}},
        "yarn",
    ),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
        "a part of each",
    ),
    ("llama", {"rope_parameters": {"rope_type": "default"}}, "rope_theta"),
    (
        "llama",
        {"rope_parameters": None, "rope_theta": 1e4}
        | {"rope_scaling": {"type": "linear", "factor": 2.0}},
        "linear",
    ),
]


@pytest.mark.parametrize(("family", "changes", "says"), REFUSED)
def test_a_field_that_is_not_known_is_named(chapter, family, changes, says):
    book = chapter("families")
    config = default_config(book, family)
    assert book["refusal"](config) is None
    assert says in book["refusal"](config | changes)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("llama", "rms_norm_eps"),
        ("llama", "num_attention_heads"),
        ("llama", "num_hidden_layers"),
        ("gemma", "hidden_act"),
        ("gemma2", "hidden_activation"),
        ("gemma2", "attn_logit_softcapping"),
        ("gemma2", "final_logit_softcapping"),
        ("mistral", "sliding_window"),
        ("qwen3", "use_sliding_window"),
        ("qwen3_moe", "norm_topk_prob"),
        ("mixtral", "num_experts_per_tok"),
    ],
)
def test_a_field_that_is_missing_is_named(chapter, family, name):
    book = chapter("families")
    config = default_config(book, family)
    del config[name]
    assert name in book["refusal"](config)


def test_the_older_spelling_of_the_base_is_read(chapter):
    book = chapter("families")
    config = default_config(book, "llama")
    config["rope_parameters"] |= {"rope_theta": 5e5}
    older = {k: v for k, v in config.items() if k != "rope_parameters"}
    older |= {"rope_theta": 5e5, "rope_scaling": None}
    assert book["switches_from"](older) == book["switches_from"](config)


def test_a_stretched_llama_is_that_of_transformers(chapter):
    book = chapter("families")
    config = book["tiny_config"]("llama", rope_parameters=STRETCHED)
    model = book["AutoModelForCausalLM"].from_config(config).eval()
    book["fill"](model)
    weights, switches = book["saved_and_loaded"](model)
    ids = np.random.default_rng(0).integers(0, 13, (2, 40))
    with torch.no_grad():
        theirs = model(torch.tensor(ids)).logits.numpy()
    found = book["logits_of"](weights, switches, ids)
    assert np.allclose(found, theirs, atol=1e-4)
    plain = book["replace"](switches, bases=(5e5, 5e5))
    assert np.abs(book["logits_of"](weights, plain, ids) - theirs).max() > 0.01


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {"attention_bias": True}),
        ("llama", {"mlp_bias": True}),
        ("ernie4_5", {"use_bias": True}),
        ("seed_oss", {"attention_out_bias": True}),
        ("seed_oss", {"attention_bias": False}),
        ("qwen3", {"attention_bias": True}),
        ("gemma", {"attention_bias": True}),
        ("cohere2", {"attention_bias": True}),
        ("gemma3_text", {"final_logit_softcapping": 3.0}),
        ("qwen3_moe", {"norm_topk_prob": True}),
        ("qwen2", {"tie_word_embeddings": True}),
        ("cohere", {"tie_word_embeddings": False}),
        ("mixtral", {"sliding_window": 3, "num_experts_per_tok": 3}),
        ("phi3", {"sliding_window": 3}),
        ("smollm3", {"no_rope_layers": [0, 1]}),
        (
            "exaone4",
            {"sliding_window": None, "layer_types": ["full_attention"] * 2},
        ),
        ("llama", {"num_key_value_heads": 6, "head_dim": 8}),
        (
            "olmo3",
            {"rope_parameters": {"full_attention": STRETCHED}}
            | {"layer_types": ["full_attention", SLIDING]},
        ),
    ],
)
def test_other_configs_are_those_of_transformers(chapter, family, changes):
    book = chapter("families")
    config = book["tiny_config"](family, **changes)
    model = book["AutoModelForCausalLM"].from_config(config).eval()
    book["fill"](model)
    weights, switches = book["saved_and_loaded"](model)
    ids = np.random.default_rng(0).integers(0, 13, (2, 9))
    with torch.no_grad():
        theirs = model(torch.tensor(ids)).logits.numpy()
    assert np.allclose(
        book["logits_of"](weights, switches, ids), theirs, atol=1e-4
    )


def test_a_folder_with_too_much_or_too_little_is_refused(chapter, tmp_path):
    from safetensors.numpy import load_file, save_file

    book = chapter("families")
    book["tiny_model"]("qwen3").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    name = "model.layers.0.self_attn.q_norm.weight"
    book["load_decoder"](tmp_path)
    save_file({k: w for k, w in weights.items() if k != name}, file)
    with pytest.raises(ValueError, match="q_norm"):
        book["load_decoder"](tmp_path)
    extra = {"model.layers.0.self_attn.q_proj.bias": weights[name]}
    save_file(weights | extra, file)
    with pytest.raises(ValueError, match=r"q_proj\.bias, are not read"):
        book["load_decoder"](tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    config |= {"num_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ValueError, match="do not fit"):
        book["load_decoder"](tmp_path)


def test_each_family_that_is_not_covered_exists_and_is_refused(chapter):
    book = chapter("families")
    for family, why in book["NOT_COVERED"].items():
        config = default_config(book, family)
        assert why in book["refusal"](config)


def test_a_head_beside_a_tied_table_is_read_or_refused(chapter):
    book = chapter("families")
    table = {"model.embed_tokens.weight": np.ones((3, 2), np.float32)}
    switches = book["replace"](book["llama"], tied=True)
    for head, found in ((1.0, table.keys()), (2.0, {"lm_head.weight"})):
        both = table | {"lm_head.weight": np.full((3, 2), head, np.float32)}
        assert found <= book["plain_weights"](both, switches).keys()
    same = table | {"lm_head.weight": np.ones((3, 2), np.float32)}
    assert book["plain_weights"](same, switches).keys() == table.keys()


def test_a_missing_bias_of_seed_oss_is_the_default_of_transformers(chapter):
    book = chapter("families")
    config = default_config(book, "seed_oss")
    switches = book["switches_from"](config)
    del config["attention_bias"]
    assert switches.biases == ("q", "k", "v")
    assert book["switches_from"](config) == switches
