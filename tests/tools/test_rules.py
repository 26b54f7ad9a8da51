"""The rules: a small chapter with one fault is rejected.

The message names the place and says what to do. Ordinary sentences pass.
"""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tools.commands import outputs
from tools.notebooks import Notebook
from tools.rules import RULES, stored
from tools.rules.book import one_name_one_body
from tools.rules.tables import unknown_names
from tools.run.chapter import Run
from tools.settings import slug

PAPER = "https://arxiv.org/abs/1706.03762"


def put(text):
    """Return what adds a text to the chapter's second text cell."""

    def change(notebook):
        notebook.markdown[1].source += f"\n\n{text}"

    return change


def source(number, text):
    """Return what writes other code into the cell that messages call [n]."""

    def change(notebook):
        notebook.code[number - 1].source = text

    return change


def swap(old, new):
    """Return what puts new words for old ones, wherever they stand."""

    def change(notebook):
        assert any(old in cell.source for cell in notebook.cells)
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)

    return change


def output(kind, **content):
    """Return what adds an output to cell [2]."""

    def change(notebook):
        notebook.code[1].outputs.append(new_output(kind, **content))

    return change


def shows(mime, content):
    return output("display_data", data={mime: content})


def update(number, **fields):
    """Return what sets fields of a code cell."""
    return lambda notebook: notebook.code[number - 1].update(**fields)


def metadata(number, **fields):
    """Return what sets metadata of a code cell."""
    return lambda nb: nb.code[number - 1].metadata.update(**fields)


def insert(place, *cells):
    """Return what puts cells before the code cell that messages call [n]."""

    def change(notebook):
        number = notebook.cells.index(notebook.code[place - 1])
        notebook.cells[number:number] = cells
        del notebook.code  # which is kept

    return change


def remove(number):
    """Return what removes a cell by its place."""

    def change(notebook):
        del notebook.cells[number], notebook.code

    return change


def kernel(notebook):
    notebook.node.metadata.update(kernelspec={"name": "conda"})


def aside(notebook):
    """Define a name in a side road, and use it on the main road."""
    insert(2, ROAD, new_code_cell("aside = 1"), AFTER)(notebook)
    source(3, f"{X}aside")(notebook)


X = "x = [1, 2, 3]  # (T,)\n"
ROAD = new_markdown_cell("## Side road: more\n\nFirst.\n\n### In it\n\nMore.")
AFTER = new_markdown_cell("## Main again")
SCRIPTS = [
    "<script defer src=//example.org/a.js></script>",
    "<p style='background: url(//example.org/a.png)'></p>",
    '<script>fetch("https://example.org/a")</script>',
    "<script>new WebSocket('wss://example.org')</script>",
]
RAW = [":::{note}\nRead.\n:::", "See {ref}`there`.", "(there)=", "% hidden"]
RAW += ["$$x$$ (there)", "It is {{ x }}.", "So it is [^a].", "[](small.ipynb)"]
RAW += ["\\begin{align}x\\end{align}"]
EDITS = ["key_mask[0, 1:] &= x", "attention_mask |= key_mask"]
EDITS += ["causal_mask[0].fill_(False)", "layer.mask[0] = False"]
EDITS += ["mask_tf.assign(x)"]
ALT = {"image": {"alt": "Figure 1"}}
FAULTS = [  # how it is made, what the message says
    # The file
    (update(2, execution_count=9), "[2]: edited and not run", "make outputs"),
    (update(2, execution_count=None), "[2]: edited and not run"),
    (output("stream", name="stderr", text="a"), "[2]", "stderr", "make"),
    (output("error", ename="E", evalue="", traceback=[]), "stores an error"),
    (shows("text/plain", "<a at 0x7f3a5c>"), "[2]", "0x7f3a5c"),
    (shows("text/plain", "1\n" * 13), "[2]", "over 12 lines"),
    (shows("text/plain", "[1., -0.]"), "[2]", "-0.", "add 0.0"),
    (shows("text/plain", "2916.3963"), "2916.3963", "round"),
    (shows("image/jpeg", "a"), "[2]", "jpeg", "PNG"),
    (shows("text/plain", "[Text(0, 0)]"), "[2]", "matplotlib"),
    (metadata(2, outputId="1"), "[2]", "another program", "make outputs"),
    (metadata(2, tags=["raises-exception"]), "raises-exception"),
    (kernel, "small.ipynb: edited", "another program", "make outputs NB="),
    *((shows("text/html", text), "another host") for text in SCRIPTS),
    (put("![A](https://example.org/a.png)"), "cell 2", "another host"),
    (put('<iframe src="https://example.org">'), "cell 2", "another host"),
    # Figures
    (metadata(6, mystnb={}), "[6]", "no alt text", "mystnb"),
    (metadata(6, mystnb=ALT), "[6]", "no alt text", "20 characters"),
    # The text
    *((put(text), "cell 2", "show raw") for text in RAW),
    (put("It has 13 rows."), "cell 2", "stands in no cell beside"),
    (swap("## Summary", "## Sums"), "sections should stand as"),
    (swap("## Exercises", "## Setup"), "sections should stand as"),
    (put("# Another"), "begins with its one title"),
    (swap("# Small", "Small"), "begins with its one title"),
    (put("#### Deep"), "headings of two levels more"),
    (put("## More"), "cell 2", "can collapse it"),
    (swap("## Setup", "So:\n\n## Setup"), "can collapse it"),
    (swap("same.", "same" + 6500 * " word"), "takes 5", "### Side road"),
    (aside, "[3]", "uses 'aside', which only a side road defines"),
    # Links
    (put(f"[a]({PAPER[:-1]}3)"), "cell 2", "List it", "correct"),
    (swap(slug(), "some/other"), "cell 1", "make repository SLUG="),
    # Code
    (source(2, "x = torch.rand(3)  # (T,)"), "without a seed"),
    (swap("return 2 * x", "return factor * x"), "[3]", "the global factor"),
    # Shapes
    (source(2, "x = [1]  # (V,)\nx"), "['V']", "Notation"),
    (source(2, "y = x.reshape(3)"), "calls reshape", "(B, T, D)"),
    (swap("(B, S)", "(B, T)"), "of key_mask", "(B, S)"),
    (swap("| D |", "| K |"), "K of d_model", "notation.md D"),
    (swap("`d_model`", "`width`"), "has width, which no code"),
    # Masks
    *((source(2, X + edit), f"{edit} edits a mask") for edit in EDITS),
    # Twins
    (remove(9), "[3]", "has to stand right below"),
    (metadata(3, tags=[]), "[4]", "has to stand right above"),
    (swap("x + x", "twice(x)"), "[4]", "twice, which only a pytorch cell"),
    (swap("twice_tf", "double"), "to be called twice_tf"),
    (swap('"""Twice."""\n    return x', "return x"), "different docstrings"),
    (swap("2 * x", "tf.shape(x)"), "tf. in a pytorch cell"),
    (swap("x + x", "nn.Relu(x)"), "nn. in a tensorflow cell"),
    (source(5, "math.pi"), "PyTorch and TensorFlow give the"),
    # Exercises
    (swap(" (easy, 5 minutes)", ""), "cell 19", "headed as in"),
    (swap("Exercise 1", "Exercise 2"), "are numbered [2]"),
    (swap("<details>", "<p>"), "cell 19", "no hint"),
    (swap("# @title Sol", "# @title S"), "no solution"),
    (metadata(7, cellView=None), "[7]", "in some places only"),
]


@pytest.mark.parametrize(
    ("change", "expected"), [(change, said) for change, *said in FAULTS]
)
def test_fault_is_rejected(notebook, change, expected):
    change(notebook)
    found = [message for rule in RULES for message in rule(notebook)]
    assert any(all(e in m for e in expected) for m in found), found


def test_every_rule_has_a_fault_that_it_finds(small_notebook):
    silent = set(RULES)
    for change, *_ in FAULTS:
        notebook = small_notebook("small.ipynb")
        change(notebook)
        silent -= {rule for rule in silent if list(rule(notebook))}
    assert not silent


def test_a_file_that_is_laid_out_otherwise_is_rejected(notebook):
    text = notebook.path.read_text("utf-8")
    notebook.path.write_text(text.replace("\n", "\n "), "utf-8")
    [message] = stored.file_is_as_it_was_stored(notebook)
    assert "small.ipynb: edited" in message and "make outputs NB=" in message


def test_the_small_notebook_passes(notebook):
    assert [message for rule in RULES for message in rule(notebook)] == []
    assert Run(notebook).finish().messages == []


@pytest.mark.parametrize(
    "text",
    [
        "[cosine](https://dlmf.nist.gov/6), <https://a.org>.",
        "Three rules:\n\n- One.\n- The\n  other.",
        "| mistake | shape |\n|---|---|\n| a | caught |\n| b | caught |",
        "It drops `0.1` of them, or $10^{-9}$.",
    ],
)
def test_an_ordinary_sentence_passes(notebook, text):
    put(text)(notebook)
    drawing = "createElementNS('http://www.w3.org/2000/svg', 'g')"
    shows("text/html", f"<script>{drawing}; // 4 // 2</script>")(notebook)
    outputs.write(notebook)
    assert [message for rule in RULES for message in rule(notebook)] == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2, f"{X}scores[mask] = 0"),
        (2, f"{X}masks[0] = x"),
        (2, f"{X}mask.float().mul_(-1)"),
        # Under "Wrong on purpose", to show the mistake.
        (6, "mask = x\nmask[0] = False"),
    ],
)
def test_code_that_only_looks_like_a_fault_passes(notebook, number, text):
    source(number, text)(notebook)
    outputs.write(notebook)
    assert [message for rule in RULES for message in rule(notebook)] == []


# The book as a whole


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("def f():\n    return 1", "def f():\n    return 2", "f"),
        ("def f():\n    return 1", "def f():  # one\n    return 1", "f"),
        ('DRAW = """draw()"""', 'DRAW = """erase()"""', "DRAW"),
        ('draw = """draw()"""', 'draw = """erase()"""', None),
        ("def f():\n    return 1", "def f():\n    return 1", None),
    ],
)
def test_name_with_two_bodies_is_rejected(small_notebook, one, other, name):
    books = [small_notebook(f"{stem}.ipynb") for stem in "ab"]
    for book, code in zip(books, (one, other), strict=True):
        source(2, code)(book)
    found = [*one_name_one_body(books)]
    assert len(found) == bool(name)
    for message in found:
        assert f"b.ipynb [2]: {name} differs from the one in" in message
        assert "a.ipynb [2]" in message and "name of its own" in message


def test_name_on_a_page_that_no_code_has_is_rejected(notebook, tmp_path):
    table = "| in code | in formulas |\n|---|---|\n| `d_model`, `wide` | $x$ |"
    page = tmp_path / "small.md"
    page.write_text(f"# Small\n\nA page.\n\n## More\n\n{table}\n")
    (message,) = unknown_names(Notebook.page(page), [notebook])
    assert "section 2" in message and "has wide, which no code" in message
