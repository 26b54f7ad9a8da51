"""The chapter on Llama: its checkers, and its model.

test_exercises.py tries each checker on the stub and the solution.
"""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")


def count(
    c,
    matrices=3,
    norms=2,
    last=1,
    few="num_key_value_heads",
    tables=0,
    wide=0,
):
    wide = wide or c["num_attention_heads"] * c["head_dim"]
    narrow = c[few] * c["head_dim"]
    d, layers = c["hidden_size"], c["num_hidden_layers"]
    layer = 2 * d * (wide + narrow) + norms * d
    layer += matrices * d * c["intermediate_size"]
    tables = tables or 2 - c["tie_word_embeddings"]
    return tables * c["vocab_size"] * d + layers * layer + last * d


WRONG = {
    "llama_parameters": {
        ": tied": lambda c: count(c, tables=2),
        "not tied": lambda c: count(c, tables=1),
        "key heads": lambda c: count(c, few="num_attention_heads"),
        "three matrices": lambda c: count(c, matrices=2),
        "a last one": lambda c: count(c, norms=0, last=0),
        "has two norms.": lambda c: count(c, norms=1),
        "last norm": lambda c: count(c, last=0),
        "one layer": lambda c: count(c | {"num_hidden_layers": 1}),
        "as wide as the model": lambda c: count(
            c | {"head_dim": c["hidden_size"] // c["num_attention_heads"]}
        ),
        "as wide as all heads": lambda c: count(c, wide=c["hidden_size"]),
        "add up": lambda c: 7,
    },
    "to_checkpoint": {
        "transpose": lambda k: k.reshape(-1, len(k)),
        "torn": lambda k: k.swapaxes(1, 2).reshape(len(k), -1).T,
        "opposite": lambda k: k[:, ::-1].reshape(len(k), -1).T,
        "for pairs": lambda k: (
            k.reshape(*k.shape[:2], 2, -1).swapaxes(2, 3).reshape(len(k), -1).T
        ),
        "row c K + k": lambda k: 2 * k.reshape(len(k), -1).T,
    },
    "larger_base": {
        "d_head / 2 - 1": lambda b, f, d: b * f,
        "upside down": lambda b, f, d: b * f ** ((d - 2) / d),
        "not i / d_head": lambda b, f, d: b * f ** (2 * d / (d - 2)),
        "faster": lambda b, f, d: b * f ** (-d / (d - 2)),
        "the frequency": lambda b, f, d: b ** ((2 - d) / d) / f,
        "not changed": lambda b, f, d: b,
        "is the factor": lambda b, f, d: b + f,
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


def test_heads_wider_than_the_model(chapter):
    """Rows of the queries' matrix are not the width of the model."""
    book = chapter("llama")
    sizes = {"vocab_size": 11, "num_layers": 1, "d_model": 10, "d_ff": 7}
    heads = {"num_heads": 4, "key_heads": 2, "d_head": 6}
    config = book["LlamaConfig"](**sizes, **heads)
    model, model_tf = book["Llama"](config), book["LlamaTF"](config)
    book["draw_model"](model, 0)
    book["draw_model_tf"](model_tf, 0)
    ids = torch.arange(5)[None]
    found = model(ids).detach().numpy()
    assert np.allclose(found, model_tf(ids.numpy()), atol=1e-4)


def test_half_precision_runs(chapter):
    book = chapter("llama")
    half = book["load_llama"](book["folder"]).bfloat16()
    found = half(book["token_ids"])
    assert found.dtype == torch.bfloat16
    wanted = book["their_logits"]
    assert (found.float() - wanted).abs().max() < 0.2
