"""Folders of weights: what is read, what is refused, and what is said of it.

The last test changes folders at random: what is read has the logits that
Transformers computes from the same folder.
"""

import json
import shutil
import sys

import numpy as np
import pytest

from cellbycell.checkpoint import (
    HARMLESS,
    ROTATION,
    checked_config,
    checked_weights,
    count,
    flag,
    llama_config,
    llama_shapes,
    llama_turns,
    number,
    read_checkpoint,
    several,
    table,
)

hypothesis = pytest.importorskip("hypothesis")
st, assume, Phase = hypothesis.strategies, hypothesis.assume, hypothesis.Phase
given, settings = hypothesis.given, hypothesis.settings
pytestmark = pytest.mark.xdist_group("frameworks")

LENGTH = "original_max_position_embeddings"
STRETCH = {"rope_type": "llama3", "factor": 8.0}
STRETCH |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONFIG = {
    "model_type": "llama",
    "vocab_size": 11,
    "hidden_size": 24,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "max_position_embeddings": 64,
}
# Of SmolLM2, whose folder the chapter names.
SMOL = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "silu",
    "initializer_range": 0.041666666666666664,
    "is_llama_config": True,
    "mlp_bias": False,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_interleaved": False,
    "rope_scaling": None,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers.js_config": {"dtype": "q4"},
    "transformers_version": "4.40.1",
    "use_cache": True,
}


def drawn(config=CONFIG):
    """Return weights of ordinary size for a config."""
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(1, 0.1, shape).astype(np.float32)
        if len(shape) == 1
        else rng.normal(0, 0.5, shape).astype(np.float32)
        for name, shape in llama_shapes(llama_config(config)).items()
    }


def packed(tensors, length=None):
    """Return a file of tensors: name -> (type, shape, start, end), and bytes.

    length: what the file says of its header's length.
    """
    header = json.dumps(
        {
            name: {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
            for name, (kind, shape, start, end) in tensors.items()
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    length = len(header) if length is None else length
    return length.to_bytes(8, "little") + header


def written(where, config=CONFIG, weights=None):
    """Write a folder; return it."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    where.mkdir(parents=True, exist_ok=True)
    (where / "config.json").write_text(json.dumps(config))
    weights = drawn() if weights is None else weights
    save_file(weights, where / "model.safetensors")
    return where


def divided(where, names=("1.safetensors", "2.safetensors")):
    """Divide a folder's weights among two files; return its index."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    _, weights = read_checkpoint(where)
    (where / "model.safetensors").unlink()
    places = {name: names[i % 2] for i, name in enumerate(weights)}
    for file in names:
        own = {k: w for k, w in weights.items() if places[k] == file}
        save_file(own, where / file)
    index = where / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index


# What a config says.


@pytest.mark.parametrize(
    "change",
    [
        {},
        SMOL,
        {"num_key_value_heads": None, "head_dim": None},
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}},
        {"rope_parameters": None, "rope_scaling": {}},
        {"quantization_config": None},
        {"eos_token_id": [1, 2], "pad_token_id": None},
        {"rms_norm_eps": 1, "partial_rotary_factor": 1},
    ],
)
def test_a_config_of_a_llama_is_read(change):
    found = llama_config(CONFIG | change)
    assert (found.num_heads, found.d_head, len(found.base)) == (6, 4, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "gemma3_text"},
        {"model_type": None},
        {"hidden_act": "gelu"},
        {"hidden_act": None},
        {"attention_bias": True},
        {"attention_bias": 0},
        {"mlp_bias": True},
        {"is_causal": False},
        {"is_causal": None},
        {"partial_rotary_factor": 0.5},
        {"quantization_config": {"bits": 4}},
        {"transformers_weights": "other.safetensors"},
        {"sliding_window": 4},
        {"num_hidden_layers": 2.0},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": 10**9},
        {"hidden_size": "24"},
        {"hidden_size": -24},
        {"hidden_size": 25},
        {"vocab_size": True},
        {"vocab_size": None},
        {"vocab_size": 10**30},
        {"head_dim": 4.0},
        {"num_key_value_heads": [3]},
        {"rms_norm_eps": "1e-5"},
        {"rms_norm_eps": None},
        {"rms_norm_eps": -1e-6},
        {"rms_norm_eps": float("nan")},
        {"rms_norm_eps": True},
        {"tie_word_embeddings": "false"},
        {"tie_word_embeddings": 1},
        {"rope_theta": None},
        {"rope_theta": "1e4"},
        {"rope_theta": float("inf")},
        {"rope_scaling": "llama3"},
        {"rope_scaling": [1]},
        {"max_position_embeddings": 64.0},
        {LENGTH: None},
        {"eos_token_id": "2"},
        {"eos_token_id": [1, None]},
        {"dtype": "int8"},
        {"architectures": "LlamaForCausalLM"},
    ],
    ids=json.dumps,
)
def test_a_wrong_entry_is_named_with_its_value(change):
    [(name, value)] = change.items()
    with pytest.raises(ValueError) as caught:
        llama_config(CONFIG | change)
    said = str(caught.value)
    assert said.startswith(f"{name} is {value!r}"), said
    assert ": compare" in said or "Transformers" in said or "see" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rope_type": "yarn"}, "rope_type is 'yarn', and has to be 'defa"),
        ({"type": "linear"}, "type is 'linear'"),
        ({"rope_type": None}, "rope_type is None"),
        ({"rope_theta": "5e5"}, "rope_theta is '5e5'"),
        ({"rope_theta": None}, "rope_theta is None"),
        ({"rope_theta": 0}, "rope_theta is 0"),
        ({"factor": "8"}, "factor is '8'"),
        ({"factor": None}, "factor is None"),
        ({"factor": False}, "factor is False"),
        ({"low_freq_factor": 0}, "low_freq_factor is 0"),
        ({LENGTH: 64.0}, f"{LENGTH} is 64.0"),
        ({"mrope_section": [1]}, "mrope_section is [1], and this loader"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"full_attention": {"rope_theta": 1e4}}, "full_attention is {"),
    ],
)
@pytest.mark.parametrize("place", ["rope_parameters", "rope_scaling"])
def test_a_wrong_entry_of_the_rotation_is_named(place, change, says):
    with pytest.raises(ValueError) as caught:
        llama_config(CONFIG | {place: STRETCH | change})
    assert str(caught.value).startswith(f"{place}.{says}")


@pytest.mark.parametrize(
    "change", [{"rope_theta": 0.5}, STRETCH | {"factor": 0.5, LENGTH: 2}]
)
def test_a_pair_turns_by_a_radian_at_most(change):
    with pytest.raises(ValueError, match="rope_theta or factor is below 1"):
        llama_config(CONFIG | {"rope_parameters": change})


def test_a_stretch_needs_its_factors_in_their_order():
    for name in ("factor", "low_freq_factor", "high_freq_factor"):
        rope = {k: v for k, v in STRETCH.items() if k != name}
        with pytest.raises(ValueError, match=f"has no {name}"):
            llama_turns({"rope_scaling": rope}, 8)
    for low in (4.0, 9):
        rope = STRETCH | {"low_freq_factor": low}
        with pytest.raises(ValueError, match=f"low_freq_factor is {low}"):
            llama_turns({"rope_parameters": rope}, 8)


@pytest.mark.parametrize(
    "name", ["model_type", "vocab_size", "hidden_size", "num_hidden_layers"]
)
def test_an_entry_that_is_missing_is_named(name):
    kept = {k: v for k, v in CONFIG.items() if k != name}
    with pytest.raises(ValueError, match=f"has no {name}"):
        llama_config(kept)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_key_value_heads": 4}, "4 key heads for 6 heads"),
        ({"head_dim": 3}, "of width 3"),
        ({"hidden_size": 25}, "hidden_size is 25, no multiple of 6 heads"),
    ],
)
def test_heads_have_to_fit(change, says):
    with pytest.raises(ValueError, match=says):
        llama_config(CONFIG | change)


def test_a_table_of_ones_own():
    entries = {
        "layers": count(most=9),
        "scale": number(1.0, above=0),
        "kinds": several(flag(), None),
        "inner": table({"size": count(3)}, None),
    }
    found = checked_config({"layers": 2, "inner": {}}, entries)
    assert found == {
        "layers": 2,
        "scale": 1.0,
        "kinds": None,
        "inner": {"size": 3},
    }
    for config, says in (
        ({}, "has no layers"),
        ({"layers": 10}, "layers is 10, and has to be a whole number from 1"),
        ({"layers": 2, "scale": 10**400}, "scale is 1000"),
        ({"layers": 2, "kinds": [True, 1]}, r"kinds is \[True, 1\]"),
        ({"layers": 2, "inner": {"size": 0}}, "inner.size is 0"),
        ({"layers": 2, "inner": {"depth": 1}}, "inner.depth is 1"),
    ):
        with pytest.raises(ValueError, match=says) as caught:
            checked_config(config, entries)
        assert len(str(caught.value)) < 250


def test_the_defaults_of_a_table_are_allowed_by_it():
    for entry in {**ROTATION, **HARMLESS}.values():
        assert entry.allows(entry.default)


# How the rotation is spelled.


@pytest.mark.parametrize(
    "spelled",
    [
        {},
        {"rope_theta": 5e5},
        {"rope_parameters": {"rope_theta": 5e5}},
        {"rope_theta": 5e5, "rope_scaling": STRETCH},
        {"rope_parameters": STRETCH | {"rope_theta": 5e5, LENGTH: 16}},
        {"rope_scaling": STRETCH, "rope_parameters": {"rope_theta": 9.0}},
        {"rope_scaling": STRETCH | {LENGTH: 16}, LENGTH: 32},
        {"rope_scaling": STRETCH | {"type": "default"}},
    ],
)
def test_the_rotation_is_read_as_transformers_does(spelled):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama import modeling_llama

    spelled = json.dumps({"max_position_embeddings": 64} | spelled)
    heads = {"hidden_size": 16, "num_attention_heads": 1}
    config = transformers.LlamaConfig(**heads, **json.loads(spelled))
    wanted = modeling_llama.LlamaRotaryEmbedding(config).inv_freq
    assert np.allclose(llama_turns(json.loads(spelled), 16), wanted, 1e-5)


# Files.


def read(where, content):
    """Return what is read of one file of weights beside a config."""
    where.mkdir(exist_ok=True)
    (where / "config.json").write_text("{}")
    (where / "model.safetensors").write_bytes(content)
    return read_checkpoint(where)[1]


def test_floating_point_is_read_as_float32(tmp_path):
    pytest.importorskip("safetensors")
    values = np.array([[1.5, -2.0, 0.0], [np.inf, 2.0**-14, -0.25]])
    upper = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    parts = {
        "BF16": upper.tobytes(),
        "F16": values.astype("<f2").tobytes(),
        "F32": values.astype("<f4").tobytes(),
        "F64": values.astype("<f8").tobytes(),
    }
    tensors, end = {}, 0
    for kind, part in parts.items():
        start, end = end, end + len(part)
        tensors[kind] = (kind, [2, 3], start, end)
    found = read(tmp_path, packed(tensors) + b"".join(parts.values()))
    assert found.keys() == parts.keys()
    for kind, numbers in found.items():
        assert numbers.dtype == np.float32 and numbers.flags.writeable
        assert np.array_equal(numbers, values), kind
    assert read(tmp_path, packed({})) == {}


@pytest.mark.parametrize("kind", ["I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"])
def test_eight_bits_are_refused(tmp_path, kind):
    pytest.importorskip("safetensors")
    content = packed({"norm": (kind, [4], 0, 4)}) + bytes(4)
    with pytest.raises(ValueError, match=f"norm is {kind}.*quantised"):
        read(tmp_path, content)


@pytest.mark.parametrize("kind", ["I16", "I32", "I64", "U16", "U32", "U64"])
def test_whole_numbers_are_refused(tmp_path, kind):
    pytest.importorskip("safetensors")
    size = int(kind[1:]) // 2
    content = packed({"norm": (kind, [4], 0, size)}) + bytes(size)
    with pytest.raises(ValueError, match=f"norm is {kind}"):
        read(tmp_path, content)


WHOLE = packed({"a": ("F32", [2], 0, 8)}) + bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version https://git-lfs.github.com/spec/v1",
        WHOLE[:-1],
        WHOLE[:9],
        WHOLE + b"x",
        WHOLE[:8] + b"x" * (len(WHOLE) - 8),
        packed({}, length=2**40),
        packed({"a": ("F32", [3], 0, 8)}) + bytes(8),
        packed({"a": ("F16", [2], 0, 8)}) + bytes(8),
        packed({"a": ("F32", [-1, -2], 0, 8)}) + bytes(8),
        packed({"a": ("F32", [2], -8, 0)}) + bytes(8),
        packed({"a": ("F32", [2], 4, 12)}) + bytes(12),
        packed({"a": ("F32", [2], 0, 8), "b": ("F32", [2], 4, 12)})
        + bytes(12),
        packed({"a": ("F32", [2], 0, 8), "b": ("F32", [1], 12, 16)})
        + bytes(16),
        packed({"a": ("F99", [2], 0, 8)}) + bytes(8),
        packed({"a": ("F32", 2, 0, 8)}) + bytes(8),
    ],
)
def test_a_broken_file_is_refused(tmp_path, content):
    pytest.importorskip("safetensors")
    with pytest.raises(ValueError, match="is not whole, or no file of wei"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"version https://git-lfs", b"\xff\xfe{}"]
)
def test_a_broken_config_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match="config.json is not whole: downloa"):
        read_checkpoint(tmp_path)


def test_a_config_of_many_brackets_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match="config.json is not whole"):
        read_checkpoint(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no config.json: give the f"):
        read_checkpoint(tmp_path / "nowhere")
    where = written(tmp_path / "whole")
    (where / "model.safetensors").rename(where / "other.safetensors")
    with pytest.raises(FileNotFoundError, match="no model.safetensors: downl"):
        read_checkpoint(str(where))
    (where / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="save_pretrained writes it"):
        read_checkpoint(where)


def test_shards_are_one_model(tmp_path):
    where = written(tmp_path)
    _, weights = read_checkpoint(where)
    divided(where)
    _, found = read_checkpoint(where)
    assert found.keys() == weights.keys()
    assert all(np.array_equal(found[name], weights[name]) for name in weights)
    (where / "2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no 2.safetensors: down"):
        read_checkpoint(where)


def test_one_whole_file_goes_before_an_index(tmp_path):
    where = written(tmp_path)
    (where / "model.safetensors.index.json").write_text("{}")
    _, found = read_checkpoint(where)
    assert found.keys() == drawn().keys()


@pytest.mark.parametrize(
    "places",
    [
        None,
        [],
        {},
        "1.safetensors",
        {"model.norm.weight": 1},
        {"model.norm.weight": None},
        {"model.norm.weight": "../1.safetensors"},
        {"model.norm.weight": "1.safetensors"},
    ],
)
def test_an_index_has_to_fit_its_shards(tmp_path, places):
    index = divided(written(tmp_path))
    index.write_text(json.dumps({"weight_map": places}))
    with pytest.raises(ValueError, match="index.json (does not say|and the)"):
        read_checkpoint(tmp_path)


def test_a_shard_that_is_not_whole_is_named(tmp_path):
    divided(written(tmp_path))
    shard = tmp_path / "2.safetensors"
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(ValueError, match="2.safetensors is not whole"):
        read_checkpoint(tmp_path)


def test_without_the_library_its_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(WHOLE)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"install cellbycell\[checkpoint\]"):
        read_checkpoint(tmp_path)


# Tensors and the sizes in the config.


ZEROS = np.zeros(24, np.float32)


@pytest.mark.parametrize(
    ("config", "weights", "says"),
    [
        ({"num_hidden_layers": 1}, {}, "too many: 9"),
        ({"num_hidden_layers": 3}, {}, "missing: 9"),
        ({"num_key_value_heads": 6}, {}, r"is \(12, 24\), and .* \(24, 24\)"),
        ({"tie_word_embeddings": True}, {}, "set it to false"),
        ({}, {"score.weight": ZEROS}, "too many: 1, such as score.weight"),
        ({}, {"lm_head.weight": None}, "missing: 1, such as lm_head.weight"),
        ({}, {"model.norm.weight": ZEROS[:23]}, r"is \(23,\), and config.js"),
        ({}, {"model.norm.weight": ZEROS[None]}, r"is \(1, 24\), and config"),
    ],
)
def test_tensors_have_to_fit_the_config(config, weights, says):
    shapes = llama_shapes(llama_config(CONFIG | config))
    given = {k: v for k, v in (drawn() | weights).items() if v is not None}
    with pytest.raises(ValueError, match=says):
        checked_weights(given, shapes)


def test_what_is_left_out_of_the_tensors():
    """A copy of the embedding, and frequencies that the config gives."""
    tied = CONFIG | {"tie_word_embeddings": True}
    weights, shapes = drawn(tied), llama_shapes(llama_config(tied))
    copied = {"lm_head.weight": weights["model.embed_tokens.weight"]}
    copied["model.layers.0.self_attn.rotary_emb.inv_freq"] = ZEROS
    found = checked_weights(weights | copied, shapes)
    assert found.keys() == shapes.keys() == weights.keys()


# Whole models.


def logits_of(framework, where, ids):
    """Return the logits of the Llama in a folder, (B, T, N), as an array."""
    if framework == "pytorch":
        torch = pytest.importorskip("torch")
        from cellbycell.pytorch import load_llama

        with torch.no_grad():
            return load_llama(where)(torch.tensor(ids)).numpy()
    pytest.importorskip("tensorflow")
    from cellbycell.tensorflow import load_llama_tf

    return load_llama_tf(where)(np.array(ids)).numpy()


def their_logits(where, ids):
    """Return what Transformers computes from a folder, (B, T, N)."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = transformers.LlamaForCausalLM.from_pretrained(
        where, dtype=torch.float32, local_files_only=True
    )
    with torch.no_grad():
        return model.eval()(torch.tensor(ids)).logits.numpy()


IDS = [[5, 3, 7, 2, 9, 1, 4], [8, 8, 6, 10, 0, 1, 3]]
KINDS = {
    "float16, shards": ({"dtype": "float16"}, "4KB"),
    "bfloat16": ({"dtype": "bfloat16", "rms_norm_eps": 1e-5}, "1GB"),
    "tied": ({"dtype": "bfloat16", "tie_word_embeddings": True}, "1GB"),
    "wide heads": ({"head_dim": 6}, "1GB"),
    "stretched": (
        {"rope_parameters": STRETCH | {"rope_theta": 5e5, LENGTH: 4}},
        "1GB",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_what_transformers_writes_is_read(tmp_path, framework, kind):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    changes, shard = KINDS[kind]
    config = transformers.LlamaConfig(**CONFIG | changes)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).to(config.dtype)
    for weight in model.parameters():
        weight.data *= 20 if weight.ndim > 1 else 1
    model.save_pretrained(tmp_path, max_shard_size=shard)
    shards = len([*tmp_path.glob("*.safetensors")])
    assert shards > 2 if "shards" in kind else shards == 1
    _, weights = read_checkpoint(tmp_path)
    assert ("lm_head.weight" in weights) == (kind != "tied")
    found = logits_of(framework, tmp_path, IDS)
    wanted = their_logits(tmp_path, IDS)
    assert np.allclose(found, wanted, atol=1e-3) and wanted.std() > 0.5


def test_the_shapes_are_those_of_the_model():
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import Llama, llama_weights

    for change in ({}, {"tie_word_embeddings": True, "head_dim": 6}):
        config = llama_config(CONFIG | change)
        with torch.device("meta"):
            weights = llama_weights(Llama(config))
        assert llama_shapes(config) == {
            name: tuple(weight.shape) for name, weight in weights.items()
        }


# Folders with changes at random.


ODD = [None, True, False, 0, 1, 2, 3, 4, 6, 12, 24, -1, 2.0, 0.5, 1e-5, 1e4]
ODD += [float("nan"), float("inf"), 1e300, 10**30, "", "silu", "llama3"]
ODD += ["default", "gelu", "float16", [], [1], [None], {}, {"factor": 2.0}]
ROPE = {
    "rope_type": ["default", "llama3", "yarn", "linear"],
    "type": ["default", "llama3"],
    "rope_theta": [1.0, 100, 5e5, 1e-3],
    "factor": [1, 2.0, 8.0, 0.5],
    "low_freq_factor": [1.0, 2, 0.5],
    "high_freq_factor": [4.0, 2, 9.0],
    LENGTH: [2, 16, 64],
    "partial_rotary_factor": [1.0, 0.5],
    "mrope_section": [[1, 1]],
}
RIGHT = {
    "vocab_size": [12, 40],
    "hidden_size": [12, 48],
    "intermediate_size": [1, 7],
    "num_hidden_layers": [1, 3],
    "num_attention_heads": [3, 12],
    "num_key_value_heads": [None, 1, 2, 6],
    "head_dim": [2, 6, 8],
    "rms_norm_eps": [1e-5, 0.1],
    "tie_word_embeddings": [True, False],
    "rope_theta": [2.0, 100, 5e5],
    "max_position_embeddings": [2, 16],
    LENGTH: [2, 16],
}
NAMES = [*CONFIG, *ROTATION, *HARMLESS, "hidden_act", "attention_bias"]
NAMES.remove("initializer_range")  # which Transformers wants below 1
NAMES += ["mlp_bias", "is_causal", "rope_interleaved", "sliding_window"]
NAMES += ["layer_types", "num_experts", "quantization_config"]
NAMES += ["logits_scaling", "attention_multiplier", "per_layer_config"]


@st.composite
def rotations(draw):
    """Draw what is said of a rotation, often as it should be."""
    rope = dict(draw(st.sampled_from([{}, STRETCH])))
    for name in draw(st.sets(st.sampled_from([*ROPE]), max_size=4)):
        pool = st.sampled_from(ROPE[name])
        rope[name] = draw(pool | pool | pool | st.sampled_from(ODD))
    return rope


@st.composite
def configs(draw):
    """Draw a config with a few changes, some of which are right."""
    config = dict(CONFIG)
    for place in ("rope_parameters", "rope_scaling"):
        if draw(st.integers(0, 2)) == 0:
            config[place] = draw(rotations())
    for name in draw(st.sets(st.sampled_from([*RIGHT]), max_size=3)):
        config[name] = draw(st.sampled_from(RIGHT[name]))
    if draw(st.booleans()):
        config[draw(st.sampled_from(NAMES))] = draw(st.sampled_from(ODD))
    if draw(st.integers(0, 9)) == 0:
        config.pop(draw(st.sampled_from([*CONFIG])), None)
    if type(config.get("rms_norm_eps")) is int:
        config["rms_norm_eps"] = 1e-3  # Transformers refuses a whole number
    return config


@st.composite
def files(draw):
    """Draw a change of the tensors, or of a file's bytes, or None."""
    names = st.sampled_from([*drawn()])
    return draw(
        st.none()
        | st.none()
        | st.tuples(
            st.sampled_from(["drop", "half", "double", "turn", "whole"]), names
        )
        | st.tuples(st.sampled_from(["rename", "copy", "tie"]), names)
        | st.tuples(st.just("cut"), st.integers(0, 4000))
        | st.tuples(st.just("byte"), st.integers(0, 1500))
        | st.tuples(st.just("shards"), st.booleans())
    )


def changed(where, config, change):
    """Write a folder with a config, and with a change of its files."""
    try:
        weights = drawn(config)
    except ValueError:
        weights = drawn()
    written(where, config, weights)
    if change is None:
        return
    (kind, which), file = change, where / "model.safetensors"
    if kind in ("cut", "byte"):
        content = bytearray(file.read_bytes())
        if kind == "cut":
            del content[which:]
        else:
            content[which % len(content)] ^= 1
        file.write_bytes(content)
        return
    if kind == "shards":
        index = divided(where)
        if which:
            said = json.loads(index.read_text())
            said["weight_map"].popitem()
            index.write_text(json.dumps(said))
        return
    weight = weights.pop(which, np.ones(24, np.float32))
    if kind == "half":
        weights[which] = weight.astype(np.float16)
    if kind == "double":
        weights[which] = weight.astype(np.float64)
    if kind == "turn":
        weights[which] = np.ascontiguousarray(weight.T)
    if kind == "whole":
        weights[which] = weight.astype(np.int8)
    if kind == "rename":
        weights[which.removeprefix("model.")] = weight
    if kind == "copy":
        weights |= {which: weight, f"{which}.rotary_emb.copy": weight}
    if kind == "tie":
        weights[which] = weight
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"].copy()
    written(where, config, weights)


@settings(
    max_examples=100,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
@given(config=configs(), change=files())
def test_a_changed_folder_is_refused_or_read_as_transformers_does(
    folders, config, change
):
    where = folders / "changed"
    shutil.rmtree(where, ignore_errors=True)
    changed(where, config, change)
    try:
        found = logits_of("pytorch", where, IDS)
    except (ValueError, FileNotFoundError):
        return
    # Transformers wants both, and neither changes a logit.
    assume(config["hidden_size"] % config["num_attention_heads"] == 0)
    assume(-12 < (config.get("pad_token_id") or 0) < config["vocab_size"])
    wanted = their_logits(where, IDS)
    assert np.allclose(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory.mktemp("folders")
