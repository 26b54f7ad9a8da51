"""What the package reads from the folders of twenty families of decoders.

Transformers writes the folders and is the reference.
"""

import json
import tempfile
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cellbycell.families import (
    FAMILIES,
    NOT_COVERED,
    decoder_config,
    decoder_shapes,
    load_decoder,
    plain_weights,
)

files = pytest.importorskip("safetensors.torch")
hypothesis = pytest.importorskip("hypothesis")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytorch = pytest.importorskip("cellbycell.pytorch")

st = hypothesis.strategies
pytestmark = pytest.mark.xdist_group("frameworks")

SLIDING, FULL = "sliding_attention", "full_attention"
PLAIN = {"rope_type": "default", "rope_theta": 5e5}
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
SIZES = {
    "vocab_size": 13,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
ONE_WINDOW = {"sliding_window": 3, "layer_types": [SLIDING, FULL]}
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4}
OWN = {
    "mistral": {"sliding_window": 3},
    "gemma2": ONE_WINDOW | {"query_pre_attn_scalar": 9},
    "gemma3_text": ONE_WINDOW | {"query_pre_attn_scalar": 9},
    "granite": {
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.4,
        "residual_multiplier": 0.6,
        "logits_scaling": 2.0,
    },
    "olmo3": ONE_WINDOW | {"rope_parameters": PLAIN},
    "smollm3": {"no_rope_layers": [1, 0]},
    "exaone4": ONE_WINDOW,
    "mixtral": EXPERTS,
    "qwen3_moe": EXPERTS | {"moe_intermediate_size": 20},
    "cohere": {"logit_scale": 0.5},
    "cohere2": ONE_WINDOW | {"logit_scale": 0.5},
}
TOKEN_IDS = np.random.default_rng(0).integers(3, 13, (2, 9))


@pytest.fixture(scope="module", autouse=True)
def quiet():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def save(family, folder, **changes):
    """Write the folder of a small model whose weights are all moved."""
    config = transformers.AutoConfig.for_model(
        family, **SIZES | OWN.get(family, {}) | changes
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        drawn = 0.3 * torch.randn(weight.shape, generator=generator)
        weight.data = drawn + (weight.data if weight.ndim == 1 else 0)
    model.save_pretrained(folder)


def change(folder, **changes):
    """Change entries of the config.json in a folder."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def theirs(folder):
    """Return the logits (B, T, N) of Transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        return model.eval()(torch.tensor(TOKEN_IDS)).logits.numpy()


def ours(folder):
    """Return the logits (B, T, N) of the decoder."""
    weights, config = load_decoder(folder)
    weights = {name: torch.tensor(w) for name, w in weights.items()}
    return pytorch.run_decoder(
        weights, torch.tensor(TOKEN_IDS), config
    ).numpy()


def agree(folder):
    return np.allclose(ours(folder), theirs(folder), atol=1e-4)


def default_config(family):
    """Return the config.json of a family as Transformers has it, a dict."""
    return json.loads(
        transformers.AutoConfig.for_model(family).to_json_string()
    )


def refusal(said):
    """Return what is said against a config, or None."""
    try:
        decoder_config(said)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_config_of_a_family_is_known(family):
    said = default_config(family)
    config = decoder_config(said)
    assert len(config.bases) == said["num_hidden_layers"]
    assert config.num_heads == said["num_attention_heads"]


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
        {"rope_scaling": {"rope_type": "llama3", "factor": 4.0}},
        "rope_scaling",
    ),
    ("gemma3_text", {"rope_parameters": {"rope_theta": 1e6}}, "say both"),
    (
        "llama",
        {"rope_parameters": {FULL: {"rope_theta": 1e4}}},
        f"rope_parameters.{FULL}",
    ),
    ("olmo3", {"rope_parameters": STRETCHED}, "say both"),
    ("gemma", {"use_bidirectional_attention": True}, "bidirectional"),
    ("qwen3_moe", {"mlp_only_layers": [1]}, "mlp_only_layers"),
    ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
    ("gemma3_text", {"attn_logit_softcapping": 50.0}, "softcapping"),
    ("llama", {"hidden_act": "gelu"}, "gelu"),
    ("llama", {"rms_norm_eps": None, "model_type": "vicuna"}, "vicuna"),
    ("gemma2", {"layer_types": None}, "layer_types"),
    ("qwen2", {"layer_types": ["linear_attention"] * 32}, "linear_attention"),
    ("phi3", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ("phi3", {"rope_parameters": STRETCHED}, "phi3"),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}},
        "yarn",
    ),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
        "partial_rotary_factor",
    ),
    ("llama", {"rope_parameters": {"rope_type": "default"}}, "rope_theta"),
    (
        "llama",
        {"rope_parameters": None, "rope_theta": 1e4}
        | {"rope_scaling": {"type": "linear", "factor": 2.0}},
        "linear",
    ),
    # What was read as something else, or ended in another error.
    ("olmo3", {"rope_parameters": PLAIN | {"rope_theta": 1e6}}, "say both"),
    ("olmo3", {"rope_parameters": None, "rope_theta": 1e4}, "say both"),
    ("granite", {"logits_scaling": 0}, "logits_scaling"),
    ("granite", {"attention_multiplier": "0.4"}, "attention_multiplier"),
    ("mixtral", {"num_local_experts": 0}, "num_local_experts"),
    ("mixtral", {"num_local_experts": 1}, "asks 2 experts"),
    ("mixtral", {"num_experts": None}, "num_experts"),
    ("smollm3", {"no_rope_layers": None}, "no_rope_layers"),
    ("smollm3", {"no_rope_layers": [1, 0]}, "no_rope_layers has 2 entries"),
    ("gemma3_text", {"rope_parameters": {SLIDING: None}}, "say both"),
    ("gemma3_text", {"rope_parameters": {SLIDING: 1e4, FULL: 1e6}}, SLIDING),
    ("llama", {"rope_parameters": "default"}, "rope_parameters"),
    ("llama", {"rope_parameters": PLAIN | {"rope_theta": "5e5"}}, "theta"),
    ("llama", {"rope_parameters": PLAIN | {"rope_theta": 1e-5}}, "radian"),
    ("llama", {"rope_parameters": STRETCHED | {"factor": 0.5}}, "radian"),
    ("llama", {"num_hidden_layers": 2.0}, "num_hidden_layers"),
    ("llama", {"num_hidden_layers": True}, "num_hidden_layers"),
    ("llama", {"num_key_value_heads": 5}, "do not fit"),
    ("llama", {"head_dim": 3}, "do not fit"),
    ("llama", {"hidden_size": -24}, "hidden_size"),
    ("llama", {"rms_norm_eps": "1e-6"}, "rms_norm_eps"),
    ("llama", {"tie_word_embeddings": None}, "tie_word_embeddings"),
    ("gemma2", {"final_logit_softcapping": 0.0}, "final_logit_softcapping"),
    ("gemma2", {"layer_types": SLIDING}, "layer_types"),
    ("qwen2", {"use_sliding_window": "no"}, "use_sliding_window"),
    ("llama", {"model_type": ["llama"]}, "model_type"),
    ("llama", {"pad_token_id": 32000}, "pad_token_id"),
    ("seed_oss", {"residual_dropout": 6}, "residual_dropout"),
    ("smollm3", {"head_dim": None}, "head_dim"),
]


@pytest.mark.parametrize(("family", "changes", "says"), REFUSED)
def test_what_is_wrong_in_a_config_is_named(family, changes, says):
    said = default_config(family)
    assert refusal(said) is None
    assert says in refusal(said | changes)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("llama", "rms_norm_eps"),
        ("llama", "num_attention_heads"),
        ("llama", "num_key_value_heads"),
        ("llama", "num_hidden_layers"),
        ("gemma", "hidden_act"),
        ("gemma2", "hidden_activation"),
        ("gemma2", "attn_logit_softcapping"),
        ("gemma2", "final_logit_softcapping"),
        ("mistral", "sliding_window"),
        ("qwen3", "use_sliding_window"),
        ("qwen3_moe", "norm_topk_prob"),
        ("phi3", "pad_token_id"),
        ("mixtral", "num_experts_per_tok"),
    ],
)
def test_a_field_that_is_missing_is_named(family, name):
    said = default_config(family)
    del said[name]
    assert name in refusal(said)


@pytest.mark.parametrize("family", NOT_COVERED)
def test_a_family_that_is_not_covered_exists_and_is_refused(family):
    assert NOT_COVERED[family] in refusal(default_config(family))


def test_the_older_spelling_of_the_base_is_read():
    said = default_config("llama")
    said["rope_parameters"] |= {"rope_theta": 5e5}
    older = {k: v for k, v in said.items() if k != "rope_parameters"}
    older |= {"rope_theta": 5e5, "rope_scaling": None}
    assert decoder_config(older) == decoder_config(said)


def test_a_missing_bias_of_seed_oss_is_the_default_of_transformers():
    said = default_config("seed_oss")
    config = decoder_config(said)
    del said["attention_bias"]
    assert config.biases == ("q", "k", "v")
    assert decoder_config(said) == config


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {"attention_bias": True}),
        ("llama", {"mlp_bias": True}),
        ("llama", {"rope_parameters": STRETCHED}),
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
        ("exaone4", {"sliding_window": None, "layer_types": [FULL] * 2}),
        ("llama", {"num_key_value_heads": 6, "head_dim": 8}),
        ("granite", {"attention_multiplier": 0}),
        (
            "olmo3",
            {"rope_parameters": {FULL: STRETCHED}}
            | {"layer_types": [FULL, SLIDING]},
        ),
    ],
)
def test_other_configs_are_those_of_transformers(family, changes, tmp_path):
    save(family, tmp_path, **changes)
    assert agree(tmp_path)


def test_a_stretched_rotation_is_noticed(tmp_path):
    save("llama", tmp_path, rope_parameters=STRETCHED)
    weights, config = load_decoder(tmp_path)
    weights = {name: torch.tensor(w) for name, w in weights.items()}
    text = torch.arange(3, 43)[None] % 13
    stretched = pytorch.run_decoder(weights, text, config)
    plain = pytorch.run_decoder(
        weights, text, replace(config, bases=(5e5, 5e5))
    )
    assert (stretched - plain).abs().max() > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_the_decoder_reads_the_weights_that_are_asked_for(family, tmp_path):
    class Reads(dict):
        def __getitem__(self, name):
            seen.add(name)
            return super().__getitem__(name)

    seen = set()
    save(family, tmp_path)
    weights, config = load_decoder(tmp_path)
    shapes = {name: weight.shape for name, weight in weights.items()}
    assert shapes == decoder_shapes(config)
    weights = Reads({name: torch.tensor(w) for name, w in weights.items()})
    pytorch.run_decoder(weights, torch.tensor(TOKEN_IDS), config)
    assert seen == weights.keys()


def test_a_folder_with_too_much_or_too_little_is_refused(tmp_path):
    save("qwen3", tmp_path)
    file = tmp_path / "model.safetensors"
    weights = files.load_file(file)
    name = "model.layers.0.self_attn.q_norm.weight"
    load_decoder(tmp_path)
    files.save_file({k: w for k, w in weights.items() if k != name}, file)
    with pytest.raises(ValueError, match="q_norm"):
        load_decoder(tmp_path)
    extra = {"model.layers.0.self_attn.q_proj.bias": weights[name].clone()}
    files.save_file(weights | extra, file)
    with pytest.raises(ValueError, match=r"q_proj\.bias"):
        load_decoder(tmp_path)
    files.save_file(weights, file)
    change(tmp_path, num_attention_heads=4)
    with pytest.raises(ValueError, match="asks for"):
        load_decoder(tmp_path)


def test_the_decoder_computes_where_its_weights_are(tmp_path):
    save("mixtral", tmp_path)
    weights, config = load_decoder(tmp_path)
    weights = {n: torch.tensor(w, device="meta") for n, w in weights.items()}
    logits = pytorch.run_decoder(
        weights, torch.tensor(TOKEN_IDS, device="meta"), config
    )
    assert logits.device.type == "meta" and logits.shape == (2, 9, 13)


def test_in_bfloat16_the_norms_of_llama_and_gemma_round_elsewhere():
    from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    torch.manual_seed(0)
    scale, x = 1 + 0.3 * torch.randn(512), torch.randn(64, 512)
    shares = {}
    for dtype in (torch.float32, torch.bfloat16):
        gemma, llama = GemmaRMSNorm(512), LlamaRMSNorm(512)
        kept = scale.bfloat16().float()
        gemma.weight.data = (kept - 1).float()
        llama.weight.data = kept.to(dtype)
        off = gemma(x.to(dtype)).float() - llama(x.to(dtype)).float()
        shares[dtype] = (off.abs() > 1e-5).float().mean()
    assert shares[torch.float32] == 0
    assert 0.1 < shares[torch.bfloat16] < 0.5


def test_two_names_for_one_weight_are_refused(tmp_path):
    save("phi3", tmp_path)
    file = tmp_path / "model.safetensors"
    weights = files.load_file(file)
    name = "model.layers.0.self_attn.{}_proj.weight"
    alone = {name.format("q"): weights[name.format("qkv")][:24].clone()}
    files.save_file(weights | alone, file)
    with pytest.raises(ValueError, match="twice"):
        load_decoder(tmp_path)


def test_experts_in_one_array_are_cut(tmp_path):
    save("mixtral", tmp_path)
    weights, config = load_decoder(tmp_path)
    name = "model.layers.0.mlp.experts.{}.{}_proj.weight"
    both = [
        np.concatenate([weights[name.format(e, x)] for x in ("gate", "up")])
        for e in range(4)
    ]
    packed = {"model.layers.0.mlp.experts.gate_up_proj": np.stack(both)}
    cut = plain_weights(packed, config, "mixtral")
    assert len(cut) == 8
    assert all(np.array_equal(cut[n], weights[n]) for n in cut)


# What the fuzz puts into a config, besides what stands there.
GONE = "gone"
VALUES = [GONE, None, True, False, 0, 1, 2, 3, 6, 13, 64, -1, "", "text"]
VALUES += [0.0, 0.5, 1.0, 3.0, 1e4, 5e5, 1e-5, "silu", "gelu_pytorch_tanh"]
VALUES += [[], {}, [0, 1], [1, 1], [SLIDING, FULL], [FULL, SLIDING]]
VALUES += [[FULL, FULL], [FULL], "llama3", "default", 4096, float("nan")]
ROPES = [PLAIN, STRETCHED, PLAIN | {"rope_theta": 1e4}, {}, {"type": "llama3"}]
ROPES += [{FULL: PLAIN}, {FULL: STRETCHED, SLIDING: PLAIN}]
ROPES += [{FULL: None, SLIDING: PLAIN}, PLAIN | {FULL: PLAIN}]
MORE = ["rope_theta", "rope_scaling", "layer_types", "use_sliding_window"]
MORE += ["num_experts", "partial_rotary_factor", "is_causal", "hidden_act"]
MORE += ["original_max_position_embeddings", "sliding_window", "use_qk_norm"]
MORE += ["something_new", "quantization_config", "hidden_activation"]
MORE += 8 * ["rope_parameters"]  # has most to be wrong in


@cache
def written(family):
    """Return a folder that Transformers wrote, and what is in it."""
    folder = Path(tempfile.mkdtemp())
    save(family, folder)
    weights = files.load_file(folder / "model.safetensors")
    return json.loads((folder / "config.json").read_text()), weights


@st.composite
def folders(draw):
    """Draw a family, its config with up to three changes, and its weights."""
    family = draw(st.sampled_from([*FAMILIES]))
    said, weights = written(family)
    said, weights = deepcopy(said), dict(weights)
    for _ in range(draw(st.integers(0, 3))):
        place = said
        name = draw(st.sampled_from([*said] + MORE))
        if name.startswith("rope_") and draw(st.booleans()):
            place[name] = deepcopy(draw(st.sampled_from(ROPES)))
            continue
        while isinstance(place.get(name), dict) and place[name]:
            place, name = place[name], draw(st.sampled_from([*place[name]]))
        value = draw(st.sampled_from(VALUES))
        place[name] = value
        if value == GONE:
            del place[name]
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from([*weights]))
        weight = weights.pop(name)
        how = draw(st.sampled_from(["gone", "twice", "long", "flat", *TYPES]))
        if how == "twice":
            weights |= {name: weight, f"{name}_again": weight.clone()}
        elif how == "long":
            weights[name] = torch.cat([weight, weight[:1]])
        elif how == "flat":
            weights[name] = weight.flatten().clone()
        elif how != "gone":
            weights[name] = weight.to(getattr(torch, how))
    return said, weights, draw(st.integers(0, 19))


TYPES = ["bfloat16", "float16", "float64", "int32"]


def outcome(said, weights, cut):
    """Return "refused", "equal", or what is wrong with a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(said))
        file = folder / "model.safetensors"
        files.save_file(weights, file)
        if cut == 0:
            file.write_bytes(file.read_bytes()[:-1])
        try:
            found = ours(folder)
        except (ValueError, FileNotFoundError):
            return "refused"
        try:
            right = theirs(folder)
        except Exception as error:
            return f"Transformers refuses it: {error!r}"
    # Logits of these models are below 100, unless logit_scale is 10,000.
    off = np.abs(found - right).max() / max(1, np.abs(right).max() / 100)
    return "equal" if off < 1e-4 else f"logits are off by {off}"


@hypothesis.settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(folders())
def test_a_changed_folder_is_refused_or_read_as_transformers_does(folder):
    assert outcome(*folder) in ("refused", "equal")
