"""Compute every number that notation, libraries and symptoms state."""

import inspect
import re
from functools import cache
from itertools import permutations

import numpy as np
import pytest

from tools.net import claims
from tools.net.calls import (
    LAYOUT,
    ORDER,
    check_calls,
    check_layouts,
    check_orders,
)
from tools.net.claims import check_claims
from tools.net.tables import codes, tables
from tools.notebooks import Notebook, label, paths
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
PAGES = [BOOK / f"{name}.md" for name in ("notation", "libraries", "symptoms")]
OTHERS = [BOOK / "topics.md", BOOK / "index.md", *paths()]
NUMBERS = {}


def number(function):
    """Add a function to those whose names the pages may use."""
    NUMBERS[function.__name__] = function
    return function


def masks():
    """Return the causal mask and the key mask of notation.md's example."""
    causal_mask = np.tril(np.ones((5, 5), bool))
    key_mask = np.array([True, True, True, False, False])
    return causal_mask, key_mask


@number
def pairs_in_all():
    return masks()[0].size


@number
def pairs_causal():
    return masks()[0].sum()


@number
def pairs_joined():
    causal_mask, key_mask = masks()
    return (causal_mask & key_mask).sum()


# What True means


@number
def weight_sdpa():
    import torch
    from torch.nn import functional as F

    query, values = torch.zeros(1, 2), torch.eye(2)
    mask = torch.tensor([[True, False]])
    output = F.scaled_dot_product_attention(
        query, values, values, attn_mask=mask
    )
    return output[0, 0]


@number
def weight_mha():
    import torch

    layer = torch.nn.MultiheadAttention(2, 1, batch_first=True)
    query, values = torch.zeros(1, 1, 2), torch.eye(2)[None]
    mask = torch.tensor([[True, False]])
    _, weights = layer(query, values, values, key_padding_mask=mask)
    return weights[0, 0, 0].item()


def keras_scores(attention_mask):
    import keras

    layer = keras.layers.MultiHeadAttention(num_heads=1, key_dim=2)
    query, values = np.zeros((1, 1, 2)), np.eye(2)[None]
    _, scores = layer(
        query,
        values,
        attention_mask=attention_mask,
        return_attention_scores=True,
    )
    return scores[0, 0, 0]


@number
def weight_keras():
    return keras_scores(np.array([[[True, False]]]))[0]


@number
def keras_scores_row_sum():
    return sum(keras_scores(None))


# The order of the arguments


def keras_attention(*args, **kwargs):
    import keras

    layer = keras.layers.MultiHeadAttention(
        1, 1, use_bias=False, kernel_initializer="ones"
    )
    return layer(*args, **kwargs)[0, 0, 0]


def column(*numbers):
    return np.array(numbers, "float32")[None, :, None]


@number
def order_right():
    import torch
    from torch.nn import functional as F

    query, key, value = column(1), column(2, 0), column(5, 7)
    by_name = keras_attention(query=query, key=key, value=value)
    in_turn = F.scaled_dot_product_attention(
        *map(torch.from_numpy, (query, key, value))
    )
    assert abs(float(by_name) - float(in_turn)) < 1e-6
    return by_name


@number
def order_wrong():
    query, key, value = column(1), column(2, 0), column(5, 7)
    return keras_attention(query, key, value)


@cache
def orders():
    """Return a dict: library or function -> the order that it takes."""
    import keras
    import torch
    from torch.nn import functional as F

    layer = torch.nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
    for weight in layer.parameters():
        torch.nn.init.ones_(weight)
    sdpa, older = F.scaled_dot_product_attention, keras.layers.Attention()
    functions = {
        "F.scaled_dot_product_attention": on_tensors(sdpa),
        "PyTorch": on_tensors(lambda *three: layer(*three)[0]),
        "Keras": keras_attention,
        "keras.layers.Attention": lambda *three: older([*three])[0, 0, 0],
    }
    return {name: order(function) for name, function in functions.items()}


def on_tensors(function):
    """Return an attention of PyTorch's for arrays, its first number."""
    import torch

    def first(*arrays):
        return function(*map(torch.from_numpy, arrays))[0, 0, 0].item()

    return first


def order(attention):
    """Return in which order a function takes query, key and value."""
    given = {"query": column(1, 3), "key": column(2, 0), "value": column(5, 7)}
    share = 1 / (1 + np.exp(-2))  # of the first value
    (right,) = (
        ", ".join(names)
        for names in permutations(given)
        if abs(attention(*map(given.get, names)) - 7 + 2 * share) < 1e-5
    )
    return right


# The width of a head


@number
def torch_parameters():
    import torch

    layer = torch.nn.MultiheadAttention(32, 4)
    return sum(weight.numel() for weight in layer.parameters())


def keras_parameters(key_dim):
    import keras

    layer = keras.layers.MultiHeadAttention(4, key_dim=key_dim)
    layer.build(*3 * [(None, 5, 32)])
    return layer.count_params()


@number
def keras_parameters_key_dim_d_head():
    return keras_parameters(8)


@number
def keras_parameters_key_dim_d_model():
    return keras_parameters(32)


# Where the axes stand


def weights_torch(**options):
    import torch

    x = torch.zeros(2, 5, 4)  # two sentences of five words
    return torch.nn.MultiheadAttention(4, 2, **options)(x, x, x)[1]


@number
def sentences_by_default():
    assert len(weights_torch(batch_first=True)) == 2
    return len(weights_torch())


@number
def weight_axes_torch():
    return weights_torch(batch_first=True).ndim


@number
def weight_axes_keras():
    import keras

    x = np.zeros((2, 5, 4))
    layer = keras.layers.MultiHeadAttention(2, key_dim=2)
    return layer(x, x, return_attention_scores=True)[1].ndim


def attend_in_both(exchange):
    """Return the outputs of SDPA and Keras for one query, (2, H, T, K)."""
    import keras
    import torch
    from torch.nn import functional as F

    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((3, 1, 3, 5, 4)).astype("float32")
    by_torch = F.scaled_dot_product_attention(*map(torch.from_numpy, qkv))
    by_keras = keras.ops.dot_product_attention(*exchange(qkv))
    return by_torch.numpy(), exchange(np.asarray(by_keras))


@number
def layouts_of_heads_differ():
    one, other = attend_in_both(lambda x: np.swapaxes(x, -3, -2))
    return abs(one - other).max().round(6)


@number
def layouts_of_heads_confused():
    one, other = attend_in_both(lambda x: x)
    return abs(one - other).max()


# Layer normalisation


@number
def layer_norm_epsilon_torch():
    import torch

    return torch.nn.LayerNorm(3).eps


@number
def layer_norm_epsilon_keras():
    import keras

    return keras.layers.LayerNormalization().epsilon


@number
def layer_norm_small_torch():
    import torch

    return torch.nn.LayerNorm(3)(torch.tensor([0.01, 0.02, 0.03]))[-1].item()


@number
def layer_norm_small_keras():
    import keras

    row = np.array([[0.01, 0.02, 0.03]], "float32")
    return keras.layers.LayerNormalization()(row)[0, -1]


# Training


def lookup_move(repair):
    """Return how far Keras' Adam moves a row that occurs four times."""
    import keras
    import tensorflow as tf

    table = keras.Variable(tf.zeros((3, 1)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table.value, [2, 2, 2, 2]))
    gradient = repair(tape.gradient(loss, table.value))
    keras.optimizers.Adam(0.01).apply([gradient], [table])
    return -float(table[2, 0])


@number
def lookup_move_torch():
    import torch

    table = torch.nn.Embedding(3, 1, _weight=torch.zeros(3, 1))
    table(torch.tensor([2, 2, 2, 2])).sum().backward()
    torch.optim.Adam(table.parameters(), lr=0.01).step()
    return -table.weight[2].item()


@number
def lookup_move_keras():
    return lookup_move(lambda gradient: gradient)


@number
def lookup_move_repaired_keras():
    import tensorflow as tf

    return lookup_move(tf.convert_to_tensor)


@number
def first_step_torch():
    import torch

    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.full((1,), 1e-6)
    torch.optim.Adam([weight], lr=0.01).step()
    return -weight.item()


@number
def first_step_keras():
    import keras
    import tensorflow as tf

    weight = keras.Variable([0.0])
    keras.optimizers.Adam(0.01).apply([tf.constant([1e-6])], [weight])
    return -float(weight[0])


@number
def mean_loss_torch():
    import torch

    # Logits of two words with the same score cost ln 2; in units of that.
    logits = torch.zeros(4, 2)
    targets = torch.tensor([1, 1, 0, 0])
    loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=0)
    return loss.item() / np.log(2)


def mean_loss(**options):
    """Return Keras' mean of four losses of which two are masked."""
    import keras

    function = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, **options
    )
    targets = np.array([1, 1, 0, 0])
    loss = function(targets, np.zeros((4, 2)), sample_weight=targets != 0)
    return float(loss) / np.log(2)


@number
def mean_loss_keras():
    return mean_loss()


@number
def mean_loss_weighted_keras():
    return mean_loss(reduction="mean_with_sample_weight")


# The encoder


def silent_layer(norm_first):
    """Return the last number that a layer with silent parts makes of 6."""
    import torch

    options = {"batch_first": True, "norm_first": norm_first}
    layer = torch.nn.TransformerEncoderLayer(3, 1, **options).eval()
    for part in (layer.self_attn.out_proj, layer.linear2):
        torch.nn.init.zeros_(part.weight)
        torch.nn.init.zeros_(part.bias)
    return layer(torch.tensor([[[1.0, 2.0, 6.0]]]))[0, 0, -1].item()


@number
def silent_post_norm():
    return silent_layer(norm_first=False)


@number
def silent_pre_norm():
    return silent_layer(norm_first=True)


@cache
def torch_encoder(layers=3):
    """Return PyTorch's encoder of layers with two heads and width four."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers)


@number
def final_norms_by_default():
    return int(torch_encoder().norm is not None)


@number
def layers_in_encoder():
    return len(torch_encoder().layers)


def different(layers):
    """Return how many kinds of weights the first matrices of layers are."""
    return len({layer.linear1.weight.sum().item() for layer in layers})


@number
def different_layers_in_encoder():
    return different(torch_encoder().layers)


@number
def different_layers_in_transformer():
    import torch

    sizes = {"num_encoder_layers": 3, "num_decoder_layers": 1}
    options = {"dim_feedforward": 8, "batch_first": True, **sizes}
    whole = torch.nn.Transformer(4, 2, **options)
    return different(whole.encoder.layers)


@number
def largest_at_pads_fast():
    import torch

    x, pads = torch.ones(1, 2, 4), torch.tensor([[False, True]])
    encoder = torch_encoder(1).eval()
    with torch.no_grad():
        found = encoder(x.cumsum(-1), src_key_padding_mask=pads)
    return found[0, 1].abs().max().item()


def pad_weight(**more):
    """Return the weight of a pad, in the one layer of a small decoder."""
    import torch

    options = {"dropout": 0.0, "batch_first": True, "dim_feedforward": 4}
    model = torch.nn.Transformer(4, 2, 1, 1, **options)
    attention = model.decoder.layers[0].multihead_attn
    found = []

    def watch(layer, given, named, output):
        named["need_weights"] = True
        layer.forward = type(layer).forward.__get__(layer)
        found.append(layer.forward(*given, **named)[1])

    attention.register_forward_hook(watch, with_kwargs=True)
    pads = torch.tensor([[False, True]])
    source, target = torch.ones(1, 2, 4), torch.ones(1, 1, 4)
    model(source, target, src_key_padding_mask=pads, **more)
    return found[0][0, 0, 1].item()


@number
def pad_weight_without_memory_mask():
    return pad_weight()


@number
def pad_weight_with_memory_mask():
    import torch

    return pad_weight(memory_key_padding_mask=torch.tensor([[False, True]]))


def words_read(promise, **masks):
    """Return how many words of three the first place of a layer reads."""
    import torch

    torch.manual_seed(0)
    options = {"dropout": 0.0, "batch_first": True}
    layer = torch.nn.TransformerDecoderLayer(4, 2, 8, **options)
    x, memory = torch.randn(1, 2, 4), torch.randn(1, 3, 4, requires_grad=True)
    everything = torch.zeros(2, 3, dtype=torch.bool)
    masks |= {"memory_mask": everything, "memory_is_causal": promise}
    found = layer(x, memory, **masks)
    found[0, 0].square().sum().backward()
    return int((memory.grad[0].abs().amax(dim=-1) > 0).sum())


@number
def words_read_when_promised():
    return words_read(promise=True)


@number
def words_read_without_promise():
    return words_read(promise=False)


@number
def words_read_when_promised_with_pads():
    import torch

    none = torch.zeros(1, 3, dtype=torch.bool)
    return words_read(promise=True, memory_key_padding_mask=none)


@number
def words_read_keras_causal():
    import keras

    layer = keras.layers.MultiHeadAttention(2, 2)
    x, memory = np.ones((1, 2, 4)), np.ones((1, 3, 4))
    _, weights = layer(
        x, memory, use_causal_mask=True, return_attention_scores=True
    )
    return int((np.asarray(weights)[0, 0, 0] > 0).sum())


@number
def gelu_gap():
    import torch
    from torch.nn import functional as F

    x = torch.tensor(2.7)
    return abs(F.gelu(x) - F.gelu(x, approximate="tanh")).item()


@number
def gelu_gap_of_ops_keras():
    import keras

    gap = keras.ops.gelu([2.7]) - keras.activations.gelu(np.float32([2.7]))
    return abs(float(gap[0]))


# The layout of weights


@number
def linear_first_axis_torch():
    import torch

    return torch.nn.Linear(3, 5).weight.shape[0]


@number
def linear_first_axis_keras():
    import keras

    layer = keras.layers.Dense(5)
    layer.build((None, 3))
    return layer.kernel.shape[0]


# How a linear layer is drawn


@cache
def drawn_linear():
    """Return weight and bias of PyTorch's layer, then of Keras'."""
    import keras
    import torch

    keras.utils.set_random_seed(0)
    layer, dense = torch.nn.Linear(512, 512), keras.layers.Dense(512)
    dense.build((None, 512))
    theirs = [p.detach().numpy() for p in layer.parameters()]
    return [abs(w).max() for w in [*theirs, *dense.get_weights()]]


@number
def linear_largest_torch():
    return drawn_linear()[0]


@number
def linear_bias_torch():
    return drawn_linear()[1]


@number
def linear_largest_keras():
    return drawn_linear()[2]


@number
def linear_bias_keras():
    return drawn_linear()[3]


# Dropout


@number
def dropped_torch():
    import torch

    torch.manual_seed(0)
    layer, ones = torch.nn.Dropout(0.5), torch.ones(10_000)
    share = (layer(ones) == 0).float().mean()
    assert torch.equal(layer.eval()(ones), ones)
    return share


@number
def dropped_keras():
    import keras

    keras.utils.set_random_seed(0)
    layer, ones = keras.layers.Dropout(0.5), np.ones(10_000)
    assert np.any(np.asarray(layer(ones, training=True)) == 0)
    return (np.asarray(layer(ones)) == 0).mean()


# Arrays


@number
def bits_numpy():
    return np.array([0.1]).itemsize * 8


@number
def bits_torch():
    import torch

    return torch.tensor([0.1]).itemsize * 8


@number
def bits_tf():
    import tensorflow as tf

    return tf.constant([0.1]).dtype.size * 8


@number
def bits_from_numpy():
    import tensorflow as tf
    import torch

    array = np.array([0.1])
    sizes = torch.from_numpy(array).itemsize, tf.constant(array).dtype.size
    assert sizes[0] == sizes[1]
    return sizes[0] * 8


@number
def bits_of_dense():
    import keras
    import torch

    array = np.array([[0.1]])
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.nn.Linear(1, 1)(torch.from_numpy(array))
    return keras.layers.Dense(1)(array).dtype.size * 8


def attend_in_both_types(qkv):
    """Return the outputs of SDPA and Keras for one head, (T, K) each."""
    import keras
    import torch
    from torch.nn import functional as F

    by_torch = F.scaled_dot_product_attention(*map(torch.from_numpy, qkv))
    by_keras = keras.ops.dot_product_attention(*qkv[:, None, :, None])
    return by_torch.numpy(), np.asarray(by_keras)[0, :, 0]


@number
def half_by_torch():
    qkv = np.full((3, 1, 64), 32, "float16")
    by_torch, by_keras = attend_in_both_types(qkv)
    assert np.isnan(by_keras).all()
    return by_torch[0, 0]


@number
def double_off_by_keras():
    qkv = np.random.default_rng(0).standard_normal((3, 5, 8))
    one, other = attend_in_both_types(qkv)
    assert other.dtype == "float64"
    return abs(one - other).max()


@number
def transposed_first_numpy():
    assert np.transpose(np.zeros(3)).shape == (3,)
    return len(np.transpose(np.zeros((2, 3, 4))))


@number
def transposed_first_tf():
    import tensorflow as tf

    assert tf.transpose(tf.zeros(3)).shape == (3,)
    return len(tf.transpose(tf.zeros((2, 3, 4))))


@number
def transposed_first_torch():
    import torch

    assert torch.zeros(2, 3, 4).mT.shape == (2, 4, 3)
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        torch.zeros(3).mT  # noqa: B018
    return len(torch.zeros(2, 3, 4).mT)


@number
def transposed_first_matrix_tf():
    import tensorflow as tf

    with pytest.raises(ValueError, match="rank >= 2"):
        tf.linalg.matrix_transpose(tf.zeros(3))
    return len(tf.linalg.matrix_transpose(tf.zeros((2, 3, 4))))


@number
def std_numpy():
    return np.std([1, 2, 3])


@number
def std_torch():
    import torch

    return torch.tensor([1.0, 2.0, 3.0]).std()


@number
def std_tf():
    import tensorflow as tf

    return tf.math.reduce_std(tf.constant([1.0, 2.0, 3.0]))


# Sines and cosines


def layouts():
    """Return a table of positions in both layouts, (10, 6) each."""
    denominators = 10000 ** (np.arange(0, 6, 2) / 6)
    angles = np.arange(10)[:, None] / denominators
    in_turn = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(10, 6)
    in_halves = np.concatenate([np.sin(angles), np.cos(angles)], -1)
    return in_turn, in_halves


@number
def second_number_in_turn():
    return layouts()[0][1, 1]


@number
def second_number_in_halves():
    return layouts()[1][1, 1]


@number
def layouts_differ_after_sorting():
    in_turn, in_halves = layouts()
    in_order = np.concatenate([in_turn[:, 0::2], in_turn[:, 1::2]], -1)
    return abs(in_order - in_halves).max()


# How an embedding is drawn


def torch_table():
    import torch

    torch.manual_seed(0)
    return torch.nn.Embedding(1000, 512).weight.detach().numpy()


def keras_table():
    import keras

    keras.utils.set_random_seed(0)
    layer = keras.layers.Embedding(1000, 512)
    layer.build()
    return layer.get_weights()[0]


@number
def embedding_length_torch():
    return np.linalg.norm(torch_table(), axis=-1).mean()


@number
def embedding_std_torch():
    return torch_table().std().round(2)


@number
def embedding_length_keras():
    return np.linalg.norm(keras_table(), axis=-1).mean()


@number
def embedding_limit_keras():
    return abs(keras_table()).max()


# Ids that do not exist


def outcome(lookup, token_id):
    """Say what a lookup in five rows makes of an id, in the page's words."""
    try:
        row = np.asarray(lookup([token_id]))[0]
    except Exception as error:
        return f"`{type(error).__name__}`"
    if not row.any():
        return "zeros"
    return {1: "the first row", 5: "the last row"}[int(row[0])]


@cache
def lookups():
    """Return a dict: call, as the page names it -> its two outcomes."""
    import keras
    import tensorflow as tf
    import torch
    from torch.nn import functional as F

    table = np.repeat(np.arange(1.0, 6.0, dtype="float32")[:, None], 3, 1)
    rows, rows_tf = torch.from_numpy(table), tf.constant(table)
    gather_xla = tf.function(tf.gather, jit_compile=True)
    layer = keras.layers.Embedding(5, 3)
    layer.build()
    layer.set_weights([table])
    layer_xla = tf.function(layer.call, jit_compile=True)
    calls = {
        "`table[ids]`, PyTorch": lambda ids: rows[torch.tensor(ids)],
        "`nn.Embedding`": lambda ids: F.embedding(torch.tensor(ids), rows),
        "`F.one_hot`": lambda ids: F.one_hot(torch.tensor(ids), 5).float(),
        "`tf.gather` on the CPU": lambda ids: tf.gather(rows_tf, ids),
        "`tf.gather`, compiled by XLA": lambda ids: gather_xla(rows_tf, ids),
        "`keras.layers.Embedding`": lambda ids: layer(tf.constant(ids)),
        "`keras.layers.Embedding`, compiled by XLA": (
            lambda ids: layer_xla(tf.constant(ids))
        ),
        "`tf.one_hot`": lambda ids: tf.one_hot(ids, 5),
    }
    return {
        name: [outcome(lookup, token_id) for token_id in (-1, 5)]
        for name, lookup in calls.items()
    }


@number
def lookups_in_all():
    return sum(map(len, lookups().values()))


@number
def lookups_that_raise():
    return sum(
        fate.startswith("`") for fates in lookups().values() for fate in fates
    )


# Positions in half precision


def first_equal(kind):
    """Return the first whole number that its follower equals in a type."""
    import torch

    numbers = torch.arange(5000.0).to(getattr(torch, kind))
    return (numbers[1:] == numbers[:-1]).int().argmax()


@number
def positions_equal_in_bfloat16():
    return first_equal("bfloat16")


@number
def positions_equal_in_float16():
    return first_equal("float16")


# A row with nothing to attend to


def softmax_of_a_blind_row():
    """Return a dict: call, as the page names it -> its weights."""
    import keras
    import tensorflow as tf
    import torch
    import torch.nn.functional as F

    row = np.full((1, 2), -np.inf)
    with np.errstate(invalid="ignore"):
        parts = np.exp(row - row.max())
    mask = np.array([[False, False]])
    return {
        "`torch.softmax`": torch.softmax(torch.tensor(row), -1),
        "`tf.nn.softmax`": tf.nn.softmax(tf.constant(row)),
        "the formula in NumPy": parts / parts.sum(),
        "`keras.layers.Softmax()(scores, mask=mask)`": keras.layers.Softmax()(
            np.zeros((1, 2)), mask=mask
        ),
        "`F.scaled_dot_product_attention`, from PyTorch `2.5` on": (
            F.scaled_dot_product_attention(
                torch.ones(1, 2), *[torch.eye(2)] * 2, torch.tensor(mask)
            )
        ),
    }


def words_of(path):
    """Return the Markdown of a page or a chapter."""
    if path.suffix == ".md":
        return path.read_text("utf-8")
    return "\n".join(cell.source for cell in Notebook.read(path).markdown)


def text():
    return "\n".join(page.read_text("utf-8") for page in PAGES)


def test_every_name_on_the_pages_is_a_function_here_and_the_other_way_round():
    names = {expression for _, expression in claims.find(text())}
    assert names == set(NUMBERS), (
        f"the pages use the names {sorted(names - set(NUMBERS))}, "
        "which no function here computes: write them, marked @number. "
        f"They do not use {sorted(set(NUMBERS) - names)}: remove them here."
    )


def test_numbers_on_the_pages_are_what_the_libraries_give():
    namespace = {name: float(compute()) for name, compute in NUMBERS.items()}
    messages = [
        f"{label(page)}: {message}"
        for page in PAGES
        for message in check_claims(page.read_text("utf-8"), namespace)
    ]
    assert not messages, "\n" + "\n".join(messages)


def test_the_order_of_arguments_is_as_the_page_says():
    import keras
    from torch import nn

    theirs = (
        nn.MultiheadAttention.forward,
        keras.layers.MultiHeadAttention.call,
    )
    torch_order, keras_order = (
        ", ".join(list(inspect.signature(call).parameters)[1:4])
        for call in theirs
    )
    keras_order = keras_order.replace("value", "**value**")
    says = (
        f"PyTorch's order is {torch_order}; "
        f"that of Keras' attention layers is {keras_order}."
    )
    assert says in text(), f"book/libraries.md should say: {says}"
    function = inspect.signature(keras.ops.dot_product_attention)
    assert ", ".join(list(function.parameters)[:3]) == torch_order


def layout(attend):
    """Return in which order attention has its axes.

    A key that changes is seen by the other places of its own head.
    """
    before = np.random.default_rng(0).normal(size=(2, 3, 3, 4))
    after = before.copy()
    after[0, 0, 0] += 1
    change = np.asarray(attend(after)) - np.asarray(attend(before))
    return "(B, H, T, K)" if np.abs(change[0, 0, 1]).max() else "(B, T, H, K)"


@cache
def axes_said():
    """Return what the page has to say of the order of axes."""
    import keras
    import torch
    import torch.nn.functional as F

    torch_layout = layout(
        lambda x: F.scaled_dot_product_attention(*[torch.tensor(x)] * 3)
    )
    keras_layout = layout(lambda x: keras.ops.dot_product_attention(x, x, x))
    return [
        f"| `F.scaled_dot_product_attention` | `{torch_layout}` |",
        f"| `keras.ops.dot_product_attention` | `{keras_layout}` |",
        *(
            f"in {library}, which stores {layout}"
            for library, layout in layouts_of_weights().items()
        ),
    ]


@cache
def layouts_of_weights():
    """Return a dict: library -> the layout of a linear layer's weights."""
    kinds = {5: "(out, in)", 3: "(in, out)"}
    return {
        "PyTorch": kinds[linear_first_axis_torch()],
        "Keras": kinds[linear_first_axis_keras()],
    }


@pytest.mark.parametrize("place", range(4))
def test_layouts_are_as_the_page_says(place):
    says = axes_said()[place]
    assert says in text(), f"book/libraries.md should say: {says}"


def test_layouts_differ_so_that_an_exchange_is_rejected():
    axes = [re.search(r"\(.*\)", says)[0] for says in axes_said()]
    assert axes[0] != axes[1] and axes[2] != axes[3]


def test_ids_that_do_not_exist_fare_as_the_page_says():
    for call, (negative, large) in lookups().items():
        row = f"| {call} | {negative} | {large} |"
        assert row in text(), f"book/libraries.md should have the row\n{row}"


def test_a_blind_row_fares_as_the_page_says():
    for call, weights in softmax_of_a_blind_row().items():
        kinds = {0.0: "zeros"}
        (fate,) = {kinds.get(float(w), f"`{w}`") for w in np.ravel(weights)}
        row = f"| {call} | {fate} |"
        assert row in text(), f"book/libraries.md should have the row\n{row}"


@pytest.mark.parametrize("path", PAGES + OTHERS, ids=label)
def test_calls_and_orders_of_arguments_are_the_libraries(path):
    import keras
    import numpy
    import tensorflow
    import torch
    from torch.nn import functional

    libraries = {"np": numpy, "keras": keras, "tf": tensorflow}
    libraries |= {"torch": torch, "nn": torch.nn, "F": functional}
    page = path.suffix == ".md"
    notebook = Notebook.page(path) if page else Notebook.read(path)
    found = [
        f"{notebook.name(cell)}: {message}"
        for cell in notebook.markdown
        for message in [
            *check_calls(cell.source, libraries),
            *check_orders(cell.source, orders()),
            *check_layouts(cell.source, layouts_of_weights()),
        ]
    ]
    assert not found, "\n" + "\n".join(found)


def test_orders_of_arguments_are_found_where_they_are_stated():
    stated = [ORDER.findall(words_of(path)) for path in PAGES + OTHERS]
    assert sum(map(len, stated)) >= 6


def test_layouts_of_weights_are_found_where_they_are_stated():
    stated = [LAYOUT.findall(words_of(path)) for path in PAGES + OTHERS]
    assert sum(map(len, stated)) >= 7


def mismatched(text):
    """Yield a message for each row whose number is computed from other code.

    What its first cell calls must be in the function behind the number.
    """
    for row in (row for table in tables(text) for row in table):
        label, *cells = row.values()
        for code in codes(label):
            for _, name in claims.find(" ".join(cells)):
                words = {*re.findall(r"\w+", code)} - {"mask"}
                if strange := words - {*re.findall(r"\w+", source(name))}:
                    yield (
                        f"the row `{code}` has the number of {name}, in "
                        f"which nothing is called {sorted(strange)}. Correct "
                        "the code, or move it to its own row."
                    )


def source(name):
    """Return the source of a function here, and of those that it calls."""
    own = inspect.getsource(globals()[name])
    called = [n for n in re.findall(r"(\w+)\(", own) if n in globals()]
    return own + "".join(source(n) for n in called if n != name)


def test_numbers_in_tables_are_of_the_code_in_their_row():
    assert not (found := [*mismatched(text())]), "\n".join(found)


def test_row_with_the_number_of_another_is_rejected():
    for one, other in [
        ("weight_sdpa", "weight_mha"),
        ("weight_keras", "weight_mha"),
        ("torch_parameters", "keras_parameters_key_dim_d_model"),
    ]:
        exchanged = text().replace(one, "x").replace(other, one)
        found = [*mismatched(exchanged.replace("<!--= x ", f"<!--= {other} "))]
        assert found and "Correct the code" in found[0]


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("A number 3 alone.", "computed by nothing"),
        ("A wrong 16,801<!--= keras -->.", "correct the number"),
        ("An unknown 3<!--= nobody -->.", "NameError"),
    ],
)
def test_a_number_that_is_not_true_is_rejected(sentence, says):
    messages = check_claims(sentence, {"keras": 16800})
    assert len(messages) == 1 and re.search(says, messages[0])
