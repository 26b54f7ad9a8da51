"""Run what symptoms.md says of the layers of PyTorch and of messages."""

import ast
import re
import warnings
from inspect import signature

import numpy as np
import pytest

from cellbycell.checks import check_model
from tools.settings import BOOK

pytestmark = [
    pytest.mark.xdist_group("frameworks"),
    pytest.mark.filterwarnings("ignore:.*nested"),  # are a prototype
]
PAGE = (BOOK / "symptoms.md").read_text("utf-8")
D = 12
IDS = np.array([[3, 4, 5, 6, 7], [8, 9, 4, 0, 0], [5, 3, 0, 0, 0]])
LEFT = IDS[:, ::-1].copy()


def snippet(part):
    """Return the only short piece of code on the page with these words."""
    pieces = re.findall(r"(?ms)^```python\n(?!import)(.*?)\n```", PAGE)
    (found,) = [code for code in pieces if part in code]
    return found


def value(code, names):
    """Run code; return what its last line, an expression, gives."""
    *body, last = ast.parse(code).body
    exec(compile(ast.Module(body, []), "page", "exec"), names)
    return eval(compile(ast.Expression(last.value), "page", "eval"), names)


@pytest.fixture
def names():
    """Return a function: ids -> what the code on the page takes for given."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(D, 2, 20, 0.0, batch_first=True)
    given = {
        "torch": torch,
        "encoder": nn.TransformerEncoder(layer, 2),
        "layer": nn.MultiheadAttention(D, 2, batch_first=True),
        "embed": nn.Embedding(10, D),
        "pad_id": 0,
        "num_heads": 2,
    }

    def names(ids):
        ids = torch.as_tensor(ids)
        future = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
        given.update(
            ids=ids,
            token_ids=ids,
            x=given["embed"](ids),
            future=future,
            key_mask=ids != 0,
            causal_mask=~future,
            attention_mask=~future & (ids != 0)[:, None],
        )
        return given

    return names


@pytest.fixture
def ask(names):
    """Return a function: code of the page, ids -> the kit's report on it."""
    from torch import nn

    class Model(nn.Module):
        def __init__(self, code):
            super().__init__()
            self.code, self.encoder = code, names(IDS)["encoder"]
            self.embed = names(IDS)["embed"]

        def forward(self, ids):
            given = names(ids) | {"encoder": self.encoder}
            return value(self.code, given | {"x": self.embed(ids)})

    return lambda code, ids: check_model(Model(code), ids, pad_id=0)


def test_converters_for_the_encoder_are_right(ask, names):
    import torch

    is_token = IDS != 0
    first, *others = (
        value(snippet(part), names(IDS))[is_token]
        for part in ("~key_mask", "triu(1)", "~attention_mask")
    )
    assert all(torch.allclose(x, first, atol=1e-5) for x in others)
    code = snippet("~key_mask")
    report = ask(code, IDS)
    assert {"padding_invariance", "context_dependence", "causality"} <= {
        *report.passed
    }
    assert {"padding_invariance", "causality"} <= {
        *ask("encoder(x)", IDS).failed
    }


def in_eval(encoder, x, **masks):
    """Return the outputs of the fast path, then of the slow one."""
    import torch

    encoder.eval()
    with torch.no_grad():
        fast = encoder(x, **masks)
    return fast, encoder(x, **masks)


def test_the_fast_path_gives_zeros_at_pads(names):
    import torch
    from torch import nn

    given = names(IDS)
    encoder, x, mask = given["encoder"], given["x"], given["key_mask"]
    fast, slow = in_eval(encoder, x, src_key_padding_mask=~mask)
    assert not fast[~mask].any() and slow[~mask].all()
    assert torch.allclose(fast[mask], slow[mask], atol=1e-5)
    assert not torch.allclose(fast.mean(1), slow.mean(1), atol=1e-2)
    plain = nn.TransformerEncoder(
        encoder.layers[0], 2, enable_nested_tensor=False
    )
    assert in_eval(plain, x, src_key_padding_mask=~mask)[0][~mask].all()


def test_nan_in_eval_only_comes_and_goes_as_the_page_says(names, ask):
    import torch

    given = names(LEFT)
    encoder, x, is_token = given["encoder"], given["x"], given["key_mask"]
    masks = {"mask": given["future"], "src_key_padding_mask": ~is_token}
    assert value(snippet(".all(dim=-1).any()"), given | masks)
    fast, slow = in_eval(encoder, x, **masks)
    assert fast[1:].isnan().all() and not slow.isnan().any()
    assert not encoder.train()(x, **masks).isnan().any()
    # The kit asks without gradients, so it meets the fast path.
    assert ask(snippet("~key_mask"), LEFT).failed == ["output_shape"]
    try:
        exec(snippet("set_fastpath_enabled"), given)
        assert not in_eval(encoder, x, **masks)[0].isnan().any()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    with torch.no_grad():
        output = value(snippet("torch.eye"), given)
    assert torch.allclose(output[is_token], slow[is_token], atol=1e-5)
    masks = {"attn_mask": given["future"], "key_padding_mask": ~is_token}
    for weights in (True, False):
        output, _ = given["layer"](x, x, x, need_weights=weights, **masks)
        assert output.isnan().any() == weights


def test_weights_are_a_mean_over_the_heads_unless_asked(names):
    import torch

    given = names(IDS)
    exec(snippet("average_attn_weights=False"), given)
    weights, x = given["weights"], given["x"]
    assert weights.shape == (3, 2, 5, 5)  # (B, H, T, S)
    assert torch.allclose(given["layer"](x, x, x)[1], weights.mean(1))


def test_layers_have_the_defaults_that_the_page_names():
    import keras
    from torch import nn

    layer = value(snippet("LayerNormalization"), {"keras": keras})
    assert layer.epsilon == nn.LayerNorm(3).eps == 1e-5
    assert keras.layers.LayerNormalization().epsilon == 1e-3
    for layer in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer):
        defaults = signature(layer).parameters
        assert defaults["dropout"].default == 0.1
        assert not defaults["batch_first"].default
    wanted = {"memory_mask", "memory_key_padding_mask"}
    assert wanted <= signature(nn.TransformerDecoder.forward).parameters.keys()


# Messages of the libraries


def torch_messages():
    """Return a list of calls, each of which raises or warns."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    x, ids = torch.zeros(3, 5, D), torch.zeros(3, 5, dtype=torch.long)
    future, pads = torch.ones(5, 5).triu(1), torch.tensor(IDS) == 0
    floats = nn.Transformer.generate_square_subsequent_mask(5)
    mha = nn.MultiheadAttention(D, 2, batch_first=True)

    def make(**options):
        layer = nn.TransformerEncoderLayer(D, 2, 20, **options)
        return nn.TransformerEncoder(layer, 2)

    encoder = make(batch_first=True)

    @torch.no_grad()
    def fast():
        torch.set_warn_always(True)  # it would warn once in a process
        try:
            encoder.eval()(x, src_key_padding_mask=pads)
        finally:
            torch.set_warn_always(False)

    return [
        lambda: x.half().masked_fill(x == 0, -1e9),
        lambda: encoder(x, mask=future[:4, :4].bool()),
        lambda: encoder(x, mask=future.expand(3, 5, 5).bool()),
        lambda: encoder(x, src_key_padding_mask=pads.T),
        lambda: encoder(x, src_key_padding_mask=ids),
        lambda: mha(x, x, x, key_padding_mask=ids),
        lambda: mha(x, x, x, attn_mask=future.long()),
        lambda: encoder(x, is_causal=True),
        lambda: encoder(x, floats, src_key_padding_mask=pads),
        lambda: make(norm_first=True),
        fast,
        lambda: F.scaled_dot_product_attention(x, x, x, future.long()),
        lambda: x.masked_fill(x, -1e9),
        lambda: ~x,
        lambda: x.transpose(1, 2).view(3, -1),
        lambda: F.embedding(ids + 20, torch.zeros(20, D)),
        lambda: nn.MultiheadAttention(D, 5),
        lambda: mha(x[..., :6], x[..., :6], x[..., :6]),
        make,  # which names batch_first
    ]


def keras_messages():
    """Return a list of calls, each of which raises or warns."""
    import keras
    import tensorflow as tf

    class Own(keras.layers.Layer):
        def call(self, x):
            return x

    x, mha = np.zeros((3, 5, D), "f"), keras.layers.MultiHeadAttention(2, 6)
    mask, ids = np.ones((3, 5), bool), np.array([[20]])
    return [
        lambda: mha(x, x, attention_mask=mask),
        lambda: Own()(keras.layers.Embedding(20, D, mask_zero=True)(ids - 1)),
        lambda: tf.constant(mask) == 1,
        lambda: ~tf.constant(x),
        lambda: mha(x, x, True),
        lambda: keras.ops.dot_product_attention(x, x, x),
        lambda: keras.layers.Embedding(20, D)(ids),
    ]


def said_by(call):
    """Return the message of the error that a call raises, or its warnings'."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            return str(error)
    return "\n".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize(
    ("title", "calls"),
    [
        ("Messages of PyTorch", torch_messages),
        ("Messages of Keras and TensorFlow", keras_messages),
    ],
)
def test_messages_are_literally_the_libraries(title, calls):
    section = re.split(r"(?m)^##", PAGE.partition(f"### {title}\n")[2])[0]
    listed = re.findall(r"(?m)^`([^`]+)`\\$", section)
    said = [*map(said_by, calls())]
    strange = [m for m in listed if not any(m in text for text in said)]
    assert listed and not strange, f"no call says {strange}; they say {said}"
    mute = [s for s in said if not any(m in s for m in listed)]
    assert not mute, f"the page has nothing of {mute}"
    assert calls is keras_messages or "batch_first was not True" in said[-1]
