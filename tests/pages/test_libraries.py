"""The pages are held to the libraries: all numbers, all calls, and arrays.

The other test_libraries_*.py compute the sections of libraries.md.
"""

from pathlib import Path

import numpy as np
import pytest

from tools.notebooks import Notebook, label
from tools.run.calls import check_calls
from tools.run.claims import check_claims
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
WITH_CALLS = ["notation", "libraries", "symptoms", "topics", "index"]


def test_every_number_on_the_pages_is_computed(numbered_pages, names_of):
    tests = "".join(
        path.read_text("utf-8")
        for path in Path(__file__).parent.glob("test_libraries*.py")
    )
    for page, text in numbered_pages.items():
        strange = {name for name in names_of(text) if f"{name}=" not in tests}
        assert not strange, f"{page}: no test computes {strange}"
        bare = [line for line in text.split("\n") if "<!--=" not in line]
        messages = check_claims("\n".join(bare), {})
        assert not messages, f"{page}:\n" + "\n".join(messages)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"bits_numpy": 32}, "says 64, but bits_numpy is 32"),
        ({"bits_of_nobody": 64}, "no page says {'bits_of_nobody'}"),
    ],
)
def test_a_number_that_no_page_says_is_rejected(check_numbers, numbers, says):
    others = {"bits_numpy": 64, "bits_torch": 32, "bits_tf": 32}
    with pytest.raises(AssertionError, match=says):
        check_numbers(**others | numbers)


@pytest.mark.parametrize("name", WITH_CALLS)
def test_calls_have_the_arguments_that_the_libraries_take(name):
    import keras
    import tensorflow
    import torch
    from torch.nn import functional

    libraries = {"np": np, "keras": keras, "tf": tensorflow}
    libraries |= {"torch": torch, "nn": torch.nn, "F": functional}
    page = Notebook.page(BOOK / f"{name}.md")
    messages = [
        f"{label(page.path)}: {message}"
        for cell in page.markdown
        for message in check_calls(cell.source, libraries)
    ]
    assert not messages, "\n".join(messages)


def test_pairs_that_masks_keep(check_numbers):
    causal_mask = np.tril(np.ones((5, 5), bool))
    key_mask = np.array([True, True, True, False, False])
    check_numbers(
        pairs_in_all=causal_mask.size,
        pairs_causal=causal_mask.sum(),
        pairs_joined=(causal_mask & key_mask).sum(),
    )


def test_precision(check_numbers):
    import keras
    import tensorflow as tf
    import torch

    array = np.array([[0.1]])
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.nn.Linear(1, 1)(torch.from_numpy(array))
    size = torch.from_numpy(array).itemsize
    assert size == tf.constant(array).dtype.size
    check_numbers(
        bits_numpy=8 * array.itemsize,
        bits_torch=8 * torch.tensor([0.1]).itemsize,
        bits_tf=8 * tf.constant([0.1]).dtype.size,
        bits_from_numpy=8 * size,
        bits_of_dense=8 * keras.layers.Dense(1)(array).dtype.size,
    )


def test_attention_in_half_and_in_double_precision(check_numbers):
    import keras
    import torch
    from torch.nn import functional as F

    def in_both(qkv):
        """Return the outputs of SDPA and Keras for one head, (T, K) each."""
        theirs = keras.ops.dot_product_attention(*qkv[:, None, :, None])
        ours = F.scaled_dot_product_attention(*map(torch.from_numpy, qkv))
        return ours.numpy(), np.asarray(theirs)[0, :, 0]

    half, half_keras = in_both(np.full((3, 1, 64), 32, "float16"))
    assert np.isnan(half_keras).all()
    double, double_keras = in_both(
        np.random.default_rng(0).standard_normal((3, 5, 8))
    )
    assert double_keras.dtype == "float64"
    check_numbers(
        half_by_torch=half[0, 0],
        double_off_by_keras=abs(double - double_keras).max(),
    )


def test_positions_that_become_equal(check_numbers):
    import torch

    def first_equal(dtype):
        """Return the first whole number that its follower equals."""
        numbers = torch.arange(5000.0).to(dtype)
        return (numbers[1:] == numbers[:-1]).int().argmax()

    check_numbers(
        positions_equal_in_bfloat16=first_equal(torch.bfloat16),
        positions_equal_in_float16=first_equal(torch.float16),
    )


def test_transposing(check_numbers):
    import tensorflow as tf
    import torch

    x, x_tf, x_torch = np.ones((2, 3, 4)), tf.ones(3), torch.ones(3)
    assert np.transpose(np.ones(3)).shape == tf.transpose(x_tf).shape == (3,)
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        x_torch.mT  # noqa: B018
    with pytest.raises(ValueError, match="rank >= 2"):
        tf.linalg.matrix_transpose(x_tf)
    assert torch.from_numpy(x).mT.shape == (2, 4, 3)
    check_numbers(
        transposed_first_numpy=len(np.transpose(x)),
        transposed_first_tf=len(tf.transpose(x)),
        transposed_first_torch=len(torch.from_numpy(x).mT),
        transposed_first_matrix_tf=len(tf.linalg.matrix_transpose(x)),
    )


def test_standard_deviation(check_numbers):
    import tensorflow as tf
    import torch

    row = [1.0, 2.0, 3.0]
    check_numbers(
        std_numpy=np.std(row),
        std_torch=torch.tensor(row).std(),
        std_tf=tf.math.reduce_std(tf.constant(row)),
    )


def quantised_by_keras(weights, config=None):
    """Return a Dense layer of these weights for one output, in int8."""
    import keras

    layer = keras.layers.Dense(1, use_bias=False)
    layer.build((None, len(weights)))
    layer.set_weights([np.array(weights)[:, None]])
    layer.quantize("int8", config=config)
    return layer


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in Keras' own code
def test_the_step_of_a_quantised_weight(check_numbers):
    import torch
    from gguf import GGMLQuantizationType
    from gguf.quants import quantize
    from keras.quantizers import Int8QuantizationConfig

    observer = torch.ao.quantization.MinMaxObserver(
        dtype=torch.qint8, qscheme=torch.per_tensor_symmetric
    )
    observer(torch.tensor([1.0, -0.5]))
    block = np.zeros((1, 32), "float32")
    block[0, :2] = 1, -0.5

    def step(kind):
        """Return the scale at the start of a block, in float16."""
        rows = quantize(block, GGMLQuantizationType[kind])
        return float(rows[0, :2].copy().view("<f2")[0])

    rows = np.array([[1000.0, 3.0]], "float32")
    alone = Int8QuantizationConfig(activation_quantizer=None)
    check_numbers(
        steps_keras=float(quantised_by_keras([1.0, -0.5]).kernel_scale[0]),
        steps_observer=1 / observer.calculate_qparams()[0].item(),
        steps_q8_0=1 / step("Q8_0"),
        steps_q4_0=1 / step("Q4_0"),
        sum_by_keras=float(quantised_by_keras([1.0, 1.0])(rows)[0, 0]),
        sum_of_weights_alone=float(
            quantised_by_keras([1.0, 1.0], alone)(rows)[0, 0]
        ),
    )
