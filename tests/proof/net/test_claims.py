"""Numbers, formulas, tables and calls that are wrong are rejected."""

import copy
import math
import re

import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.net import tex
from tools.net.calls import check_calls, check_layouts, check_orders
from tools.net.claims import check_claims
from tools.net.formulas import Letters, check_formulas, compare
from tools.net.formulas import formulas as formulas_of
from tools.net.tables import check_tables
from tools.notebooks import METADATA, Notebook, paths

frameworks = pytest.mark.xdist_group("frameworks")

# Numbers

PAPER = "<!-- from https://arxiv.org/abs/1706.03762 -->"
SENTENCES = f"""The vocabulary of GPT-2 has 50257{PAPER} entries.
The model has 213{PAPER} million parameters.
The paper has 15{PAPER} pages.
Roughly 10{PAPER} % of the words are names.
In English, roughly 100<!--= 100 * n / 3 --> per cent have a vowel.
The first results, 28.4{PAPER} and **41.8**{PAPER}, were new.
In 2013, word vectors were learned from 2012 to 2014.
The paper appeared on 12 June 2017 and was changed in August 2023.
Attention (Vaswani et al., 2017) needs no recurrence.
The book runs on PyTorch 2.13 and Python 3.11.
Keras 3 runs on three backends.
GPT-2 and Llama 3.1 read from left to right.
The formula stands in section 3.2 of the paper.
A width of 0 or larger is allowed.
A probability goes from 0 to 1, a cosine from -1 to 1.
The table is a 2-dimensional array.
So 3<!--= n --> of 4<!--= n + 1 --> words are read.
There are three<!--= n --> words, or **thirty-three**<!--= 11 * n -->.
It costs 3,000<!--= 1000 * n -->, −3<!--= -n --> or 3.0e-3<!--= n / 1e3 -->."""
NAMES = {"n": 3, "math": math}


@pytest.mark.parametrize("sentence", SENTENCES.split("\n"))
def test_ordinary_sentence_can_be_written(sentence):
    assert check_claims(sentence, NAMES) == []


@pytest.mark.parametrize(
    "text",
    [
        "`x[1]`, $2^3$, [section 12](#x), float32\n\n```\n16\n```",
        "$-1$, $k = 0$, $12 a$, $4 \\cdot 16 = 64$, $d =$ 3<!--= n -->",
        "1. one\n3. three\n\n### Exercise 3: x (easy, 10 minutes)",
        "It is 1.1<!--= math.log(3) -->.",
    ],
)
def test_what_is_no_number_in_a_sentence_passes(text):
    assert check_claims(text, NAMES) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It has 4<!--= n -->.", "says 4, but n is 3"),
        ("It is 0.334<!--= n / 9 -->.", "says 0.334"),
        ("It is 3<!--= m -->.", "raises NameError"),
        ("It is 3,001<!--= 1000 * n -->.", "says 3,001"),
        ("It is −3<!--= n -->.", "says −3"),
        ("It is 3.1e-3<!--= n / 1000 -->.", "says 3.1e-3"),
        ("It is 0.3<!--= n * float('nan') -->.", "says 0.3"),
        ("Thirty-six<!--= 11 * n --> rows.", "says Thirty-six, but 11 * n is"),
        ("It has rows<!--= n -->.", "ValueError: rows is no number"),
        ("It has 3 rows.", "or the source of a fact from outside"),
        ("Here $d_k = 64$.", "the number 64"),
        ("In 2048 rows.", "the number 2048"),
        ("It has 2000 rows.", "the number 2000"),
        ("Only 3 rows in it.", "the number 3"),
        ("Roughly 2 % of it.", "the number 2"),
        ("A 16-dimensional vector.", "the number 16"),
        ("It has 3<!-- from hearsay --> rows.", "hearsay, has no entry in"),
        ("It has 3<!-- from https://x.org --> rows.", "https://x.org, has no"),
        ("It has 50257<!--= 50257 -->.", "50257<!-- from https://... -->"),
        ("It has three<!--= math.ceil(3) --> rows.", "names no variable"),
        ("It has 3<!--= sum(i for i in (1, 2)) --> rows.", "no variable"),
    ],
)
def test_number_in_a_sentence_that_is_wrong_is_rejected(text, expected):
    (message,) = check_claims(text, NAMES)
    assert expected in message


# Formulas

NOTATION = """
| in code | letter in shapes | in formulas | size here |
|---|---|---|---|
| `seq_len` | T | $n$ | |
| `d_model` | D | $d_{model}$, here short $d$ | 2<!--= 2 --> |
| `query`, `key` | (T, K), (S, K) | $Q$, $K$ | |
| `table` | (T, D) | $E$ | |
| `offset` | | $k$ | |
| `turns(d_model)[i]` | | $\\omega_i = 1 / (i + 1)$ | |
| `heights(offset, d_model)` | | $S(k)$ | |
| `turn(offset)` | (2, 2) | $R(k)$ | |
"""


def turns(d_model):
    return 1 / np.arange(1, d_model // 2 + 1)


def heights(offset, d_model):
    return np.cos(offset * turns(d_model)).sum()


def turn(offset):
    cos, sin = np.cos(offset), np.sin(offset)
    return np.array([[cos, sin], [-sin, cos]])


def cost(seq_len, d_model):
    return 6 * seq_len * d_model**2 + 4 * seq_len**2 * d_model


def weigh(query, key):
    scores = query @ key.T
    return torch.softmax(scores, dim=1), scores


def jacobian(p):
    return torch.diag(p) - torch.outer(p, p)


def causal(seq_len):
    return np.tril(np.ones((seq_len, seq_len), bool))


TABLE = np.arange(60.0).reshape(10, 6)
VARIABLES = {
    **{f.__name__: f for f in (turns, heights, turn, cost, weigh, jacobian)},
    **{
        "causal": causal,
        "seq_len": 10,
        "d_model": 6,
        "table": TABLE,
        "torch": torch,
    },
}


def chapter(*texts, code=()):
    """Return a chapter of Markdown, with code of some tags below it."""
    cells = [new_markdown_cell(text) for text in texts]
    for tag, source in code:
        cells.append(new_code_cell(source, metadata={"tags": [tag]}))
    return Notebook(
        "small.ipynb", new_notebook(cells=cells, metadata=METADATA)
    )


def computed(formula, words=""):
    """Return how many sides of a formula are compared, and the messages."""
    notebook = chapter(NOTATION, f"$${formula}$$\n\n{words}")
    return check_formulas(notebook, VARIABLES)


# Each is true, and not with the second text in the place of the first.
FORMULAS = [
    (r"6 n d^2 + 4 n^2 d \tag{7}", "`cost`", "n d^2", "n^2 d"),
    (r"6 n d^2 + 4 n^2 d \tag{7}", "`cost`", "+", "-"),
    (
        r"(\sin a - \sin b)^2 = \sin^2 a + \sin^2 b - 2 \sin a \sin b",
        "",
        *"-+",
    ),
    (
        r"\frac{1}{9^{2i/d}} = \exp\left(-2i \cdot \frac{\ln 9}{d}\right)",
        "",
        *"29",
    ),
    (r"S(k) = \sum_{i=0}^{d/2-1} \cos \omega_i k", "", "i=0", "i=1"),
    (r"S(k) = \sum_i \cos \omega_i k", "This is `heights`.", r"\cos", r"\sin"),
    (r"d - 2 S(k) = \sum_i 4 \sin^2 \frac{\omega_i k}{2}", "", "4", "2"),
    (r"\sqrt{n^2} = n, \qquad \tfrac12 n \cdot 2 = n", "", "12", "13"),
    (r"\alpha (n + 1) = \alpha n + \alpha", "", "n +", "n -"),
    (r"\min\left(\frac{n}{2}, n + k\right) = n / 2", "", "2", "3"),
    (r"n - \min(n, n + k) = 0", "", "n + k", "n - k"),
    (r"R(a)\, R(b) = R(a + b)", "", "a + b", "a - b"),
    (r"R(-k) = R(k)^{-1} = R(k)^\top", "", "-k", "+k"),
    (r"R(0) = I", "", "0", "1"),
    (
        r"\begin{pmatrix} \cos k & \sin k \\ -\sin k & \cos k \end{pmatrix}"
        r" = R(k)",
        *("", r"-\sin", r"\sin"),
    ),
    (r"(x + a)^\top W y = x^\top W y + a^\top W y", "", "x +", "x -"),
    (r"\mathrm{softmax}(Q K^\top)", "This is `weigh`.", "Q K", "2 Q K"),
    (r"Q K^\top", "This is `weigh`.", "Q", "-Q"),
    (
        r"\frac{\partial p_i}{\partial s_j} = p_i (\delta_{ij} - p_j)",
        *("The Jacobian is `jacobian`.", "- p_j", "+ p_j"),
    ),
    (r"J = \mathrm{diag}(p) - p p^\top", "`jacobian`", "-", "+"),
    (r"M_{ts} = (s \le t)", "This is `causal`.", r"s \le t", r"t \le s"),
    (r"E_{(k, 2i)} = 6 k + 2 i", "", "2 i", "i"),
    (
        r"\sqrt{n^2 + 1} \approx n",
        *("Nearly.<!-- within 0.1 where seq_len=50 -->", "1", "99"),
    ),
    (
        r"\begin{cases} i & i \text{ even} \\ i - 1 & i \text{ odd}"
        r" \end{cases} = i - \tfrac12 + \tfrac12 \cos \pi i",
        *("", "i - 1", "i + 1"),
    ),
]


@pytest.mark.parametrize(("formula", "words", "old", "new"), FORMULAS)
def test_formula_that_lies_is_rejected(formula, words, old, new):
    sides, messages = computed(formula, words)
    assert sides > 1 and not messages, messages
    assert old in formula
    _, messages = computed(formula.replace(old, new, 1), words)
    assert messages, formula.replace(old, new, 1)
    assert messages[0].startswith("small.ipynb, cell 2")
    assert "Correct the formula" in messages[0]


@pytest.mark.parametrize(
    "formula",
    [
        r"\int_0^1 x\, dx = 3",
        r"f(k) = f(2 k)",
        r"Y = X E, \qquad b = 3",
        r"\mathrm{Var}(q) = n",
        r"w_j = e^{s_j}",
        r"p_s = p_s^2",
        r"n \approx n + 1",
        r"x = (1, 2, \dots)",
    ],
)
def test_formula_that_cannot_be_computed_is_left_out(formula):
    assert computed(formula) == (0, [])


def test_function_that_takes_what_no_letter_is_is_left_out():
    assert computed("2 n", "It is the heart of `jacobian`.") == (0, [])


@pytest.mark.parametrize(
    ("law", "old", "new"),
    [
        (r"S(-k) = S(k)", "S(k)", "2 S(k)"),
        (r"4 \cdot 8^2 = 256", "256", "265"),
        (r"e^{-\infty} = 0", "-", ""),
    ],
)
def test_law_within_a_line_that_lies_is_rejected(law, old, new):
    text = "Here `$2` is code, $k$ is any and ${}$ is a law."
    notebook = chapter(NOTATION, text.replace("{}", law))
    assert check_formulas(notebook, VARIABLES) == (2, [])
    assert old in law
    slipped = chapter(NOTATION, text.replace("{}", law.replace(old, new)))
    _, (message,) = check_formulas(slipped, VARIABLES)
    assert message.startswith("small.ipynb, cell 2 ('Here `$2`")
    assert "Correct the formula" in message


@pytest.mark.parametrize("condition", ["k = 2 n", "n^2 = d_{model}", "2 = d"])
def test_condition_within_a_line_is_left_out(condition):
    notebook = chapter(NOTATION, f"That holds only for ${condition}$.")
    assert check_formulas(notebook, VARIABLES) == (0, [])


def test_formula_says_its_number():
    _, (message,) = computed(r"6 n d^2 \tag{7}", "This is `cost`.")
    assert message.startswith("small.ipynb, cell 2 ('$$6 n d^2")
    assert "'), equation (7): 6nd^2 is " in message


@pytest.mark.parametrize(("factor", "lies"), [("4", False), ("5", True)])
def test_formula_of_the_function_in_the_next_cell_is_computed(factor, lies):
    formula = f"$$6 n d^2 + {factor} n^2 d$$"
    cost = [("pytorch", "def cost(seq_len, d_model):\n    ...")]
    notebook = chapter(NOTATION, formula, code=cost)
    sides, messages = check_formulas(notebook, VARIABLES)
    assert sides == 2 and bool(messages) == lies


def test_formula_of_the_summary_is_computed():
    row = "| equation | function |\n|---|---|\n| $6 n d^2$ | `cost` |"
    _, (message,) = check_formulas(chapter(NOTATION, row), VARIABLES)
    assert "small.ipynb, cell 2" in message and "`cost` is" in message


OTHER = {"+": "-", "-": "+", r"\sin": r"\cos ", r"\cos": r"\sin "}
OTHER |= {r"\le": r"\ge ", r"\ln": r"\exp ", r"\exp": r"\ln "}


def altered(formula):
    """Yield a formula with one sign, function or digit changed.

    Not to the left of its first =, where it may only be a name.
    """
    name = formula.rpartition("=")[0] and formula.partition("=")[0]
    formula = re.sub(r"[^=]*\\int[^=]*", r"\\int", formula)  # is not read
    for match in re.finditer(r"\\[a-z]+|[-+]|\d", formula.split(r"\tag")[0]):
        token, (start, end) = match.group(), match.span()
        new = OTHER.get(token)
        if token.isdigit():
            new = "5" if token == "0" else str(int(token) + 1)
        if new and start >= len(name):
            yield f"{formula[:start]}{new}{formula[end:]}"


def edited(notebook, old, new):
    """Return a chapter with other words in its only cell that has some."""
    node = copy.deepcopy(notebook.node)
    (cell,) = (cell for cell in node.cells if old in cell.source)
    cell.source = cell.source.replace(old, new)
    return Notebook(notebook.path, node)


@pytest.mark.parametrize(
    ("formula", "words", "expected"),
    [
        (r"Y = f(k) \tag{3}", "", "equation (3) is not computed (f)"),
        (r"6 n d^2 \tag{3}", "It is lost.", "(nothing to compare with)"),
        (r"\int_0^1 x\, dx \tag{3}", "`cost`", r"computed (\int)"),
        (r"Q K = K Q \tag{3}", "", "computed (ValueError: "),
        (r"d - d = 0 \tag{3}", "<!-- not computed -->", "computed: remove"),
    ],
)
def test_numbered_equation_is_computed_or_says_that_it_is_not(
    formula, words, expected
):
    _, (message,) = computed(formula, words)
    assert expected in message
    if "remove" not in message:
        assert computed(formula, f"{words}<!-- not computed -->") == (0, [])


@frameworks
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("attention", "6 n d^2 + 4 n^2 d", "6 n^2 d + 4 n d^2"),
        ("multi_head_attention", "8 n d^2 + 4", "8 n d^2 - 4"),
        ("position_similarity", "R(-k) = R(k)^{-1}", "R(k) = R(k)^{-1}"),
        (
            "position_similarity",
            "1 - \\frac{\\ln k + ",
            "1 - \\frac{\\ln k - ",
        ),
        ("position_similarity", "{Ci}(k) - ", "{Ci}(k) + "),
        ("attention", "32^2 = 65536", "32^2 = 65563"),
        ("training", "\\sqrt{4^2} = 1", "\\sqrt{4^2} = 2"),
        ("masks", "(s \\le t) \\tag", "(t \\le s) \\tag"),
        ("masks", "| `attention_mask=both`", "| `attention_mask=~both`"),
        ("masks", "`mask=both[:, None]`", "`mask=both[:, :, None]`"),
        ("masks", "key_mask[:, None, :]` |", "key_mask[:, :, None]` |"),
        ("masks", "| `is_causal=True`", "| `causal=True`"),
        ("attention", "`keras.layers.Dense` |", "`keras.layers.Dens` |"),
    ],
)
def test_slip_in_a_chapter_of_the_book(chapter_run, name, old, new):
    run = chapter_run(name)
    slipped = edited(run.notebook, old, new)
    _, messages = check_formulas(slipped, run.namespace)
    messages += check_tables(slipped, run.namespace)
    assert messages and f"book/{name}.ipynb, cell" in messages[0]


@frameworks
@pytest.mark.parametrize("name", [path.stem for path in paths()])
def test_changed_formula_of_the_book(chapter_run, name):
    """What is computed is rejected with a change, or no longer computed."""
    run = chapter_run(name)
    letters, tried, survived = Letters(run.notebook), 0, []

    def compared(formula, words, function):
        if function and function.__name__ in str(letters.calls):
            function = None
        return [
            compare(sides, function, words, letters, run.namespace)[:2]
            for sides in tex.equations(formula)
        ]

    for place, formula, *below in formulas_of(run.notebook, run.namespace):
        before = compared(formula, *below)
        for other in altered(formula) if any(n for n, _ in before) else ():
            tried += 1
            if compared(other, *below) == before:
                survived.append((place, formula, other))
    assert not survived
    assert tried or name in ("embedding", "testing")  # whose are marked


# Tables

GIVES = "<!-- (lambda mask: {})(%s).tolist() == words -->"
CONVERTERS = (
    "| you have | you write |\n|---|---|\n"
    f"| ones for pads{GIVES % 'np.array([0, 0, 1])'} | `mask == 0` |\n"
    f"| ones for words{GIVES % 'np.array([1, 1, 0])'} | `mask == 1` |\n"
)
SUMMARY = (
    "| equation | function | PyTorch | Keras |\n|---|---|---|---|\n"
    "| $(1)$ | `cost` | `torch.sum`, `dim` | `axis=True`; KerasHub `Cost` |\n"
)
CODE = [("pytorch", "x.sum(dim=0)"), ("tensorflow", "tf.sum(x, axis=0)")]


def messages_of(table):
    libraries = {"np": np, "torch": np, "tf": np}
    namespace = VARIABLES | libraries | {"words": [True, True, False]}
    return check_tables(chapter(table, code=CODE), namespace)


@pytest.mark.parametrize("table", [CONVERTERS, SUMMARY, NOTATION])
def test_true_table_passes(table):
    assert not messages_of(table)


@pytest.mark.parametrize(
    ("table", "old", "new", "expected"),
    [
        (
            CONVERTERS,
            "== 1",
            "== 0",
            "'ones for words': (lambda mask: mask ==",
        ),
        (CONVERTERS, "`mask == 0`", "`mask = 0`", "raises SyntaxError"),
        (
            CONVERTERS,
            GIVES % "np.array([0, 0, 1])",
            "",
            "nothing computes mask",
        ),
        (SUMMARY, "`cost`", "`costs`", "names costs under function"),
        (SUMMARY, "`dim`", "`axis`", "names axis under PyTorch"),
        (SUMMARY, "`axis=True`", "`tf.nosuch`", "names tf.nosuch under Keras"),
        (SUMMARY, "`torch.sum`", "`tf.sum`", "names tf.sum under PyTorch"),
    ],
)
def test_table_that_lies_is_rejected(table, old, new, expected):
    assert old in table
    (message,) = messages_of(table.replace(old, new))
    assert message.startswith("small.ipynb, cell 1") and expected in message
    assert "Correct the" in message


def test_rows_exchanged_are_rejected():
    exchanged = CONVERTERS.replace("== 0", "== x").replace("== 1", "== 0")
    assert len(messages_of(exchanged.replace("== x", "== 1"))) == 2


def test_table_of_code_that_nothing_computes_is_rejected():
    bare = re.sub("<!--.*?-->", "", CONVERTERS)
    assert len(messages_of(bare)) == 2


# Calls


@pytest.fixture(scope="module")
def libraries():
    """The frameworks, under the names that the book has for them."""
    import keras
    import torch
    from torch import nn
    from torch.nn import functional as F

    return {"keras": keras, "torch": torch, "nn": nn, "F": F}


@frameworks
@pytest.mark.parametrize(
    "call",
    [
        "F.scaled_dot_product_attention(query, key, value, scale=1.0)",
        "keras.layers.MultiHeadAttention()(query, value, key)",
        "keras.layers.MultiHeadAttention(4, key_dim=8)",
        "MultiHeadAttention()(..., attention_mask)",
        "nn.MultiheadAttention()(..., key_padding_mask=mask)",
        "Embedding(mask_zero=True)",
        "nobody(knows=it)",
        "torch.equal(first, second)",
    ],
)
def test_true_call_passes(libraries, call):
    assert not check_calls(f"See `{call}`.", libraries)


@frameworks
@pytest.mark.parametrize(
    ("call", "takes"),
    [
        (
            "F.scaled_dot_product_attention(query, value, key)",
            "query, key, value",
        ),
        ("F.scaled_dot_product_attention(..., mask=m)", "attn_mask"),
        ("keras.layers.MultiHeadAttention()(query, key, value)", "value, key"),
        ("keras.layers.MultiHeadAttention(4, key_dims=8)", "key_dim"),
        ("MultiHeadAttention()(..., attn_mask)", "attention_mask"),
        ("nn.MultiheadAttention()(query, value, key)", "query, key, value"),
        ("Embedding(zero_mask=True)", "padding_idx"),
    ],
)
def test_call_that_its_function_refuses_is_rejected(libraries, call, takes):
    (message,) = check_calls(f"See `{call}`.", libraries)
    assert message.startswith(f"`{call}`: ") and takes in message
    assert "Correct the name, or the order." in message


ORDERS = {
    "PyTorch": "query, key, value",
    "Keras": "query, value, key",
    "keras.layers.Attention": "query, value, key",
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Keras' is query, key, value.", "Keras"),
        ("PyTorch's order is *query*, value, key;", "PyTorch"),
        (
            "`keras.layers.Attention`, in the order value, query, key.",
            "keras.layers.Attention",
        ),
    ],
)
def test_order_of_arguments_that_is_another_is_rejected(text, name):
    (message,) = check_orders(text, ORDERS)
    assert f"for {name}, whose order is {ORDERS[name]}. Correct" in message


def test_true_order_of_arguments_passes():
    text = (
        "PyTorch's order is query, key, value; Keras' is query, *value*, key."
    )
    assert not check_orders(text, ORDERS)


LAYOUTS = {"PyTorch": "(out, in)", "Keras": "(in, out)"}


@pytest.mark.parametrize(
    "text",
    [
        "Keras stores it as it is; PyTorch the transpose, (out, in).",
        "PyTorch as (out, in), so it is transposed, and Keras as (in, out).",
        "The first row in PyTorch is a column in Keras: (out, in), (in, out).",
        "PyTorch has it.\nFour matrices, (in, out).",
    ],
)
def test_layout_of_weights_that_is_another_is_rejected(text):
    assert not check_layouts(text, LAYOUTS)
    names = {"PyTorch": "Keras", "Keras": "PyTorch"}
    other = re.sub("PyTorch|Keras", lambda name: names[name[0]], text)
    found = check_layouts(other, LAYOUTS)
    assert bool(found) == (";" in text or " so " in text)
    assert all("which stores (" in m and "Correct it." in m for m in found)
