"""The chapter on fewer bits: other programs."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from tools.notebooks import Notebook
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")


# Other programs


def weights(*shape, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(shape).astype("float32")
    w.reshape(-1, 32)[1] = 0
    w.reshape(-1, 32)[2] *= 1e-6
    w.reshape(-1, 32)[3, 4:7] = [0.5, -40, 40]
    # Halves, and what is just below a half, in steps of one.
    halves = np.arange(32) - 15.5
    w.reshape(-1, 32)[4] = [*halves[:-2], np.float32(0.49999997), -127]
    w.reshape(-1, 32)[5] = halves / 15.5 * 8
    return w


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_bytes_are_those_of_gguf(book, kind):
    import gguf
    import torch
    from transformers.integrations.gguf.dequant import dequantize

    to, back = (book[f"{way}_{kind.lower()}"] for way in ("to", "from"))
    number = gguf.GGMLQuantizationType[kind]
    for seed in range(3):
        w = weights(24, 64, seed=seed)
        blocks = to(w)
        theirs = gguf.quants.quantize(w, number)
        assert np.array_equal(blocks.ravel(), theirs.ravel())
        rough = back(blocks).reshape(w.shape)
        assert np.array_equal(rough, gguf.quants.dequantize(theirs, number))
        theirs = dequantize(torch.from_numpy(blocks).ravel(), int(number))
        assert np.array_equal(rough, theirs.reshape(w.shape))


def test_a_file_of_gguf_is_read(book, tmp_path):
    """Lists, whole numbers of all sizes and half precision."""
    import gguf

    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    wanted = {"tokens": ["a", "ü", ""], "scores": [1.5, -2.0]}
    for name, values in wanted.items():
        writer.add_array(name, values)
    numbers = {"uint8": 255, "uint16": 65535, "uint64": 2**40, "bool": True}
    numbers |= {"int8": -1, "int16": -2, "int32": -3, "int64": -(2**40)}
    numbers["float64"] = 0.1
    for kind, number in numbers.items():
        getattr(writer, f"add_{kind}")(kind, number)
    w = weights(6, 64)
    writer.add_tensor("half", w.astype(np.float16))
    blocks = gguf.quants.quantize(w, gguf.GGMLQuantizationType.Q4_0)
    kind = gguf.GGMLQuantizationType.Q4_0
    writer.add_tensor("blocks", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    meta, tensors = book["read_gguf"](path)
    assert meta == {"general.architecture": "llama"} | wanted | numbers
    assert np.array_equal(tensors["half"], w.astype(np.float16))
    assert np.array_equal(
        tensors["blocks"], gguf.quants.dequantize(blocks, kind)
    )


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_0"])
def test_transformers_reads_the_same_model(book, kind):
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    cells = Notebook.read(BOOK / "bits.ipynb").cells
    text = "\n".join(cell.source for cell in cells)
    blocks = re.findall(r"```python\n(.*?)\n```", text, re.DOTALL)
    (line,) = (block for block in blocks if "gguf_file=" in block)
    logging.disable_progress_bar()
    names = {
        "AutoModelForCausalLM": AutoModelForCausalLM,
        "folder": book["home"].name,
    }
    exec(line.replace("names.gguf", f"names-{kind}.gguf"), names)
    theirs, ours = names["model"], book["from_file"][kind]
    ids = book["prompts"]
    difference = (theirs(ids).logits - ours(ids)).abs().max()
    assert difference < 1e-4
    weights = book["llama_weights"](ours)
    for name, w in theirs.state_dict().items():
        assert book["torch"].equal(w, weights[name]), name
        if w.ndim == 1:  # vectors are exact in each file
            assert np.array_equal(w, book["tensors"][name]), name


def test_transformers_reads_the_same_switches(book, tmp_path):
    from transformers import AutoConfig

    said, tensors = book["read_checkpoint"](book["folder"])
    changed = said | {"rms_norm_eps": 1e-3, "rope_theta": 5e5}
    book["write_folder"](tmp_path / "folder", changed, tensors)
    path = tmp_path / "x.gguf"
    book["llama_to_gguf"](tmp_path / "folder", path, 0)
    theirs = AutoConfig.from_pretrained(tmp_path, gguf_file=path.name)
    for name, value in changed.items():
        if name == "rope_theta":
            assert theirs.rope_parameters[name] == value
        elif name == "rms_norm_eps":
            assert np.isclose(theirs.rms_norm_eps, value)
        else:
            assert getattr(theirs, name) == value, name
    back = tmp_path / "back"
    book["gguf_to_folder"](path, back)
    found, _ = book["read_checkpoint"](back)
    assert found.pop("rms_norm_eps") == np.float32(1e-3)
    assert found == {k: v for k, v in changed.items() if k != "rms_norm_eps"}


def test_pytorch_quantises_each_row_alike(book):
    torch = book["torch"]
    w = torch.tensor(weights(24, 64))
    whole, scale = book["quantise"](w, group=64)
    scales, zeros = scale[:, 0, 0].double(), torch.zeros(24, dtype=torch.long)
    with warnings.catch_warnings(action="ignore"):  # deprecated since 2.13
        theirs = torch.quantize_per_channel(w, scales, zeros, 0, torch.qint8)
    assert torch.equal(theirs.int_repr(), whole[:, 0])
    assert torch.equal(theirs.dequantize(), book["restore"](whole, scale))


def test_int8_sums_are_those_of_both_libraries(book):
    torch, tf = book["torch"], book["tf"]
    x, w = torch.tensor(weights(32, 64)), torch.tensor(weights(24, 64, seed=1))
    x, w = (book["quantise"](y, group=64)[0][:, 0] for y in (x, w))
    sums = x.int() @ w.int().T
    assert torch.equal(torch._int_mm(x, w.T.contiguous()), sums)
    theirs = tf.matmul(
        x.numpy(), w.numpy(), transpose_b=True, output_type=tf.int32
    )
    assert np.array_equal(theirs, sums)


def test_tensorflow_and_keras_round_weights_alone(book):
    tf, keras = book["tf"], book["keras"]
    from keras.quantizers import Int8QuantizationConfig

    w, x = weights(24, 64), weights(8, 64, seed=1)
    w[1:3] = weights(2, 192, seed=2)[:, :64]  # no row is tiny
    whole, scale = book["quantise_tf"](tf.constant(w), group=64)
    rough = book["restore_tf"](whole, scale)
    top = 127 * scale[:, 0, 0]
    theirs = tf.quantization.fake_quant_with_min_max_vars_per_channel(
        w.T, -top, top, num_bits=8, narrow_range=True
    )
    assert np.allclose(tf.transpose(theirs), rough, atol=1e-5)
    dense = keras.layers.Dense(24, use_bias=False)
    dense.build((None, 64))
    dense.set_weights([w.T])
    config = Int8QuantizationConfig(activation_quantizer=None)
    dense.quantize(config=config)  # by name, as the chapter says
    assert np.allclose(dense(x), x @ rough.numpy().T, atol=1e-3)


# The chapter's own


def test_rounding_writes_no_other_letter(book):
    """Another machine moves a logit by a few millionths."""
    names = {**book["models"], "unsorted": book["wrong"]}
    for name, model in names.items():
        ids = book["generate"](model, book["prompts"], 14)
        best = model(ids)[:, 8:-1].topk(2).values
        going = (ids[:, 9:] != 0) | (ids[:, 8:-1] != 0)
        gaps = (best[..., 0] - best[..., 1])[going]
        assert gaps.min() > 0.003, name


def test_other_favourites_were_nearly_as_likely(book):
    torch, ids = book["torch"], book["ids"]
    with torch.no_grad():
        exact, rough = (book["models"][n](ids)[:, :-1] for n in ("exact", 4))
    best = exact.log_softmax(-1).topk(2).values
    gaps = (best[..., 0] - best[..., 1])[book["inside"]]
    other = (exact.argmax(-1) != rough.argmax(-1))[book["inside"]]
    assert gaps[other].median() < 0.25 < 0.5 < gaps[~other].median()


def test_files_are_as_small_as_is_said(book):
    whole, eight, four = (
        (Path(book["home"].name) / f"names-{kind}.gguf").stat().st_size
        for kind in ("F32", "Q8_0", "Q4_0")
    )
    assert 1 / 4 < eight / whole < 0.28 and 1 / 7 < four / whole < 1 / 6


def test_other_favourites_are_as_many_as_is_said(book):
    assert not book["inside"][:, 0].any() and book["inside"][:, 1].any()
    assert round(1 / (1 - book["same"]["trained"])) == 7
    assert round(1 / (1 - book["same"]["random"])) == 3


def test_a_cast_of_nan_is_right_by_luck(book):
    import torch

    cast = torch.full((1, 4), torch.nan).to(torch.int8)
    assert not (cast * 0.0).any()


def test_the_other_sign_is_wrong_by_up_to_a_step(book):
    for steps, wrong in [(7.5, 0.5), (7.75, 0.75), (8, 1), (7.25, 0.25)]:
        w = np.zeros((1, 32), "float32")
        w[0, :2] = -8, steps
        rough = book["from_q4_0"](book["to_q4_0"](w))
        assert abs(rough - w).max() == wrong and rough[0, 1] == 7


def test_sorting_is_undone(book):
    w = np.arange(48).reshape(24, 2)
    for heads in (1, 2, 3, 4):
        back = book["sort_for_halves"](book["sort_for_pairs"](w, heads), heads)
        assert np.array_equal(back, w)
    torch = book["torch"]
    from cellbycell.pytorch import pairs_to_halves

    theirs = pairs_to_halves(torch.tensor(w), 4)
    assert np.array_equal(book["sort_for_halves"](w, 4), theirs)


def test_a_file_with_another_tensor_is_refused(book, tmp_path):
    path = Path(book["home"].name) / "names-F32.gguf"
    meta, tensors = book["read_gguf"](path)
    turns = {"rope_freqs.weight": np.ones(8, "float32")}
    without = {k: v for k, v in tensors.items() if k != "output.weight"}
    for name, given in [
        ("rope_freqs", tensors | turns),
        ("output.weight", without),
    ]:
        book["write_gguf"](tmp_path / "x.gguf", meta, given, 0)
        with pytest.raises(ValueError, match=name):
            book["gguf_to_folder"](tmp_path / "x.gguf", tmp_path / "folder")


def test_the_stored_llama_has_a_scale_a_row(book):
    """The Llama in the book's pages is rounded as in equation 1."""
    from cellbycell.figures.names_model import stored_weights

    for name, w in stored_weights().items():
        w = book["torch"].tensor(w)
        rough = book["restore"](*book["quantise"](w, group=w.shape[-1]))
        assert book["torch"].allclose(rough, w, rtol=1e-3, atol=1e-6), name
