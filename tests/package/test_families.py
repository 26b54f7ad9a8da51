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
from family_folders import (
    FULL,
    PLAIN,
    SLIDING,
    STRETCHED,
    TOKEN_IDS,
    agree,
    change,
    ours,
    save,
    theirs,
)

from cellbycell.checks import check_model
from cellbycell.families import (
    FAMILIES,
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


class OneDecoder(torch.nn.Module):
    """The decoder as a module: token_ids (B, T) to logits (B, T, N)."""

    def __init__(self, weights, config):
        super().__init__()
        self.config = config
        self.numbers = torch.nn.ParameterDict(
            {
                name.replace(".", "/"): torch.nn.Parameter(torch.tensor(w))
                for name, w in weights.items()
            }
        )

    def forward(self, token_ids):
        weights = {n.replace("/", "."): w for n, w in self.numbers.items()}
        return pytorch.run_decoder(weights, token_ids, self.config)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_passes_the_kit_with_transformers_as_reference(
    family, tmp_path
):
    save(family, tmp_path)
    reference = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, dtype=torch.float32, attn_implementation="eager"
    )
    padded = TOKEN_IDS[:, :5] * np.array([[1] * 5, [1] * 3 + [0] * 2])
    report = check_model(
        OneDecoder(*load_decoder(tmp_path)),
        padded,
        pad_id=0,
        reference=reference.eval(),
        vocab_size=13,
    )
    report.raise_if_failed()
    assert {"reference_parity", "causality", "gradient_flow"} <= set(
        report.passed
    )


@pytest.mark.parametrize(
    ("family", "changes", "fails"),
    [
        ("llama", {"pairs": True}, False),
        ("gemma", {"scale_offset": 0.0}, False),
        ("mistral", {"windows": (None, None)}, False),
        ("qwen3", {"heads_norm": "none"}, True),
        ("qwen2", {"biases": ()}, True),
    ],
)
def test_without_a_reference_the_kit_sees_weights_that_are_not_read(
    family, changes, fails, tmp_path
):
    save(family, tmp_path)
    weights, config = load_decoder(tmp_path)
    wrong = OneDecoder(weights, replace(config, **changes))
    report = check_model(wrong, TOKEN_IDS[:, :3], pad_id=None)
    assert bool(report.failed + report.warnings) == fails


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
