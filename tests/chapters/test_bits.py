"""The chapter on fewer bits: other programs."""

import re
import warnings

import numpy as np
import pytest

from benchmarks import bits as measured
from cellbycell.figures.bits import rounded_smol
from tools.notebooks import Notebook
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
KITCHEN = (
    "Water boils at 100 degrees Celsius at sea level, but on a high mountain "
    "it boils at a lower temperature, because the air presses less on its "
    "surface. At 3000 metres, water boils at about 90 degrees. This is why "
    "pasta takes longer to cook in the mountains: the water is boiling, but "
    "it is not as hot. A pressure cooker works the other way. Its lid is "
    "closed, the steam cannot leave, the pressure rises, and the water inside "
    "becomes hotter than 100 degrees before it boils. Beans that need two "
    "hours in an open pot are ready in thirty minutes.\n\nSalt also changes "
    "the temperature at which water boils, but only a little. A spoonful of "
    "salt in a litre of water raises it by less than one degree, so you will "
    "not notice any difference. Cooks put salt into the water because of the "
    "taste, not because of the heat. Oil does not mix with water at all: it "
    "swims on top, and keeps the foam down."
)


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


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1", "MXFP4"])
def test_blocks_are_those_of_gguf(book, kind):
    import gguf
    import torch
    from transformers.integrations.gguf.dequant import dequantize

    number = gguf.GGMLQuantizationType[kind]
    _, size = gguf.GGML_QUANT_SIZES[number]
    for seed in range(3):
        w = weights(24, 64, seed=seed)
        theirs = gguf.quants.quantize(w, number)
        blocks = theirs.reshape(-1, size)
        found = book[f"from_{kind.lower()}"](blocks).reshape(w.shape)
        assert np.array_equal(found, gguf.quants.dequantize(theirs, number))
        if kind != "MXFP4":
            theirs = dequantize(torch.tensor(blocks).ravel(), int(number))
            assert np.array_equal(found, theirs.reshape(w.shape))


def test_mxfp4_of_gpt_oss_has_neighbours_in_a_byte(book):
    import torch
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (1, 3, 2, 16), dtype=np.uint8)
    scales = rng.integers(120, 130, (1, 3, 2), dtype=np.uint8)
    theirs = convert_moe_packed_tensors(
        torch.tensor(packed), torch.tensor(scales), dtype=torch.float32
    )
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(1, 3, 2, 32)
    scale = 2.0 ** (scales.astype(int) - 127)[..., None]
    found = scale * book["float4"](nibbles)
    assert np.array_equal(found.reshape(1, 3, 64).mT, theirs)


def test_bits_a_weight_are_those_of_gguf():
    import gguf

    text = "\n".join(
        c.source for c in Notebook.read(BOOK / "bits.ipynb").cells
    )
    for row in re.findall(r"\| `(Q\w+)` \| (\d+) \|.*\| ([\d.]+)<", text):
        number, bits = gguf.GGMLQuantizationType[row[0]], float(row[2])
        count, size = gguf.GGML_QUANT_SIZES[number]
        assert (int(row[1]), bits) == (count, 8 * size / count)
    for name, bits in (("MXFP4", 4.25), ("NVFP4", 4.5)):
        number = gguf.GGMLQuantizationType[name]
        count, size = gguf.GGML_QUANT_SIZES[number]
        assert bits == 8 * size / count


def test_transformers_reads_the_same_model(book):
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    cells = Notebook.read(BOOK / "bits.ipynb").cells
    text = "\n".join(cell.source for cell in cells)
    blocks = re.findall(r"```python\n(.*?)\n```", text, re.DOTALL)
    (line,) = (block for block in blocks if "gguf_file=" in block)
    logging.disable_progress_bar()
    names = {
        "AutoModelForCausalLM": AutoModelForCausalLM,
        "smol_path": book["smol_path"],
    }
    exec(line, names)
    theirs, ids = names["theirs"], book["text_ids"]
    torch = book["torch"]
    with torch.no_grad():
        gap = theirs(ids).logits - book["model"](ids)
    assert gap.abs().max() < 1e-3


def test_the_switches_of_the_table_are_there():
    import torch
    from transformers import BitsAndBytesConfig

    text = "\n".join(
        c.source for c in Notebook.read(BOOK / "bits.ipynb").cells
    )
    (call,) = re.findall(r"`(BitsAndBytesConfig\(.*?\))`", text)
    config = eval(call, {"BitsAndBytesConfig": BitsAndBytesConfig})
    assert config.load_in_4bit and config.bnb_4bit_quant_type == "nf4"
    assert torch.finfo(torch.float8_e4m3fn).max == 448


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


def test_other_rounding_draws_no_other_name(book):
    """Another machine moves a logit by a few millionths."""
    little, torch = book["little"], book["torch"]
    for bits, names in book["names"].items():
        book["fill_llama"](little, book["stored_weights"](), bits, group=16)
        for seed in (1, 2):
            noise = torch.Generator().manual_seed(seed)

            def run(ids, noise=noise):
                logits = little(torch.tensor(ids))
                moved = torch.randn(logits.shape, generator=noise)
                return (logits + 2e-5 * moved).numpy()

            assert book["five_names"](run)[:3] == names[:3], bits


def test_a_cast_of_nan_is_right_by_luck(book):
    import torch

    cast = torch.full((1, 4), torch.nan).to(torch.int8)
    assert not (cast * 0.0).any()


@pytest.fixture(scope="module")
def kitchen():
    """Return SmolLM2 with another text."""
    return measured.Rounded(KITCHEN)


def test_the_stored_losses_are_those_of_the_model():
    stored, smol = rounded_smol(), measured.Rounded()
    assert stored["text"] == measured.TEXT
    assert abs(smol.loss() - stored["exact"]) < 0.002
    for group, bits in (("row", 6), ("tensor", 6), ("32", 3)):
        found = smol.weights(bits, group)
        assert abs(found - stored["weights"][group][str(bits)]) < 0.01
    for bits in (6, 5):
        found = smol.weights(bits, "32", answer=True)
        assert found == stored["answers"][str(bits)]
    for kind in ("embedding", "key_proj"):
        assert abs(smol.weights(3, "32", kind) - stored["kinds"][kind]) < 0.005
    for group in ("tensor", "row"):
        gap = smol.activations(8, group) - stored["activations"][group]
        assert abs(gap) < 0.01
    assert abs(smol.cache(2, values=False) - stored["cache"]["2"][0]) < 0.01


def test_another_text_says_the_same(kitchen):
    exact = kitchen.loss()
    assert abs(kitchen.weights(8, "32") - exact) < 0.01
    assert 0.3 < kitchen.weights(4, "32") - exact < 0.6
    assert kitchen.weights(6, "tensor") > exact + 0.7
    assert kitchen.activations(8, "tensor") > exact + 0.4
    assert abs(kitchen.activations(8, "row") - exact) < 0.03


def test_keys_are_the_hard_half_of_another_text_too(kitchen):
    for bits, more in ((3, 0), (2, 0.2)):
        keys = kitchen.cache(bits, values=False)
        assert keys > kitchen.cache(bits, keys=False) + more


def test_the_giant_is_at_the_first_token_of_another_text(book, kitchen):
    _, given = book["through_down"](kitchen.model, kitchen.ids)
    largest = book["torch"].stack([x[0].abs().amax(-1) for x in given])
    assert largest[11, 0] > 2500 > 100 > largest[11, 1:].max()


def test_the_giant_stays_for_16_layers(book):
    model, ids, torch = book["model"], book["text_ids"], book["torch"]
    x, steps = model.embedding(ids), torch.arange(ids.shape[1])
    there = []
    for layer in model.layers:
        x, _ = layer(x, steps, steps <= steps[:, None])
        there.append(bool(x[0, 0, 507].abs() > 20000))
    assert there == [11 <= i < 28 for i in range(30)]


def test_keras_rounds_each_token_by_itself(book):
    keras = book["keras"]
    dense = keras.layers.Dense(24, use_bias=False)
    dense.build((None, 64))
    dense.set_weights([weights(24, 64).T])
    dense.quantize("int8")
    x = np.abs(weights(4, 64, seed=1)) + 0.5
    loud = np.vstack([x, 1000 * x[:1]])
    alone = np.asarray(dense(x[1:2]))
    assert np.allclose(dense(loud)[1], alone[0], atol=1e-3 * abs(alone).max())


def test_a_broken_file_ends_in_a_sentence(book):
    import tracemalloc

    for data in (
        b"",
        book["data"][4:100],
        b"\3\0\0\0" + b"\xff" * 40,
    ):
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"x.gguf .*again\."):
            book["read_head"](book["FileBytes"](data, "x.gguf"))
        assert tracemalloc.get_traced_memory()[1] < 1e6
        tracemalloc.stop()


def test_the_stored_llama_has_a_scale_a_row(book):
    """The Llama of names is rounded as in equation 1."""
    from cellbycell.figures.names_model import stored_weights

    for name, w in stored_weights().items():
        w = book["torch"].tensor(w)
        rough = book["restore"](*book["quantise"](w, group=w.shape[-1]))
        assert book["torch"].allclose(rough, w, rtol=1e-3, atol=1e-6), name


def test_the_librarys_8_bit_cache_needs_floats_that_saturate(book):
    torch, theirs = book["torch"], book["theirs"]
    tokenizer, prompt = book["tokenizer"], book["prompt"]
    eighth = torch.tensor(500.0).to(torch.float8_e4m3fn)
    saturates = eighth.float().isfinite()
    said = theirs.generate(
        prompt,
        max_new_tokens=8,
        do_sample=False,
        eos_token_id=2,
        pad_token_id=2,
        cache_implementation="quantized",
        cache_config={"backend": "fp8"},
    )
    ids = said[0, prompt.shape[1] :].tolist()
    if saturates:
        assert tokenizer.decode(ids) == "The capital of France is Paris."
    else:  # NaN from the fifth token on, whose likeliest token is 0
        assert tokenizer.decode(ids[:4]) == "The capital of France"
        assert ids[4:] == [0, 0, 0, 0]
