"""A Llama from a GGUF file: as gguf-py writes it, and changed at random.

Whatever is wrong with a file ends in one sentence, with no memory taken.
"""

import struct
import tracemalloc

import numpy as np
import pytest

from cellbycell.gguf import (
    gguf_config,
    gguf_weights,
    load_gguf,
    read_gguf,
)
from cellbycell.llama_configs import llama_shapes
from cellbycell.tokenizer import gguf_tokenizer

hypothesis = pytest.importorskip("hypothesis")
gguf = pytest.importorskip("gguf")
given, st = hypothesis.given, hypothesis.strategies
pytestmark = pytest.mark.xdist_group("frameworks")

HEADS, KEY_HEADS, LAYERS, WIDTH, WIDE = 4, 2, 2, 32, 64
TOKENS = ["<|end|>", "a", "b", "c", "ab", "abc", "Ġ", "1", "2"]
SHAPES = {
    "attn_norm": (WIDTH,),
    "attn_q": (WIDTH, WIDTH),
    "attn_k": (WIDTH // 2, WIDTH),
    "attn_v": (WIDTH // 2, WIDTH),
    "attn_output": (WIDTH, WIDTH),
    "ffn_norm": (WIDTH,),
    "ffn_gate": (WIDE, WIDTH),
    "ffn_up": (WIDE, WIDTH),
    "ffn_down": (WIDTH, WIDE),
}
NAMES = {
    f"blk.{i}.{k}.weight": s for i in range(LAYERS) for k, s in SHAPES.items()
}
NAMES |= {"token_embd.weight": (len(TOKENS), WIDTH)}
NAMES |= {"output_norm.weight": (WIDTH,)}
META = {
    "llama.block_count": LAYERS,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": WIDE,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEY_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 1e5,
    "llama.rope.dimension_count": WIDTH // HEADS,
    "llama.context_length": 64,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3] + [1] * 8,
    "tokenizer.ggml.merges": ["a b", "ab c"],
}


def written(path, meta=(), tensors=(), kind="Q4_1", architecture="llama"):
    """Write a file by gguf-py; return what its tensors are, by name."""
    rng = np.random.default_rng(0)
    shapes = NAMES | dict(tensors)
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in (META | dict(meta)).items():
        if isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif isinstance(value, list):
            writer.add_array(name, value)
        elif value is not None:
            writer.add_uint32(name, value)
    found = {}
    for name, shape in shapes.items():
        if shape is None:
            continue
        w = rng.normal(0, 0.3, shape).astype("float32")
        own = gguf.GGMLQuantizationType[kind if w.ndim > 1 else "F32"]
        packed = gguf.quants.quantize(w, own)
        found[name] = gguf.quants.dequantize(packed, own)
        writer.add_tensor(name, packed, raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return found


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """Return the path of a right file, and its tensors."""
    path = tmp_path_factory.mktemp("gguf") / "right.gguf"
    return path, written(path)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
def test_each_tensor_is_that_of_gguf_py(tmp_path, kind):
    path = tmp_path / "a model.gguf"
    wanted = written(path, kind=kind)
    meta, found = read_gguf(path)
    assert found.keys() == wanted.keys()
    for name, w in wanted.items():
        np.testing.assert_array_equal(found[name], w)
        assert found[name].dtype == np.float32 and found[name].flags.writeable
    assert {k: meta[k] for k in META} == {
        k: pytest.approx(v) if isinstance(v, float) else v
        for k, v in META.items()
    }


def test_a_table_of_its_own_for_the_logits_is_read(tmp_path):
    path = tmp_path / "untied.gguf"
    written(path, tensors={"output.weight": (len(TOKENS), WIDTH)})
    model = load_gguf(path)
    assert not model.tied and model.linear.weight.shape == (9, WIDTH)


def test_the_tokenizer_splits_digits_and_finds_special_tokens(right):
    pytest.importorskip("tokenizers")
    found = gguf_tokenizer(read_gguf(right[0])[0])
    assert found.encode("abcab 12<|end|>").tokens == (
        ["abc", "ab", "Ġ", "1", "2", "<|end|>"]
    )
    assert found.decode([5, 6, 7, 0], skip_special_tokens=False) == (
        "abc 1<|end|>"
    )


WRONG = {
    "another model": (dict(architecture="qwen2"), "architecture 'qwen2'"),
    "an entry that is not known": (
        dict(meta={"llama.expert_count": 4}),
        "expert_count is 4, but",
    ),
    "an entry too few": (dict(meta={"llama.block_count": None}), "no block_c"),
    "a layer too few": (dict(meta={"llama.block_count": 3}), "missing: 9"),
    "a layer too many": (dict(meta={"llama.block_count": 1}), "too many: 9"),
    "another width": (
        dict(meta={"llama.embedding_length": 48}),
        "width is 48",
    ),
    "no width at all": (
        dict(meta={"llama.embedding_length": 0}),
        "length is 0",
    ),
    "heads that share no key": (
        dict(meta={"llama.attention.head_count_kv": 3}),
        "3 key heads for 4",
    ),
    "half a head that turns": (
        dict(meta={"llama.rope.dimension_count": 4}),
        "rotated width is 4",
    ),
    "a longer list of tokens": (
        dict(meta={"tokenizer.ggml.tokens": [*TOKENS, "d"]}),
        "tokens is 10",
    ),
    "no table": (dict(tensors={"token_embd.weight": None}), "table of tokens"),
    "no last norm": (dict(tensors={"output_norm.weight": None}), "model.norm"),
    "a bias": (dict(tensors={"blk.0.attn_q.bias": (WIDTH,)}), "q.bias"),
    "frequencies": (dict(tensors={"rope_freqs.weight": (4,)}), "rope_freqs"),
    "another shape": (
        dict(tensors={"blk.1.ffn_up.weight": (WIDTH, WIDTH)}),
        "two models",
    ),
    "another type": (dict(kind="Q5_0"), "Q4_1, Q8_0 are read"),
    "a tensor alone on its name": (
        dict(tensors={"a.weight.weight": (WIDTH,)}),
        "a.weight",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, name):
    given, words = WRONG[name]
    path = tmp_path / "wrong.gguf"
    written(path, **given)
    with pytest.raises(ValueError, match=words) as caught:
        load_gguf(path)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no file"):
        read_gguf(tmp_path / "none.gguf")
    path = tmp_path / "some.gguf"
    for content, words in (
        (b"", "is no GGUF"),
        (b"version https://git-lfs", "git lfs pull"),
        (b"GGUF" + struct.pack("<I", 1), "version 1"),
        (b"GGUF\3\0", "is cut off"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            read_gguf(path)
    with pytest.raises(ValueError, match="'pytorch' or 'tensorflow'"):
        written(path)
        load_gguf(path, "jax")


def test_lists_of_tokens_that_do_not_fit_are_refused(right):
    meta, _ = read_gguf(right[0])
    for change in (
        {"tokens": TOKENS[:-1]},
        {"tokens": [*TOKENS[:-1], "a"]},
        {"merges": ["a"]},
        {"merges": ["c c"]},
        {"token_type": None},
    ):
        change = {f"tokenizer.ggml.{k}": v for k, v in change.items()}
        with pytest.raises(ValueError, match="do not fit"):
            gguf_tokenizer(meta | change)
    with pytest.raises(ValueError, match="is read: take"):
        gguf_tokenizer(meta | {"tokenizer.ggml.pre": "llama-bpe"})


@hypothesis.settings(deadline=None, max_examples=400, database=None)
@given(st.data())
def test_a_file_changed_at_random_is_read_or_refused(right, data):
    """By cuts, and by a byte or a number that may ask for gigabytes."""
    path, _ = right
    content = bytearray(path.read_bytes())
    head = content.find(b"output_norm.weight") + 60
    place = data.draw(st.integers(0, head - 8))
    match data.draw(st.sampled_from(["cut", "byte", "number"])):
        case "cut":
            del content[data.draw(st.integers(0, len(content) - 1)) :]
        case "byte":
            content[place] = data.draw(st.integers(0, 255))
        case "number":
            number = data.draw(
                st.sampled_from([2**31, 2**40, 2**63, 2**64 - 1])
            )
            content[place : place + 8] = struct.pack("<Q", number)
    other = path.with_name("changed.gguf")
    other.write_bytes(content)
    tracemalloc.start()
    try:
        meta, tensors = read_gguf(other)
        config = gguf_config(meta, tensors)
        found = gguf_weights(config, tensors)
        assert found.keys() == llama_shapes(config).keys()
    except ValueError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 40 * 2**20
