"""Files of weights: what is read, what is refused, and what is said of it."""

import json
import sys

import numpy as np
import pytest
from folders import CONFIG, divided, drawn, written

from cellbycell.checkpoint import (
    checked_weights,
    llama_config,
    llama_shapes,
    read_checkpoint,
)

pytestmark = pytest.mark.xdist_group("frameworks")


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


def test_positions_of_an_old_bert_are_left_out(tmp_path):
    """But only if they are 0, 1, 2, ..., as the model makes them itself."""
    pytest.importorskip("safetensors")
    name = "embeddings.position_ids"
    header = {name: ("I64", [1, 3], 0, 24), "norm": ("F32", [1], 24, 28)}
    for count, refused in ([0, 1, 2], False), ([2, 3, 4], True):
        numbers = np.array(count, "<i8").tobytes() + bytes(4)
        if refused:
            with pytest.raises(ValueError, match=f"{name} is I64"):
                read(tmp_path, packed(header) + numbers)
        else:
            assert [*read(tmp_path, packed(header) + numbers)] == ["norm"]


def test_what_is_kept_of_a_tensor(tmp_path):
    """Each is given in float32, one after the other."""
    pytest.importorskip("safetensors")
    seen = []

    def keep(values):
        seen.append((values.dtype, values.shape))
        return values.astype(np.float16)

    shapes = llama_shapes(llama_config(CONFIG))
    _, weights = read_checkpoint(written(tmp_path), keep)
    assert len(seen) == len(shapes)
    assert {dtype for dtype, _ in seen} == {np.dtype("float32")}
    assert {w.dtype for w in weights.values()} == {np.dtype("float16")}
    assert checked_weights(weights, shapes).keys() == shapes.keys()


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
    with pytest.raises(ValueError, match="is incomplete, or not a file of we"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"version https://git-lfs", b"\xff\xfe{}"]
)
def test_a_broken_config_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match="config.json is incomplete: downlo"):
        read_checkpoint(tmp_path)


def test_a_config_of_many_brackets_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match="config.json is incomplete"):
        read_checkpoint(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no config.json: give a fo"):
        read_checkpoint(tmp_path / "nowhere")
    where = written(tmp_path / "whole")
    (where / "model.safetensors").rename(where / "other.safetensors")
    with pytest.raises(FileNotFoundError, match="no model.safetensors: downl"):
        read_checkpoint(str(where))
    (where / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(
        FileNotFoundError, match="write it with save_pretrained"
    ):
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
    with pytest.raises(ValueError, match="2.safetensors is incomplete"):
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
