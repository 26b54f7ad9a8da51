"""Whole folders, as Transformers writes them, and changed at random.

What is read has the logits that Transformers computes from the same folder.
"""

import json
import shutil

import numpy as np
import pytest
from folders import CONFIG, LENGTH, STRETCH, divided, drawn, written

from cellbycell.checkpoint import (
    llama_config,
    llama_shapes,
    read_checkpoint,
)
from cellbycell.llama_configs import HARMLESS, ROTATION

hypothesis = pytest.importorskip("hypothesis")
st, assume, Phase = hypothesis.strategies, hypothesis.assume, hypothesis.Phase
given, settings = hypothesis.given, hypothesis.settings
pytestmark = pytest.mark.xdist_group("frameworks")


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


@pytest.mark.parametrize("tied", [True, False])
def test_to_transformers_reads_every_switch(tied):
    """A tied model has one table, and theirs asks for it twice."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from cellbycell.checkpoint import to_transformers
    from cellbycell.common import LlamaConfig
    from cellbycell.pytorch import Llama, llama_weights

    sizes = dict(vocab_size=11, num_layers=2, d_model=8, num_heads=4)
    sizes |= dict(key_heads=2, d_head=2, d_ff=12, base=100.0, epsilon=0.1)
    config = LlamaConfig(**sizes, tied=tied)
    torch.manual_seed(0)
    model = Llama(config)
    theirs = to_transformers(config, llama_weights(model))
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        found, wanted = theirs(ids).logits, model(ids)
    assert torch.allclose(found, wanted, atol=1e-5)
    several = LlamaConfig(**sizes | {"base": (1.0,)}, tied=tied)
    with pytest.raises(ValueError, match="one by one"):
        to_transformers(several, llama_weights(model))
