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


X = "x = [1, 2, 3]  # (T,)\n"
ROAD = new_markdown_cell("## Side road: more\n\nFirst.\n\n### In it\n\nMore.")
FAULTS = [  # what it is, how it is made, what the message says
    # The file
    ("not run", update(2, execution_count=9), "[2]", "not executed", "make"),
    ("cleared", update(2, execution_count=None), "[2]", "were cleared"),
    (
        "stderr",
        output("stream", name="stderr", text="warning"),
        *("[2]", "stderr", "make outputs NB="),
    ),
    (
        "an error",
        output("error", ename="E", evalue="", traceback=[]),
        *("[2]", "stores an error", "make outputs NB="),
    ),
    ("an address", shows("text/plain", "<a at 0x7f3a5c>"), "[2]", "0x7f3a5c"),
    ("a long output", shows("text/plain", "1\n" * 13), "[2]", "over 12 lines"),
    ("-0.", shows("text/plain", "[1., -0.]"), "[2]", "-0.", "add 0.0"),
    ("eight digits", shows("text/plain", "2916.3963"), "2916.3963", "round"),
    ("SVG", shows("image/svg+xml", "<svg/>"), "[2]", "svg+xml", "PNG"),
    ("a text object", shows("text/plain", "[Text(0, 0)]"), "[2]", "matplot"),
    ("Colab's metadata", metadata(2, outputId="1"), "[2]", "outputId", "make"),
    ("a tag", metadata(2, tags=["raises-exception"]), "raises-exception"),
    (
        "another kernel",
        lambda nb: nb.node.metadata.update(kernelspec={"name": "conda"}),
        *("small.ipynb", "metadata", "make outputs NB="),
    ),
    *(
        (f"from elsewhere: {text}", shows("text/html", text), "another host")
        for text in (
            "<script defer src=//example.org/a.js></script>",
            "<p style='background: url(//example.org/a.png)'></p>",
            '<script>fetch("https://example.org/a")</script>',
            "<script>new WebSocket('wss://example.org')</script>",
        )
    ),
    ("a picture", put("![A](https://example.org/a.png)"), "cell 2", "host"),
    ("a frame", put('<iframe src="https://example.org">'), "cell 2", "host"),
    # Figures
    ("no alt text", metadata(6, mystnb={}), "[6]", "no alt text", "mystnb"),
    (
        "a short alt text",
        metadata(6, mystnb={"image": {"alt": "Figure 1"}}),
        *("[6]", "no alt text", "20 characters"),
    ),
    # The text
    *(
        (f"shown raw: {text}", put(text), "cell 2", "show raw")
        for text in (
            ":::{note}\nRead.\n:::",
            "See {ref}`there`.",
            "(there)=",
            "$$x$$ (there)",
            "It is {{ x }}.",
            "So it is [^a].",
            "See [](small.ipynb).",
            "\\begin{align}x\\end{align}",
            "% hidden",
        )
    ),
    ("a number", put("It has 13 rows."), "cell 2", "stands in no cell beside"),
    ("no section", swap("## Summary", "## Sums"), "should stand as"),
    (
        "sections in another order",
        lambda nb: [
            swap("## Setup", "## X")(nb),
            swap("## Summary", "## Setup")(nb),
            swap("## X", "## Summary")(nb),
        ],
        "should stand as",
    ),
    ("two titles", put("# Another"), "begins with its one title"),
    ("no title", swap("# Small", "Small"), "begins with its one title"),
    ("a deep heading", put("#### Deep"), "headings of two levels more"),
    ("a heading in a cell", put("## More"), "cell 2", "can collapse it"),
    ("words before it", swap("## Setup", "So:\n\n## Setup"), "can collapse"),
    (
        "a long road",
        put(6500 * "word "),
        "takes 56.3 minutes",
        "### Side road",
    ),
    (
        "a name from a side road",
        lambda nb: [
            insert(
                *(2, ROAD, new_code_cell("aside = 1")),
                new_markdown_cell("## Main again"),
            )(nb),
            source(3, f"{X}aside")(nb),
        ],
        *("[3]", "uses 'aside', which only a side road defines"),
    ),
    # Links
    ("an unlisted link", put(f"[a]({PAPER[:-1]}3)"), "List it", "correct"),
    ("Colab", swap(slug(), "some/other"), "cell 1", "make repository SLUG="),
    # Code
    ("no seed", source(2, "x = torch.rand(3)  # (T,)"), "without a seed"),
    (
        "a global",
        swap("return 2 * x", "return factor * x"),
        *("[3]", "reads the global factor"),
    ),
    # Shapes
    ("not listed", source(2, "x = [1]  # (V,)\nx"), "['V']", "Notation"),
    ("a reshape", source(2, "y = x.reshape(3)"), "calls reshape", "(B, T, D)"),
    ("another shape", swap("(B, S)", "(B, T)"), "of key_mask", "(B, S)"),
    (
        "another letter",
        swap("| D |", "| K |"),
        "K of d_model",
        "notation.md D",
    ),
    ("a stranger", swap("`d_model`", "`width`"), "has width, which no code"),
    # Masks
    *(
        (edit, source(2, f"{X}{edit}"), "[2]", f"{edit} edits a mask in place")
        for edit in (
            "key_mask[0, 1:] &= x",
            "attention_mask |= key_mask",
            "causal_mask[0].fill_(False)",
            "layer.mask[0] = False",
            "mask_tf.assign(x)",
        )
    ),
    # Twins
    ("no twin below", remove(9), "[3]", "has to stand right below"),
    ("no twin above", metadata(3, tags=[]), "[4]", "stand right above"),
    ("a twin's name", swap("twice_tf", "double"), "to be called twice_tf"),
    (
        "a twin's docstring",
        lambda nb: source(4, nb.code[3].source.replace("Twice", "2"))(nb),
        *("[4]", "different docstrings"),
    ),
    ("TensorFlow", swap("2 * x", "tf.shape(x)"), "tf. in a pytorch cell"),
    ("PyTorch", swap("x + x", "nn.Relu(x)"), "nn. in a tensorflow cell"),
    ("never equal", source(5, "math.pi"), "PyTorch and TensorFlow give the"),
    # Exercises
    ("its heading", swap(" (easy, 5 minutes)", ""), "cell 19", "headed as in"),
    ("its number", swap("Exercise 1", "Exercise 2"), "are numbered [2]"),
    ("no hint", swap("<details>", "<p>"), "cell 19", "no hint"),
    ("no solution", swap("# @title Sol", "# @title S"), "no solution"),
    ("not folded", metadata(7, cellView=None), "[7]", "in some places only"),
]


@pytest.mark.parametrize(
    ("change", "expected"),
    [pytest.param(f[1], f[2:], id=f[0].replace("\n", " ")) for f in FAULTS],
)
def test_fault_is_rejected(notebook, change, expected):
    change(notebook)
    found = [message for rule in RULES for message in rule(notebook)]
    assert any(all(e in m for e in expected) for m in found), found


def test_every_rule_has_a_fault_that_it_finds(small_notebook, tmp_path):
    silent = set(RULES)
    for _, change, *_ in FAULTS:
        notebook = small_notebook("small.ipynb")
        change(notebook)
        silent -= {rule for rule in silent if list(rule(notebook))}
    assert silent == {stored.file_is_as_written}
    notebook.path.write_text("{}")  # laid out by another program
    (message,) = stored.file_is_as_written(notebook)
    assert "make outputs NB=" in message


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
