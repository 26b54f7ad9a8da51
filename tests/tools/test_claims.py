"""Numbers, tables and calls that are wrong are rejected."""

import math

import numpy as np
import pytest
import torch
from nbformat.v4 import new_markdown_cell, new_notebook

from tools.notebooks import METADATA, Notebook
from tools.run.calls import check_calls
from tools.run.claims import check_claims, faults
from tools.run.tables import check_tables

frameworks = pytest.mark.xdist_group("frameworks")


def cases(text, mark=" ==> "):
    """Divide the lines of a text; `mark` stands between the arguments."""
    return [line.split(mark) for line in text.strip().split("\n")]


# Numbers

NAMES = {"n": 3, "math": math, "word": "zeros"}
NEAR = "x = torch.zeros(64, 3_000)\n0.2893 tensor([-17., 1024.])"
SENTENCES = """
The vocabulary of GPT-2 has 50257<!-- from PAPER --> entries.
Roughly 10<!-- from PAPER --> % of the words are names.
The first results, 28.4<!-- from PAPER --> and **41.8**<!-- from PAPER -->.
In 2013, word vectors were learned, and used from 2014 to 2017.
The paper appeared on 12 June 2017 and was changed in August 2023.
Attention (Vaswani et al., 2017) needs no recurrence.
The book runs on PyTorch 2.13 and Python 3.11; section 3.2 says why.
A width of 0 or larger, a cosine from -1 to 1, a 2-dimensional array, 12 heads.
There are three<!--= n --> words, or **thirty-three**<!--= 11 * n -->.
It gives zeros<!--= word -->, `zeros`<!--= word -->, `3`<!--= n --> or `12`.
It is 3,003<!--= 1001 * n -->, −3<!--= -n --> or 3.0e-3<!--= n / 1e3 -->.
The 64 rows are 3,000 long; the loss is 0.29, and the logits −17 and 1,024.
`x[16]`, [section 16](#x), float32, <b>, $-1$, $16 a$, $4 \\cdot 16 = 64$
"""
WRONG_NUMBERS = """
It has 4<!--= n -->. ==> says 4, but n is 3
It is 3<!--= m -->. ==> raises NameError
It is 3,001<!--= 1000 * n -->. ==> says 3,001
It is 3.1e-3<!--= n / 1000 -->. ==> says 3.1e-3
It is 0.3<!--= n * float('nan') -->. ==> says 0.3
Thirty-six<!--= 11 * n --> rows. ==> says Thirty-six, but 11 * n is
It has ones<!--= word -->. ==> says ones, but word is zeros
It has rows<!--= n -->. ==> ValueError: rows is no number
It has 13 rows. ==> 13<!--= expression -->, or where it is from
Here $d_k = 16$. ==> the number 16
Roughly 2 % of it. ==> the number 2
A 16-dimensional vector. ==> the number 16
The loss is 0.28. ==> the number 0.28
It has 3<!-- from hearsay --> rows. ==> hearsay, has no entry in
It has 3<!-- from https://x.org --> rows. ==> https://x.org, has no entry
It has 50257<!--= 50257 -->. ==> 50257<!-- from https://... -->
It has 3<!--= sum(i for i in (1, 2)) --> rows. ==> names no variable
"""


def found(text):
    """Return what is said of the numbers in a text beside a cell."""
    return faults(text, NEAR) + check_claims(text, NAMES)


@pytest.mark.parametrize(("sentence",), cases(SENTENCES))
def test_ordinary_sentence_can_be_written(sentence):
    address = "https://arxiv.org/abs/1706.03762"
    assert found(sentence.replace("PAPER", address)) == []


@pytest.mark.parametrize(("text", "expected"), cases(WRONG_NUMBERS))
def test_number_in_a_sentence_that_is_wrong_is_rejected(text, expected):
    (message,) = found(text)
    assert expected in message


def chapter(*texts):
    """Return a chapter of Markdown."""
    cells = [new_markdown_cell(text) for text in texts]
    return Notebook(
        "small.ipynb", new_notebook(cells=cells, metadata=METADATA)
    )


def cost(seq_len, d_model):
    return 6 * seq_len * d_model**2 + 4 * seq_len**2 * d_model


# Tables and calls

TABLES = """
| you have | you write |
|---|---|
| twice<!-- [{} for x in (1, 2)] == [2, 4] --> | `2 * x` |
| a square<!-- [{} for x in (1, 2)] == [1, 4] --> | `x**2` |

| equation | function | PyTorch | Keras |
|---|---|---|---|
| $(1)$ | `cost` | `torch.sum`, `dim` | `axis=True`; KerasHub `Cost` |
"""
WRONG_ROWS = """
`x**2` ==> `2 * x` ==> the row 'a square': [2 * x for x in (1, 2)] == [1, 4] is
`2 * x` ==> `2 x` ==> raises SyntaxError
<!-- [{} for x in (1, 2)] == [2, 4] --> ==>  ==> nothing computes 2 * x
`cost` ==> `costs` ==> names costs under function
`torch.sum` ==> `tf.sumup` ==> names tf.sumup under PyTorch
`axis=True` ==> `tf.nosuch` ==> names tf.nosuch under Keras
"""


@pytest.mark.parametrize(("old", "new", "expected"), cases(WRONG_ROWS))
def test_row_that_is_wrong_is_rejected(old, new, expected):
    known = {"torch": np, "tf": np, "cost": cost}
    assert not check_tables(chapter(TABLES), known)
    assert old in TABLES
    (message,) = check_tables(chapter(TABLES.replace(old, new)), known)
    assert message.startswith("small.ipynb, cell 1") and expected in message


@pytest.fixture(scope="module")
def libraries():
    """The frameworks, under the names that the book has for them."""
    import keras
    from torch import nn
    from torch.nn import functional as F

    return {"keras": keras, "torch": torch, "nn": nn, "F": F}


# A function, arguments that it takes, others, and what it takes instead.
CALLS = """
F.scaled_dot_product_attention ==> (query, key) ==> (key, query) ==> query, key
keras.layers.MultiHeadAttention ==> (4, key_dim=8) ==> (4, key_dims=8) ==> key_
MultiHeadAttention() ==> (..., attention_mask) ==> (..., attn_mask) ==> attenti
nn.MultiheadAttention() ==> (query, key) ==> (query, value, key) ==> query, key
Embedding ==> (mask_zero=True) ==> (zero_mask=True) ==> padding_idx
"""


@frameworks
@pytest.mark.parametrize(("function", "right", "wrong", "takes"), cases(CALLS))
def test_call_that_its_function_refuses_is_rejected(
    libraries, function, right, wrong, takes
):
    right = f"See `{function}{right}` and `nobody(knows=it)`."
    assert not check_calls(right, libraries)
    (message,) = check_calls(f"See `{function}{wrong}`.", libraries)
    assert f"`{function}{wrong}`: " in message and takes in message
