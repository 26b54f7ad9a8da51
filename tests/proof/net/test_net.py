"""Show for each fault that a notebook with it is rejected, and how.

Every test takes a small notebook that passes, puts one fault into it, and
asks that the message names the place and says what to do.
"""

import base64
import copy
import io
import json
import math
import os
import re
import stat
import subprocess
import sys

import nbformat
import pytest
from matplotlib.figure import Figure
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)

from tools.commands import outputs
from tools.net import compare, rules, shapes
from tools.net.claims import check_claims
from tools.net.rules import RULES, citations, links, numbers, stored
from tools.net.rules.book import (
    files_not_built,
    one_name_one_body,
    one_thing_one_name,
    shapes_said_once,
)
from tools.net.rules.pages import (
    PROSE,
    checks_elsewhere,
    other_topics,
    same_place,
    unknown_names,
    without_twins,
)
from tools.net.run import run
from tools.net.words import HUES, is_called
from tools.notebooks import FOLDED, METADATA, Notebook, NotebookError
from tools.settings import BOOK, ROOT, colab_link, slug

ALT = {"mystnb": {"image": {"alt": "A line that rises from left to right."}}}
PNG = (  # one white pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+i"
    "p1sAAAAASUVORK5CYII="
)


def code(source, *results, **metadata):
    """Return an executed code cell; the count is set by `small_notebook`."""
    return new_code_cell(source, outputs=list(results), metadata=metadata)


def value(text):
    return new_output("execute_result", {"text/plain": text})


def figure(png=PNG):
    words = "<IPython.core.display.Image object>"
    data = {"image/png": png, "text/plain": words}
    return new_output("display_data", data)


CELLS = [  # texts as they are
    "# Small\n\nWhat is missing?\n\n[Open in Colab](COLAB)",
    "## What you will be able to do\n\nRead it.",
    "## Notation\n\nSee the [setup](#setup).\n\n"
    "| in code | letter in shapes | in formulas | size here |\n"
    "|---|---|---|---|\n"
    "| | T | | 3<!--= len(x) --> |\n| | S | | 4<!--= len(x) + 1 --> |\n"
    "| `d_model` | D | $d_{model}$ | as needed |\n| `key_mask` | (B, S) | | |",
    "## Setup\n\nOne import.",
    code("import math\n\nd_model, key_mask = 3, [[True]]"),
    "A list of **numbers**.",
    code("x = [1, 2, 3]  # (T,)\nx", value("[1, 2, 3]")),
    "Twice as much:\n\n$$2 x \\tag{1}$$",
    code(
        'def twice(x):\n    """Twice."""\n    return 2 * x', tags=["pytorch"]
    ),
    code(
        'def twice_tf(x):\n    """Twice."""\n    return x + x',
        tags=["tensorflow"],
    ),
    "It has 3<!--= len(x) --> numbers.",
    "## Against the libraries\n\nThe same.",
    code("assert twice(x) == twice_tf(x)\nround(math.pi, 4)", value("3.1416")),
    "## Wrong on purpose\n\nA picture.",
    code("x", value("[1, 2, 3]"), figure(), **ALT),
    "## Summary\n\nIt is done.\n\n| equation | function | PyTorch |\n"
    "|---|---|---|\n| $(1)$ | `twice` | `math.pi` |",
    "## Exercises\n\n### Exercise 1: more (easy, 5 minutes)\n\n"
    "<details><summary>Hint</summary>Read y.</details>",
    code("# @title Solution\ny = 4  # ()", **FOLDED),
    "## Further reading\n\n- [Setup](#setup), to begin again.",
]


def small_notebook(path):
    """Return a chapter of a few cells that passes every check."""
    cells = [
        new_markdown_cell(cell.replace("COLAB", colab_link(path)))
        if isinstance(cell, str)
        else copy.deepcopy(cell)
        for cell in CELLS
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    node = new_notebook(cells=cells, metadata=METADATA)
    node.nbformat_minor = 5
    notebook = Notebook(path, node)
    for number, cell in enumerate(notebook.code, 1):
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    return notebook


@pytest.fixture
def notebook(tmp_path):
    notebook = small_notebook(tmp_path / "small.ipynb")
    nbformat.write(notebook.node, notebook.path)
    return notebook


def messages(notebook):
    return [m for check in RULES for m in check(notebook)]


def test_the_small_notebook_passes(notebook):
    assert messages(notebook) == []
    assert run(notebook).messages == []


def fault(*expected):
    """Register a function that puts a fault into the small notebook."""

    def register(function):
        FAULTS.append(pytest.param(function, expected, id=function.__name__))
        return function

    return register


FAULTS = []


@fault("small.ipynb [2]", "edited and not executed", "make outputs NB=")
def edited_and_not_executed(notebook):
    notebook.code[1].execution_count = 9


@fault("small.ipynb [2]", "its outputs were cleared", "make outputs NB=")
def outputs_cleared(notebook):
    notebook.code[1].update(outputs=[], execution_count=None)


@fault("small.ipynb [2]", "stderr", "make outputs NB=")
def stderr_stored(notebook):
    noise = new_output("stream", name="stderr", text="warning")
    notebook.code[1].outputs.append(noise)


@fault("small.ipynb [2]", "stores an error", "make outputs NB=")
def error_stored(notebook):
    error = new_output("error", ename="NameError", evalue="", traceback=[])
    notebook.code[1].outputs.append(error)


@fault("small.ipynb [2]", "at 0x7f3a5c", "no other run prints")
def address_printed(notebook):
    notebook.code[1].outputs = [value("<object at 0x7f3a5c>")]


@fault("small.ipynb [2]", "over 12 lines")
def output_too_long(notebook):
    notebook.code[1].outputs = [value("1\n" * 13)]


@fault("small.ipynb [2]", "-0.", "add 0.0")
def negative_zero(notebook):
    notebook.code[1].outputs = [value("[1., -0.]")]


@fault("small.ipynb [2]", "2916.3963", "round", "make outputs NB=")
def digits_that_are_not_compared(notebook):
    notebook.code[1].outputs = [value("[0.0123, 2916.3963]")]


@fault("small.ipynb [2]", "image/svg+xml", "PNG")
def figure_of_another_kind(notebook):
    svg = new_output("display_data", {"image/svg+xml": "<svg/>"})
    notebook.code[1].outputs.append(svg)


def html(text):
    return new_output("display_data", {"text/html": text})


for name, text in {
    "script": "<script src='https://example.org/a.js'></script>",
    "unquoted_script": "<script defer src=//example.org/a.js></script>",
    "style": '<link rel="stylesheet" href="http://example.org/a.css">',
    "import_of_style": "<style>@import '//example.org/a.css';</style>",
    "background": "<p style='background: url(//example.org/a.png)'></p>",
    "module": "<script>import('https://example.org/a.js')</script>",
    "request": '<script>fetch("https://example.org/a")</script>',
    "socket": "<script>new WebSocket('wss://example.org')</script>",
}.items():
    FAULTS.append(
        pytest.param(
            lambda notebook, text=text: notebook.code[1].outputs.append(
                html(text)
            ),
            ("small.ipynb [2]", "another host"),
            id=f"{name}_from_elsewhere",
        )
    )


@fault("cell 2", "another host")
def picture_from_elsewhere(notebook):
    put(notebook, "![A cat](https://example.org/cat.png)")


@fault("cell 2", "another host")
def frame_from_elsewhere(notebook):
    put(notebook, '<iframe title="a" src="https://example.org"></iframe>')


def test_script_and_links_of_a_notebook_s_own_pass(notebook):
    drawing = "createElementNS('http://www.w3.org/2000/svg', 'g')"
    script = f"<script>{drawing}; // then 4 // 2\nx = 1</script>"
    notebook.code[1].outputs.append(html(script))
    put(notebook, "See [cosine](https://dlmf.nist.gov/6), <https://a.org>.")
    outputs.write(notebook)
    assert messages(notebook) == []


@fault("small.ipynb [2]", "outputId", "make outputs NB=")
def metadata_of_colab(notebook):
    notebook.code[1].metadata["outputId"] = "1"


@fault("small.ipynb [2]", "raises-exception")
def cell_allowed_to_fail(notebook):
    notebook.code[1].metadata["tags"] = ["raises-exception"]


@fault("small.ipynb", "metadata", "make outputs NB=")
def kernel_of_another_name(notebook):
    notebook.node.metadata = {"kernelspec": {"name": "conda-env"}}


@fault("small.ipynb [6]", "no alt text", "mystnb")
def figure_without_alt_text(notebook):
    del notebook.code[5].metadata["mystnb"]


@fault("small.ipynb [6]", "no alt text", "20 characters")
def alt_text_that_says_nothing(notebook):
    alt = {"alt": "Figure 1"}
    notebook.code[5].metadata["mystnb"] = {"image": alt}


@fault("small.ipynb [6]", "no alt text", "whole sentences")
def alt_text_cut_short(notebook):
    alt = {"alt": "A line that rises from left"}
    notebook.code[5].metadata["mystnb"] = {"image": alt}


@fault("small.ipynb [6]", "does not name ['step', 'height']", "metadata")
def alt_text_without_the_labels(notebook):
    notebook.code[
        5
    ].source = 'axes.set_xlabel("step $k$")\naxes.plot(x, label=f"height {x}")'


@fault("small.ipynb [6]", "does not name ['two panels']", "metadata")
def alt_text_without_the_panels(notebook):
    notebook.code[5].source = "fig, axes = plt.subplots(1, 2)"


@fault("small.ipynb [6]", "number 3", "<!--= expression -->")
def alt_text_with_a_number_that_nothing_computes(notebook):
    alt = {"alt": "A line through 3 points."}
    notebook.code[5].metadata["mystnb"] = {"image": alt}


@fault("small.ipynb [6]", "has alt text and no figure", "make outputs NB=")
def figure_cleared(notebook):
    notebook.code[5].outputs = []


@fault("small.ipynb [2]", "its alt text is that of")
def alt_text_twice(notebook):
    notebook.code[1].outputs.append(figure())
    notebook.code[1].metadata.update(ALT)


@fault("small.ipynb [6]", "prints what matplotlib returns")
def figure_with_a_print(notebook):
    notebook.code[5].outputs.append(value("[Text(0.5, 0, 'x')]"))


@fault("small.ipynb", "6 figures")
def figures_too_many(notebook):
    notebook.code[5].outputs += 5 * [figure()]


@fault("small.ipynb [6]", "title inside the plot")
def title_inside_the_plot(notebook):
    notebook.code[5].source = 'axes.set_title("Curve")'


@fault("small.ipynb [6]", "title inside the plot")
def title_inside_the_only_plot(notebook):
    source = 'figure, ax = plt.subplots()\nax.set_title("Curve")'
    notebook.code[5].source = source


@fault("small.ipynb [6]", "'Position'", "lower case")
def axis_label_with_a_capital(notebook):
    notebook.code[5].source = 'axes.set_xlabel("Position")'


def put(notebook, text):
    """Add a line to the chapter's second text cell."""
    notebook.markdown[1].source += f"\n\n{text}"


def fault_of_text(name, text, *expected):
    """Register a text that is a fault in the second text cell."""
    FAULTS.append(
        pytest.param(
            lambda notebook: put(notebook, text),
            ("cell 2", *expected),
            id=name,
        )
    )


for name, text in {
    "colon_fence": ":::{note}\nRead.\n:::",
    "directive": "```{note}\nRead.\n```",
    "role": "See {ref}`there`.",
    "target_label": "(there)=",
    "labelled_equation": "$$x$$ (there)",
    "substitution": "It is {{ x }}.",
    "footnote": "So it is [^a].",
    "link_without_text": "See [](small.ipynb).",
    "align_outside_maths": "\\begin{align}x\\end{align}",
    "myst_comment": "% hidden",
}.items():
    fault_of_text(f"shows_raw_{name}", text, "show raw")


@fault("cell 2", "attention.ipynb", "does not exist")
def link_to_no_chapter(notebook):
    put(notebook, "See [attention](attention.ipynb).")


@fault("cell 2", "#heads", "no heading")
def link_to_no_heading(notebook):
    put(notebook, "See [heads](#heads).")


@fault("cell 2", "https://arxiv.org/abs/1706.03763", "List it", "correct")
def link_that_the_bibliography_lacks(notebook):
    put(notebook, "See [the paper](https://arxiv.org/abs/1706.03763).")


@fault("cell 2", "#summary", "'Setup' is the heading of", "#setup", "Lead it")
def link_named_after_another_heading(notebook):
    put(notebook, "See [Setup](#summary).")


@fault("cell 2", "#summary", "'setups' is the heading of", "#setup", "Lead it")
def link_named_after_another_heading_in_lower_case(notebook):
    put(notebook, "See [setups](#summary).")


@fault("cell 2", "#summary", "'widget' is the heading of", "#many-widgets")
def link_named_after_a_word_of_another_heading(notebook):
    put(notebook, "See [widget](#summary).\n\n## Many widgets")


@fault("cell 2", "#summary", "'too many' is the heading of", "#one-too-many")
def link_named_after_words_of_another_heading(notebook):
    put(notebook, "See [too many](#summary).\n\n## One too many of them")


@fault("cell 2", "masks.ipynb#the-contract", "[Inverted polarity]", "Lead it")
def link_named_after_another_heading_of_the_book(notebook):
    place = notebook.path.parent / "masks.ipynb"
    place.write_bytes((BOOK / "masks.ipynb").read_bytes())
    put(notebook, "See [Inverted polarity](masks.ipynb#the-contract).")


PAPER = "https://arxiv.org/abs/1706.03762"
THREAD = "https://github.com/keras-team/keras-hub/pull/139"
for name, (text, expected) in {
    "year": ("Vaswani et al. 2018 say so.", "cites 'Vaswani et al. 2018'"),
    "author": ("By Vaswany et al. (2017).", "listed: nobody"),
    "coauthor": ("Press and Wolff 2017.", "listed: Haviv, Ram, Press,"),
    "many_authors": ("Press et al. 2017.", "listed: Haviv, Ram, Press,"),
    "section": (
        "Source: Vaswani et al. 2017, sections 3.5 and 3.6.",
        "does not name 3.6. Name it there",
    ),
    "section_of_a_link": (f"In [section 3.6]({PAPER}).", "not name 3.6"),
    "year_of_a_link": (f"[In 2016]({PAPER}).", "Polosukhin, 2017. Correct"),
    "year_of_a_thread": (f"[A fix in 2021]({THREAD}).", "not say 2021."),
    "month_of_a_thread": (f"[May 2022]({THREAD}).", "not say May 2022."),
    "author_of_a_link": (f"[Wolf's paper]({PAPER}).", "Polosukhin, 2017."),
    "title_of_a_link": (
        f"[Train short, test long]({PAPER}).",
        "is the title of https://arxiv.org/abs/2108.12409. Correct it",
    ),
}.items():
    fault_of_text(f"{name}_that_is_not_listed", text, expected)


@fault("cell 2", "[asked]", "shares no word", "let the note in", "about")
def link_to_a_thread_about_something_else(notebook):
    there = "https://github.com/pytorch/pytorch/issues/131254"
    put(notebook, f"Which PyTorch's readers have [asked]({there}), of NaN.")


@fault("small.ipynb [3]", "cites 'Vaswani et al. 2018'", "bibliography.md")
def docstring_with_a_source_of_another_year(notebook):
    cell = notebook.code[2]
    cell.source = cell.source.replace("Twice", "Source: Vaswani et al. 2018")


@fault("cell 1", "make repository SLUG=")
def colab_link_to_another_repository(notebook):
    cell = notebook.markdown[0]
    cell.source = cell.source.replace(slug(), "somebody/else")


@fault("cell 2", "number 16", "<!--= expression -->")
def number_that_nothing_computes(notebook):
    put(notebook, "It has 16 rows.")


for name, text in {
    "alone": "Vectors of $16$ numbers.",
    "of_a_letter": "The width $d_{model} = 16$ is small.",
}.items():
    name = f"number_in_mathematics_{name}_that_nothing_computes"
    fault_of_text(name, text, "number 16", "<!--= expression -->")


@fault("cell 2", "has `1e-9`, which no code", "Correct it, or compute it")
def power_of_ten_that_no_code_has(notebook):
    put(notebook, "The layer adds $\\epsilon = 10^{-9}$.")


@fault("cell 2", "has `n=7`, which no code", "Correct it, or compute it")
def number_in_code_quotes_that_no_code_has(notebook):
    put(notebook, "The default is `n=7`, of `3`.")


@fault("cell 2", "16", "names no variable", "<!--= d_model -->")
def number_that_computes_itself(notebook):
    put(notebook, "It has 16<!--= 16 --> rows of 4<!--= sum(range(4)) -->.")


@fault("cell 2", "1,600", "names no variable", "np.int64(1600)")
def number_that_a_library_repeats(notebook):
    put(notebook, "It has 1,600<!--= np.int64(1600) --> numbers.")


@fault("cell 2", "says what a library does 'unless told'", "asks the library")
def default_that_nobody_asks(notebook):
    put(notebook, "The layer drops a tenth unless told otherwise.")


@fault("cell 2", "256 GiB", "'size / 2**20' does not say GiB", "correct")
def unit_that_the_expression_lacks(notebook):
    put(notebook, "They take 256<!--= size / 2**20 --> GiB.")


@fault("small.ipynb [2]", "size / 2 ** 20 as GiB", "correct the unit")
def unit_that_is_printed_of_another_number(notebook):
    notebook.code[1].source = 'f"{size / 2**20:.0f} GiB"'


@fault("cell 2", "'six mistakes'", "counts [2] mistakes", "Correct")
def mistakes_counted_wrong(notebook):
    put(notebook, "Recognise six mistakes by their symptoms.")
    wrong = notebook.markdown[8]
    parts = ("One", "Another", "All of them at a glance")
    wrong.source += "".join(f"\n\n### {part}" for part in parts)


@fault("cell 2", "'Ten different checks'", "or compute it: Ten<!--= len(")
def count_that_nothing_computes(notebook):
    put(notebook, "Ten different checks.")


@fault("cell 2", "'four bytes'", "or compute it: four<!--= len(...) -->")
def bytes_that_nothing_counts(notebook):
    put(notebook, "Each number has four bytes.")


for noun in (
    *("heads", "keys", "layers", "measures", "panels", "queries", "rows"),
    *("samples", "words"),
):
    text, claim = f"Five small {noun}", "or compute it: Five<!--= len("
    fault_of_text(f"{noun}_that_nothing_counts", f"{text}.", text, claim)


@fault("cell 2", "announces Three", "2 follow", "Correct the number")
def list_shorter_than_announced(notebook):
    put(notebook, "Three rules:\n\n- One.\n- The\n  other.")


@fault("cell 2", "announces four", "3 follow", "Correct the number")
def table_shorter_than_announced(notebook):
    rows = "| a | b |\n|---|---|\n| 1 | 2 |".replace("2 |", "2 |\n| x | y |")
    put(notebook, f"The rule has four cases:\n\n{rows}\n| z | z |")


@fault("cell 2", "a matrix that is typed", "Print it in a cell")
def matrix_of_verdicts_that_is_typed(notebook):
    row = "| no root | – | caught | caught |\n"
    head = "| mistake | shape | sums | library |\n|---|---|---|---|\n"
    put(notebook, head + 3 * row)


@fault("small.ipynb [6]", "'orange'", "orange<!--= pixel(ax, row, column) -->")
def colour_in_an_alt_text_that_nothing_asks_for(notebook):
    alt = {"alt": "An orange line that rises from left to right."}
    notebook.code[5].metadata["mystnb"] = {"image": alt}


@fault("small.ipynb [6]", "'dark'", "nothing asks the figure")
def colour_below_a_figure_that_nothing_asks_for(notebook):
    notebook.markdown[9].source = "The dark line rises.\n\n## Summary"


@fault("cell 2", "'Blue' is said", "Blue<!--= pixel(ax, row, column) -->")
def hue_in_a_text_that_asks_no_figure(notebook):
    put(notebook, "Blue cells may be seen.")


@fault("cell 2", "one sentence per line")
def two_sentences_on_a_line(notebook):
    put(notebook, "It is here. There it is not.")


@fault("cell 2", "'simply'")
def empty_word(notebook):
    put(notebook, "You simply add.")


@fault("small.ipynb", "takes 48 minutes", "### Side road: ...")
def main_road_too_long(notebook):
    put(notebook, 5500 * "word ")


@fault("small.ipynb [3]", "uses 'aside', which a side road defines")
def main_road_uses_a_side_road(notebook):
    """Of two sections one is skipped, and so is what is within it."""
    road = "## Side road: more\n\nOne sentence.\n\n### Within\n\nMore."
    cells = [new_markdown_cell(road), new_code_cell("aside = 1")]
    cells.append(new_markdown_cell("## Main again\n\nOn we go."))
    place = notebook.cells.index(notebook.code[1])
    notebook.code[1].source += "\naside"
    notebook.cells[place:place] = cells
    del notebook.code  # which is kept


@fault("cell 2", "uses 'aside', which a side road defines")
def main_road_speaks_of_what_a_side_road_defines(notebook):
    road = "## Side road: more\n\nOne sentence."
    define = new_code_cell('def aside():\n    """Aside."""')
    place = notebook.cells.index(notebook.code[-1])
    notebook.cells[place:place] = [new_markdown_cell(road), define]
    put(notebook, "A [link](#setup) to `twice` may; it is `aside` that says.")
    del notebook.code  # which is kept


@fault("cell 2", "'broken numbers' stops a reader; say: fractions")
def words_not_plain(notebook):
    put(notebook, "These are broken numbers.")


@fault("small.ipynb", "lacks the sections ['Summary']")
def section_missing(notebook):
    for cell in notebook.markdown:
        cell.source = cell.source.replace("## Summary", "## Sums")


@fault("small.ipynb", "should stand as")
def sections_in_another_order(notebook):
    for cell in notebook.markdown:
        cell.source = (
            cell.source.replace("## Setup", "## X")
            .replace("## Summary", "## Setup")
            .replace("## X", "## Summary")
        )


@fault("cell 1", "at most 80")
def question_too_long(notebook):
    notebook.markdown[0].source += "\n" + 81 * "word "


@fault("small.ipynb", "not one title")
def two_titles(notebook):
    put(notebook, "# Another")


@fault("small.ipynb", "below the third level")
def heading_too_deep(notebook):
    put(notebook, "#### Deep")


@fault("cell 2", "title case")
def heading_in_title_case(notebook):
    put(notebook, "## The Gradient Of Both Ways")


@fault("small.ipynb", "links to read on")
def reading_too_long(notebook):
    notebook.cells[-1].source += 5 * "\n- [Setup](#setup)."


@fault("'numbers' is bold a second time")
def term_bold_twice(notebook):
    notebook.markdown[5].source += "\n**numbers**"


@fault("small.ipynb [2]", "is not Python")
def magic(notebook):
    notebook.code[1].source = "!ls"


@fault("small.ipynb [2]", "26 lines", "Split the function")
def cell_too_long(notebook):
    notebook.code[1].source = "\n".join(26 * ["x"])


@fault("small.ipynb [2]", "76 lines", "at most 75")
def interactive_cell_too_long(notebook):
    notebook.code[1].source = "# @title Interactive: it" + 76 * "\nx"


@fault("small.ipynb [2]", "no words stand before")
def no_words_before_a_cell(notebook):
    del notebook.cells[5]


@fault("small.ipynb [2]", "never both")
def definition_and_show(notebook):
    notebook.code[1].source = 'def f(x):\n    """F."""\n\n\nf(1)'


@fault("small.ipynb [3]", "has to follow at once")
def twin_missing(notebook):
    notebook.cells.remove(notebook.code[3])
    del notebook.code


@fault("small.ipynb [4]", "has to stand right before it")
def twin_alone(notebook):
    notebook.code[2].metadata["tags"] = []


@fault("small.ipynb [4]", "to be called twice_tf")
def twin_of_another_name(notebook):
    cell = notebook.code[3]
    cell.source = cell.source.replace("twice_tf", "double")


@fault("small.ipynb [4]", "different docstrings")
def twin_of_another_docstring(notebook):
    cell = notebook.code[3]
    cell.source = cell.source.replace("Twice", "Double")


@fault("small.ipynb [3]", "TensorFlow in a pytorch cell")
def framework_in_the_wrong_tab(notebook):
    notebook.code[2].source += "\n    tf.shape(x)"


@fault("small.ipynb", "PyTorch and TensorFlow give the same")
def frameworks_never_compared(notebook):
    notebook.code[4].source = "math.pi"


@fault("small.ipynb [2]", "print outside a loop")
def print_outside_a_loop(notebook):
    notebook.code[1].source = "print(x)"


@fault("small.ipynb [2]", "star import")
def star_import(notebook):
    notebook.code[1].source = "from math import *"


@fault("small.ipynb [2]", "silences warnings")
def warnings_silenced(notebook):
    notebook.code[1].source = "warnings.simplefilter('ignore')"


@fault("small.ipynb [2]", "switches the comparison off")
def comparison_switched_off(notebook):
    notebook.code[1].source = "# NBVAL_IGNORE_OUTPUT\nx"


@fault("small.ipynb [2]", "x == x compares a thing with itself")
def check_of_a_thing_with_itself(notebook):
    notebook.code[1].source = "x = [1, 2, 3]  # (T,)\nassert x == x"


@fault("small.ipynb [2]", "atol=2.0 lets nearly all numbers pass")
def check_with_a_wide_tolerance(notebook):
    notebook.code[
        1
    ].source = "x = [1, 2, 3]  # (T,)\nclose = allclose(x, x, atol=2.0)\nclose"


for name, check in {
    "any": "any(x)",
    "any_of_a_tensor": "x.isnan().any(), 'words'",
    "not_all": "x and not (x.all() or y)",
}.items():
    FAULTS.append(
        pytest.param(
            lambda notebook, check=check: notebook.code[1].update(
                source=f"x = [1, 2, 3]  # (T,)\nassert {check}"
            ),
            (
                "small.ipynb [2]",
                "lets one of many suffice",
                "how many, or which",
            ),
            id=f"assertion_that_one_of_many_satisfies_by_{name}",
        )
    )


@pytest.mark.parametrize(
    "check",
    ["x.all()", "not any(x)", "x.any(-1).all()", "all(map(any, x))"],
)
def test_assertion_of_all_or_none_passes(notebook, check):
    notebook.code[1].source = f"assert {check}"
    assert not list(rules.code.assertions_say_all_or_none(notebook))


@fault("small.ipynb [2]", "nobody reads 'idle'", "remove it")
def name_that_nobody_reads(notebook):
    notebook.code[1].source = "x = [1, 2, 3]  # (T,)\nidle = 4"


@fault("small.ipynb [2]", "without a seed")
def draw_without_a_seed(notebook):
    notebook.code[1].source = "x = torch.rand(3)  # (T,)"


@fault("small.ipynb [3]", "twice has no docstring")
def docstring_missing(notebook):
    notebook.code[2].source = "def twice(x):\n    return x"


@fault("small.ipynb [3]", "reads the global factor")
def global_read(notebook):
    notebook.code[2].source += "\n    return factor * x"


@fault("small.ipynb [2]", "cannot be read as a shape")
def shape_comment_unreadable(notebook):
    notebook.code[1].source = "x = [1, 2, 3]  # (T, three)(\nx"


@fault("small.ipynb [2]", "'Q'", "notation.md")
def shape_letter_unknown(notebook):
    notebook.code[1].source = "x = [1, 2, 3]  # (Q,)\nx"


@fault("small.ipynb [2]", "stands on no assignment")
def shape_comment_on_no_statement(notebook):
    notebook.code[1].source = "for e in x:  # (T,)\n    e"


@fault("small.ipynb [2]", "['V']", "table of the Notation section")
def shape_letter_not_in_the_notation(notebook):
    notebook.code[1].source = "x = [1, 2, 3]  # (V,)\nx"


@fault(
    "small.ipynb [4]", "['(S)'] of return", "['(T)']", "Correct the comment"
)
def twin_of_another_shape(notebook):
    notebook.code[2].source += "  # (T,)"
    notebook.code[3].source += "  # (S,)"


@fault("small.ipynb [2]", "calls reshape", "# (B, T, D)")
def reshape_without_its_shape(notebook):
    notebook.code[1].source = "y = x.reshape(3)"


@fault("cell 17", "is headed as in")
def exercise_heading(notebook):
    cell = notebook.markdown[10]
    cell.source = cell.source.replace("(easy, 5 minutes)", "")


@fault("cell 17", "no hint")
def exercise_without_a_hint(notebook):
    cell = notebook.markdown[10]
    cell.source = cell.source.split("<details>")[0]


@fault("cell 17", "no solution")
def exercise_without_a_solution(notebook):
    notebook.code[6].source = "y = 4  # ()"


@fault("small.ipynb [7]", "a verdict on the solution")
def solution_with_a_verdict(notebook):
    verdict = "'Solution of exercise 1: correct.'"
    notebook.code[6].outputs = [value(verdict)]


@fault("small.ipynb [7]", "folds in some places only")
def solution_not_folded_in_colab(notebook):
    del notebook.code[6].metadata["cellView"]


def replace(notebook, old, new):
    """Put new words for old ones into the chapter's texts."""
    assert any(old in cell.source for cell in notebook.markdown)
    for cell in notebook.markdown:
        cell.source = cell.source.replace(old, new)


@fault("cell 3", "says (B, T) of key_mask", "notation.md (B, S)")
def notation_of_another_shape(notebook):
    replace(notebook, "(B, S)", "(B, T)")


@fault("cell 3", "says K of d_model", "notation.md D.", "Correct")
def notation_of_another_letter(notebook):
    replace(notebook, "| D |", "| K |")


@fault("cell 3", "says S of seq_len", "notation.md T.", "Correct")
def notation_of_the_letter_of_the_other_length(notebook):
    replace(notebook, "| | S |", "| `seq_len` | S |")


@fault("cell 3", "says d_k of d_model", "notation.md d_{model}.", "Correct")
def notation_of_another_formula(notebook):
    replace(notebook, "$d_{model}$", "$d_k$")


@fault("cell 3", "has width, which no code", "Correct the name")
def notation_of_a_name_that_no_code_has(notebook):
    replace(notebook, "`d_model`", "`width`")


@fault("cell 3", "sizes of d_model by 1 + 2", "its own variable")
def notation_with_the_size_of_another_variable(notebook):
    replace(notebook, "as needed", "3<!--= 1 + 2 -->")


@fault("cell 16", "['twice'] for equation 2", "Correct the number")
def summary_with_the_number_of_another_equation(notebook):
    replace(notebook, "| $(1)$", "| $(2)$")


def draw(notebook, *lines):
    """Put code into the cell that has a figure."""
    notebook.code[5].source = "\n".join(lines)


@fault("small.ipynb [6]", "'limit'", "not that of heights", "the variable")
def labels_of_curves_exchanged(notebook):
    draw(
        notebook,
        'ax.plot(x, heights, label="limit")',
        'ax.plot(x, limit, label="heights")',
    )


@fault("small.ipynb [6]", "'the root of heights'", "that of limit", "variable")
def labels_of_curves_that_name_what_all_of_them_have(notebook):
    draw(
        notebook,
        'ax.plot(heights, roots, label="no limit")',
        'ax.plot(heights, limit, label="the root of heights")',
    )


@fault("small.ipynb [6]", "'height'", "not that of top_height", "variable")
def labels_of_a_curve_and_a_line_exchanged(notebook):
    draw(
        notebook,
        'ax.plot(height, steps, "o", label="top height")',
        'ax.axhline(top_height, label="height")',
    )


@fault("small.ipynb [6]", "'bugs seen'", "not that of only_here", "variable")
def labels_of_bars_exchanged(notebook):
    draw(
        notebook,
        'ax.barh(checks, bugs_seen, label="bugs seen only here")',
        'ax.barh(checks, only_here, label="bugs seen")',
    )


@fault("small.ipynb [6]", "'limit'", "not that of heights", "the variable")
def labels_of_points_exchanged(notebook):
    draw(
        notebook,
        'ax.scatter(x, heights, label="limit")',
        'ax.scatter(x, limit, label="heights")',
    )


@fault("small.ipynb [6]", "the label 'which place'", "that of which_word")
def labels_of_the_axes_of_points_exchanged(notebook):
    draw(
        notebook,
        "ax.scatter(which_word, which_place)",
        'ax.set(xlabel="which place", ylabel="which word")',
    )


@fault("small.ipynb [6]", "of both axes", "seen", "the name of the variable")
def labels_of_points_whose_axes_are_not_named(notebook):
    draw(
        notebook,
        "ax.scatter(*seen.T)",
        'ax.set(xlabel="which word", ylabel="which place")',
    )


@fault("small.ipynb [6]", "the label 'word'", "not that of position")
def label_of_the_colours_of_points_exchanged(notebook):
    draw(
        notebook,
        "marks = ax.scatter(x, y, c=position)",
        'fig.colorbar(marks, label="word")',
    )


@fault("small.ipynb [6]", "'near'", "could be another's", "show the loop's")
def labels_of_curves_typed_in_a_loop(notebook):
    draw(notebook, "for k in (6, 64):", '    ax.plot(f(k), label="near")')


@fault("small.ipynb [6]", "the label 'height'", "that of steps", "variable")
def labels_of_axes_exchanged(notebook):
    draw(
        notebook,
        "ax.plot(steps, heights)",
        'ax.set(xlabel="height", ylabel="step $k$")',
    )


@fault("small.ipynb [6]", "of both axes", "heights, steps", "variable")
def labels_of_axes_that_name_no_variable(notebook):
    draw(
        notebook,
        "ax.plot(steps, heights)",
        'ax.set(xlabel="offset", ylabel="share")',
    )


@fault("small.ipynb [6]", "the x axis", "'query word'", "rows are queries")
def labels_of_a_picture_exchanged(notebook):
    draw(notebook, "ax.imshow(weights)", 'ax.set_xlabel("query word")')


@fault("small.ipynb [6]", "the x axis", "'query'", "rows are queries")
def labels_of_a_picture_that_a_function_draws_exchanged(notebook):
    draw(notebook, "show_weights(ax, weights)", 'ax.set_xlabel("query")')


@fault("small.ipynb [6]", "the y axis", "'position $q$'", "columns keys")
def letters_of_a_picture_exchanged(notebook):
    draw(notebook, "ax.imshow(shares)", 'ax.set_ylabel("position $q$")')


@pytest.mark.parametrize(
    "source",
    [
        'ax.plot(x, limit, label="limit")\nax.plot(x, log, label="log of k")',
        'for k in (6, 64):\n    ax.plot(f(k), label=f"width {k}")',
        'ax.plot(x, y, label="any")',
        'ax.plot(x, near, label="near")\nax.axvline(far, label="far")',
        'ax.bar(x, near, label="near")\nax.bar(x, far, label="far")',
        'ax.plot(steps, y)\nax.set(xlabel="step $k$", ylabel="height")',
        'ax.plot(rows[:, column])\nax.set_ylabel("value in a column")',
        'ax.imshow(w)\nax.set_xlabel("key")\nax.set_ylabel("query")',
        'm = ax.scatter(x, y, c=places)\nfig.colorbar(m, label="place")',
    ],
)
def test_labels_of_what_is_drawn_pass(notebook, source):
    notebook.code[5].source = source
    assert not list(rules.figures.labels_are_those_of_the_data(notebook))


@pytest.mark.parametrize(("damage", "expected"), FAULTS)
def test_fault_is_rejected(notebook, damage, expected):
    damage(notebook)
    found = messages(notebook)
    assert any(all(e in m for e in expected) for m in found), found


def test_every_check_has_a_fault_that_it_finds(tmp_path):
    silent = set(RULES)
    for fault in FAULTS:
        notebook = small_notebook(tmp_path / "small.ipynb")
        fault.values[0](notebook)
        silent -= {rule for rule in silent if list(rule(notebook))}
    # The next test shows this one, which needs a file.
    assert silent == {stored.file_is_as_written}


def test_file_laid_out_by_another_program_is_rejected(notebook):
    notebook.path.write_text(json.dumps(notebook.node))
    (message,) = stored.file_is_as_written(notebook)
    assert "laid the file out differently" in message
    assert "make outputs NB=" in message


def test_name_with_two_bodies_is_rejected(tmp_path):
    books = [small_notebook(tmp_path / f"{name}.ipynb") for name in "ab"]
    assert not list(one_name_one_body(books))
    books[1].code[2].source = books[1].code[2].source.replace("2 *", "3 *")
    (message,) = one_name_one_body(books)
    assert "b.ipynb [3]: twice differs from the one in" in message
    books[1].code[2].source = books[0].code[2].source + "  # (T,)"
    assert list(one_name_one_body(books))  # comments belong to it
    assert "a.ipynb [3]" in message and "name of its own" in message


def test_shape_that_no_other_comment_has_is_rejected(notebook, monkeypatch):
    monkeypatch.setattr(rules.book, "ONCE", {"T", ""})
    assert not list(shapes_said_once([notebook]))
    monkeypatch.setattr(rules.book, "ONCE", {"S", ""})
    slip, needless = shapes_said_once([notebook])
    assert "small.ipynb [2]: says the shape (T)" in slip
    assert "Correct the comment" in slip
    assert "(S) is not said once; remove it" in needless


def test_thing_with_two_names_is_rejected(notebook, tmp_path):
    table = "| thing | in code | in formulas |\n|---|---|---|\n"
    page = page_of(
        tmp_path,
        f"{table}| tokens in a sentence, if others | `query_len` | |\n"
        "| heads, and the width of one | `num_heads`, `d_head` | |\n",
    )
    for row in ("token in sentences | `seq_len`", "heads | `num_heads`"):
        put(notebook, f"{table}| {row} | |")
        assert not list(one_thing_one_name([page, notebook]))
    put(notebook, f"{table}| the heads | `d_head` | |")
    (message,) = one_thing_one_name([page, notebook])
    assert "small.ipynb, cell 2" in message
    assert "calls 'head' K, and another H. Correct" in message


def test_several_names_of_one_thing_are_the_same_in_all_tables(
    notebook, tmp_path
):
    table = "| thing | in code | in formulas |\n|---|---|---|\n| projections "
    page = page_of(tmp_path, f"{table}| `key_proj`, `output_proj` | |")
    put(notebook, f"{table}| `key_proj`, `output_proj` | |")
    assert not list(one_thing_one_name([page, notebook]))
    replace(notebook, "output_proj", "out_proj")
    (message,) = one_thing_one_name([page, notebook])
    assert "small.ipynb, cell 2" in message and "Correct" in message
    assert "'all of projection' key_proj, out_proj, and another" in message


def test_constant_text_with_two_values_is_rejected(tmp_path):
    books = [small_notebook(tmp_path / f"{name}.ipynb") for name in "ab"]
    for book in books:
        book.code[1].source = 'SCRIPT = """draw()"""\nscript = "free"'
    assert not list(one_name_one_body(books))
    books[1].code[1].source = 'SCRIPT = """erase()"""\nscript = "other"'
    (message,) = one_name_one_body(books)
    assert "b.ipynb [2]: SCRIPT differs from the one in" in message


def test_notebook_missing_from_the_contents_is_rejected(notebook):
    (message,) = files_not_built([notebook])
    assert "_toc.yml" in message


# The pages


def page_of(tmp_path, words):
    """Return a page with a section of these words."""
    place = tmp_path / "small.md"
    place.write_text(f"# Small\n\nA page.\n\n## More\n\n{words}\n")
    return Notebook.page(place)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Ten checks.", "says 'Ten checks'"),
        ("Two rules:\n\n- a\n- b\n- c", "announces Two, and 3 follow"),
        ("See [More](#small).", "'More' is the heading of small.md#more"),
        ("Vaswani et al. 2018 say so.", "cites 'Vaswani et al. 2018'"),
        ("You simply add.", "without 'simply'"),
        ("These are broken numbers.", "say: fractions"),
        ("**Add**, **add** and **Add**.", "'Add' is bold a second time"),
    ],
)
def test_fault_on_a_page_is_rejected(tmp_path, words, expected):
    page = page_of(tmp_path, words)
    (message,) = (message for rule in PROSE for message in rule(page))
    assert "small.md, section 2 ('## More')" in message and expected in message


def test_page_that_follows_the_rules_passes(tmp_path):
    page = page_of(tmp_path, "### Three ways\n\n- a\n- b\n- c")
    assert not [message for rule in PROSE for message in rule(page)]


def test_name_on_a_page_that_no_code_has_is_rejected(notebook, tmp_path):
    table = NOTATION.replace("| `x`", "| `d_model`, `wide`")
    page = page_of(tmp_path, table)
    (message,) = unknown_names(page, [notebook])
    assert "section 2" in message and "has wide, which no code" in message


NOTATION = "| in code | in formulas |\n|---|---|\n| `x` | $x$ |"
SYMPTOMS = """# Symptoms

## The loss is NaN

- [A query is blind](small.ipynb#against-the-libraries), and all is lost.
  Check: `{}`.
"""


@pytest.mark.parametrize("check", ["twice_tf(x)", "assert", "The same"])
def test_check_in_the_section_that_a_symptom_links_passes(notebook, check):
    page = SYMPTOMS.format(check)
    assert not list(checks_elsewhere(page, [notebook]))


@pytest.mark.parametrize("check", ["len(x)", "import math", "assert x", "tw"])
def test_check_that_stands_in_another_section_is_rejected(notebook, check):
    (message,) = checks_elsewhere(SYMPTOMS.format(check), [notebook])
    assert "book/symptoms.md, '- [A query is blind](small" in message
    assert f": the check `{check}` does not stand, or not behind" in message
    assert "in small.ipynb#against-the-libraries. Name one that" in message
    linked = SYMPTOMS.format(check).replace(
        f"`{check}`", f"[`{check}`](small.ipynb#setup)"
    )
    there = check in ("len(x)", "import math")
    assert bool(list(checks_elsewhere(linked, [notebook]))) != there


def test_check_that_stands_only_above_the_section_s_own_is_rejected(notebook):
    replace(notebook, "The same.", "By `twice`.\n*Check*: the norm of x.")
    assert not list(checks_elsewhere(SYMPTOMS.format("norm_of_x"), [notebook]))
    (message,) = checks_elsewhere(SYMPTOMS.format("By"), [notebook])
    assert "the check `By` does not stand, or not behind *Check*" in message


def test_two_symptoms_of_a_section_that_lead_to_one_place_are_rejected():
    page = SYMPTOMS.format("twice")
    other = "- [A key is lost](small.ipynb#against-the-libraries).\n"
    assert not list(same_place(f"{page}\n## The loss is too good\n\n{other}"))
    (message,) = same_place(page + other)
    assert "symptoms.md, 'The loss is NaN': [A query is blind]" in message
    assert "[A key is lost] lead to small.ipynb#against-the" in message
    assert "Correct one address." in message


def test_row_of_topics_that_describes_another_section_is_rejected():
    rows = "| you know | where |\n|---|---|\n| {} | [Two heads](a#b) |"
    assert not list(other_topics(rows.format("splitting a head")))
    (message,) = other_topics(rows.format("a mask and what it does"))
    assert "row 'a mask and what it does' shares no word" in message
    assert "'Two heads'. Correct the link, or name" in message


def test_symptom_without_twins_that_the_opening_lacks_is_rejected(notebook):
    (message,) = without_twins(SYMPTOMS, [notebook])
    assert "symptoms.md: small.ipynb#against-the-libraries has no" in message
    named = SYMPTOMS.replace("\n\n", "\n\n[One](small.ipynb#{}).\n\n", 1)
    right = named.replace("{}", "against-the-libraries", 1)
    assert not list(without_twins(right, [notebook]))
    _, message = without_twins(named.replace("{}", "setup", 1), [notebook])
    assert "has small.ipynb#setup, which is no symptom without" in message


def test_symptom_without_a_check_is_rejected(notebook):
    page = SYMPTOMS.partition("  Check")[0]
    (message,) = checks_elsewhere(page, [notebook])
    assert "say by 'Check: ...' what finds '- [A query is blind]" in message


@pytest.mark.parametrize(
    ("head", "year"),
    [
        ("2016). [T](https://arxiv.org/abs/1706.03762). NeurIPS.", "2017"),
        ("2018). [T](https://arxiv.org/abs/1706.03762).", "2017"),
        ("2019). [T](https://arxiv.org/abs/1706.03762). NeurIPS.", "2017"),
        ("2018). [T](https://arxiv.org/abs/1706.03762). NeurIPS.", "2017"),
        ("2022). [T](https://example.org/blog/2023/t.html).", "2023"),
    ],
)
def test_year_that_the_address_of_a_source_belies_is_rejected(head, year):
    entry = f"- Press, O., Wolf, L. ({head}\n  Section 3.1: words."
    (read,) = citations.read(entry)
    assert (
        read.authors == ["Press", "Wolf"] and read.note[:11] == "Section 3.1"
    )
    (message,) = citations.misdated([read])
    assert "bibliography.md: [T] is of 20" in message
    assert f"of {year}. Correct the year" in message
    right = citations.read(f"{entry[:19]} ({year}{entry[25:]}")
    assert list(citations.misdated(right)) == []


def test_year_in_which_a_venue_met_before_the_paper_is_rejected():
    paper = "[T](https://arxiv.org/abs/1706.03762). ICLR."
    (read,) = citations.read(f"- Press, O. (2017). {paper}\n  Words.")
    assert len([*citations.misdated([read])]) == 1
    assert not [*citations.misdated([read._replace(year="2018")])]
    assert not [*citations.misdated([read._replace(venue="Elsewhere")])]


# What only a run shows


def said(notebook):
    """Return what a run says, a line for each message."""
    try:
        return run(notebook).messages
    except NotebookError as error:
        return str(error).split("\n")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = [1, 2]  # (3,)", "gives the shape (2,)"),
        ("x = [[1, 2]]  # (T,)", "gives the shape (1, 2)"),
        ("x = [[1, 2], [3, 4], [5, 6]]  # (T, T)", "where T=3"),
        ("x = [1]  # (T,)\ny = [1, 2]  # (T,)", "where T=1"),
        ("[[1, 2, 3]]  # (T, T + 1)", "gives the shape (1, 3)"),
        ("def f():\n    return [1], [2, 3]  # (T,), (T,)\nf()", "where T=1"),
        ("def f():\n    return [1], 2  # (T,), (T,)\nf()", "the shape ()"),
        ("a, b = [1], [2, 3]  # (T,), (T,)", "gives the shape (2,)"),
        ("x = [1]\nx += [2]  # (1,)", "gives the shape (2,)"),
        ("x = 1  # (..., T)", "gives the shape ()"),
        ("x = (\n    [1, 2]\n)  # (3,)", "gives the shape (2,)"),
        # The Notation section says T=3, S=4.
        ("[[1, 2, 3]] * 4  # (T, S)", "the sizes of S and T"),
        ("def f(seq_len):\n    return [1]  # (T,)\nf(2)", "where T=2"),
        (
            "def f(x, y):\n    'x and y (S,)'\n    return [1]  # (S,)\n"
            "f([1, 2], [3, 4])",
            "where S=2",
        ),
    ],
)
def test_shape_comment_that_lies_is_rejected(notebook, source, expected):
    notebook.code[1].source = source
    message = said(notebook)[0]
    assert "small.ipynb [2], line " in message and expected in message
    assert "Correct the comment or the code." in message


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "def f(x):\n    'Return it, (T,), of x (S,).'\n"
            "    return [x]\nf([1])",
            "the docstring says (T,), the code gives the shape (1, 1)",
        ),
        (
            "def f():\n    'Return the sums (S,) and the parts (T, S).'\n"
            "    return [[1]], [2]\nf()",
            "the docstring says (S,), (T, S), the code gives the shape (1, 1)",
        ),
        (
            "def f(seq_len):\n    'Do it; result (..., T).'\n"
            "    return [1]\nf(2)",
            "gives the shape (1,) where T=2. Correct the docstring",
        ),
        (
            "def f():\n    'Tell which are right, (B,).'\n"
            "    return [[1]]\nf()",
            "the docstring says (B,), the code gives the shape (1, 1)",
        ),
        (
            "def f(x):\n    'Put x (T, K) apart: return it. The output is "
            "(T, 2 K).'\n    return x\nf([[1, 2]])",
            "the docstring says (T, 2 K), the code gives the shape (1, 2) "
            "where K=2, T=1",
        ),
        (
            "def f():\n    'Make it. Returns (T, 3 S).'\n"
            "    return [[1]]  # (T, S)\nf()",
            "the comment says (T, S), the docstring (T, 3 S). Correct",
        ),
        (
            "def f():\n    'Return it, (B, T).'\n"
            "    return [[1]]  # (B, S)\nf()",
            "line 3: the comment says (B, S), the docstring (B, T). Correct",
        ),
    ],
)
def test_docstring_that_lies_of_the_result_is_rejected(
    notebook, source, expected
):
    notebook.code[0].source += "\nx = [1, 2, 3]"
    notebook.code[1].source = source
    notebook.code[-1].source = "y = [4]  # ()"
    first, *_, last = said(notebook)
    assert "small.ipynb [2], line " in first and expected in first
    assert "small.ipynb [7], line 1: the comment says ()" in last


@pytest.mark.parametrize(("shape", "lies"), [("T,", False), ("K,", True)])
def test_stub_that_lies_of_its_solution_is_rejected(shape, lies):
    words = f'"""Return the sums, ({shape}), of the rows of x (T, K)."""'
    stub, faults = f"def sums(x):\n    {words}\n    return None", []
    variables = {"sums_solution": lambda x: [sum(row) for row in x]}
    answer = shapes.attempted(stub, "sums_solution", variables, faults)
    assert answer([[1, 2], [3, 4], [5, 6]]) == [3, 7, 11]
    assert bool(faults) == lies
    if lies:
        assert "the stub sums, line 3: the docstring says (K,)" in faults[0]
        assert "Correct the docstring" in faults[0]


def test_cell_s_own_names_give_sizes(notebook):
    notebook.code[0].source = "seq_len = 2"
    notebook.code[1].source = "x = [1, 2, seq_len]  # (T,)"
    assert "where T=2" in said(notebook)[0]


def test_call_that_is_wrong_on_purpose_gives_no_sizes():
    body = "    return x  # (T,)\n"
    wrong = f"def f(x):\n    'x (T, S)'\n{body}f([1])\n"
    either = f"def g(x):\n    'x (T, S) or (T,)'\n{body}g([1, 2])"
    source = wrong + either
    code = compile(shapes.rewrite(source), "cell", "exec")
    exec(code, shapes.hooks({}, []))


def test_names_of_the_sizes_are_those_of_the_notation_page():
    page = (BOOK / "notation.md").read_text("utf-8")
    for name, letter in shapes.NAMES.items():
        assert re.search(rf"(?m)^\| {letter} \|.*`{name}`", page), name


def test_shape_that_computes_with_an_unknown_letter_is_rejected():
    code = compile(shapes.rewrite("x = [1]  # (T + 1,)"), "cell", "exec")
    with pytest.raises(shapes.ShapeError, match="T has no size yet"):
        exec(code, shapes.hooks({}, []))


@pytest.mark.parametrize(
    "source",
    [
        "for x in ([1], [1], [1, 2]):\n    y = x  # (T,)",
        "def f(x, y):\n    x = x  # (T,)\n    return y  # (T,)\n"
        "f([1], [1])\nf([1], [1, 2])",
    ],
)
def test_shape_that_is_wrong_after_it_was_right_is_rejected(source):
    code = compile(shapes.rewrite(source), "cell", "exec")
    with pytest.raises(shapes.ShapeError, match="where T=1"):
        exec(code, shapes.hooks({}, []))


@pytest.mark.parametrize(
    "source",
    [
        "x = [[1, 2, 3]]  # (B, T): a remark",
        "x = [[1, 2, 3]]  # (..., T)",
        "x = [[[1, 2, 3, 4, 5, 6]]]  # (B, T, 2 * 3)",
        "def f(x):\n    return x  # (T,)\nf([1])\nf([1, 2])",
        "a, b = [1], [2, 3]  # (T,), (S,)",
        "x = 1.5  # ()",
        "def f(x):\n    'Return x (S,) anew, (T,).'\n    return x\nf([1])",
        "def f(x):\n    'x (K,), of the output. The output is (2 K,), or so "
        "(T,)'\n    return x + x\nf([1])",
        "def f():\n    'Return it, (B, D).'\n    return [[1]]  # (B, H * K)",
        "def f():\n    'Return if it has the shape (T,).'\n    return 1\nf()",
        "def f(x):\n    if x:\n        y = [x]  # (T,)\n    return y\nf(1)",
    ],
)
def test_true_shape_comment_passes(source):
    code = compile(shapes.rewrite(source), "cell", "exec")
    exec(code, shapes.hooks({}, []))


def panel():
    """Return axes with a matrix, light and dark, and a grey line."""
    axes = Figure().add_subplot()
    axes.imshow([[1, 0]], cmap="cividis")
    axes.grey = axes.plot([0, 1], color="0.6")[0].get_color()
    return axes


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
        ("It has 3 rows.", "computed by nothing"),
        ("It has 3<!--= 3 --> rows.", "names no variable"),
        ("It has three<!--= math.ceil(3) --> rows.", "names no variable"),
        ("It has 3<!--= sum(i for i in (1, 2)) --> rows.", "no variable"),
        ("It has four<!--= n --> rows.", "says four, but n is 3"),
        ("It is post-norm<!--= order -->.", "post-norm, but order is 'pre-"),
        ("Thirty-six<!--= 11 * n --> rows.", "says Thirty-six, but 11 * n is"),
        ("It has rows<!--= n -->.", "rows is neither a number nor a colour"),
        ("It takes 3<!--= n * 2**20 / 2**20 --> GiB.", "does not say GiB"),
        ("It is 3.0<!--= n --> per cent.", "does not say per cent"),
        ("It takes 3<!--= n --> bytes.", "does not say bytes"),
        ("It takes 3<!--= n * 1e3 / 1e3 --> µs.", "does not say µs"),
        ("In PyTorch it is 3<!--= n_tf -->.", "says 3 of PyTorch, by 'n_tf'"),
        ("PyTorch: 3<!--= n_tf --> in `torch.nn`", "says 3 of torch, by"),
        (
            "With `np.sum` 3<!--= n_keras -->.",
            "3 of np, by 'n_keras'. Correct",
        ),
        ("It is 3<!--= 100 * n / 1e2 -->.", "is in per cent, which the"),
        ("It is 3<!--= n * 2**20 / 2**20 --> big.", "write 3 MiB, or correct"),
        (
            "It is light<!--= pixel(panel, 0, 1) -->.",
            "#00224e, that is blue or dark",
        ),
        (
            "It is orange<!--= panel.grey -->.",
            "#999999, that is bright or grey",
        ),
    ],
)
def test_number_in_prose_that_is_wrong_is_rejected(text, expected):
    (message,) = check_claims(
        text,
        {
            **{"n": 3, "n_tf": 3, "n_keras": 3, "math": math},
            **{"order": "pre-norm", "panel": panel()},
        },
    )
    assert expected in message


@pytest.mark.parametrize(
    "text",
    [
        "It has 3<!--= n -->, **3**<!--= n --> and 0.333<!--= n / 9 -->.",
        "It is 3,000<!--= 1000 * n -->, −3<!--= -n -->.",
        "It is 3.0e-3<!--= n / 1e3 -->, 1.1<!--= math.log(3) -->.",
        "`x[1]`, $2^3$, [section 3.4](#x), GPT-2, float32\n\n```\n16\n```",
        "$-1$, $k = 0$, $12 a$, $4 \\cdot 16 = 64$, $d =$ 3<!--= n -->",
        "1. one\n2. two\n\n### Exercise 3: x (easy, 10 minutes)",
        "Three<!--= n -->, **thirty-three**<!--= 11 * n -->.",
        "Pre-norm<!--= order --> is the order, *pre-norm*<!--= order -->.",
        "2.0<!--= 2**20 * (n - 1) / 2**20 --> MiB, 75<!--= 25 * n * 100 / "
        "100 --> %, 3<!--= num_bytes --> bytes, 3<!--= n --> rows.",
        "In PyTorch 3<!--= n_torch -->, 3<!--= n_tf --> rows in Keras, "
        "3<!--= n_tf -->; and 3<!--= n --> in NumPy.\n3<!--= n_keras -->.",
        "200<!--= 100 * (n - 1) -->, 300<!--= 100 * n --> per cent.\n"
        "| 300<!--= 100 * n --> |\nSome 900<!--= 100 * round(300 * n / 100) "
        "-->.",
        "Light<!--= pixel(panel, 0, 0) -->, dark<!--= pixel(panel, 0, 1) -->, "
        "blue<!--= pixel(panel, 0, 1) -->, grey<!--= panel.grey -->.",
    ],
)
def test_true_number_in_prose_passes(text):
    names = {"n": 3, "num_bytes": 3, "order": "pre-norm", "panel": panel()}
    names["math"] = math
    names |= {f"n_{library}": 3 for library in ("torch", "tf", "keras")}
    assert check_claims(text, names) == []


@pytest.mark.parametrize(
    ("word", "colour"),
    [
        *(("purple", "#2d004b"), ("orange", "#7f3b08")),  # the ends of PuOr
        *(("orange", "#e08214"), ("blue", "#2b4c7e"), ("yellow", "#fde725")),
        *(("green", "#3b7d3b"), ("red", "#d7191c"), ("black", "black")),
        *(("white", "1.0"), ("bright", "#ffea46"), ("dark", "#00224e")),
    ],
)
def test_colour_has_its_name_and_no_other_hue_s(word, colour):
    assert is_called(colour, word)
    others = {*HUES, "white", "black", "grey"} - {word}
    if word not in ("bright", "dark"):
        assert not any(is_called(colour, other) for other in others)


@pytest.mark.parametrize(
    "text",
    [
        "Five checks, five<!--= len(checks) --> checks, 5<!--= x --> checks.",
        "Three rules, which hold:\n\n- a\n- b\n- c\n\nThe three rules.",
        "Which?\nTwo ways, of three kinds.\n\n| a |\n|---|\n| 1 |\n| 2 |",
        "With three steps.\n\nThis is a list:\n\n- a\n- b",
        "Four thousand words, eight kinds of words; five are words. See "
        "[Are sixteen heads better?](https://arxiv.org/abs/1905.10650).",
        "[Setup](#setup), [adding](#summary), [small](#setup), [it](#x)",
        f"Wolf in 2016, May 2020, [April 2022]({THREAD}), [2022]({THREAD})",
        "Vaswani et al. 2017, section 3.5; and "
        "[FlashAttention](https://arxiv.org/abs/2205.14135), "
        "[section 3.1](https://arxiv.org/abs/1706.03762)",
    ],
)
def test_what_is_counted_or_cited_rightly_passes(notebook, text):
    put(notebook, text)
    checks = [numbers.counts_in_words_are_computed]
    checks += [numbers.lists_are_as_long_as_announced]
    checks += [links.links_lead_where_they_say]
    checks += [citations.citations_are_those_of_the_bibliography]
    checks += [citations.links_lead_to_what_is_spoken_of]
    assert [m for check in checks for m in check(notebook)] == []


def test_wrong_number_in_an_alt_text_is_found(notebook):
    alt = {"alt": "A line through 4<!--= len(x) --> points."}
    notebook.code[5].metadata["mystnb"] = {"image": alt}
    (message,) = run(notebook).messages
    assert "small.ipynb [6]: the prose says 4" in message


def test_wrong_number_is_found_where_it_stands(notebook):
    notebook.markdown[6].source = "It has 4<!--= len(x) --> numbers."
    (message,) = run(notebook).messages
    assert (
        "small.ipynb, cell 11" in message and "correct the number" in message
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It will have 3<!--= len(x) --> numbers.", []),
        ("It will have 4<!--= len(x) --> numbers.", ["but len(x) is 3"]),
        ("It will have 3<!--= len(y) --> numbers.", ["is not defined"]),
        ("It is 3.14<!--= math.pi --> or 1<!--= x[0] -->.", []),
    ],
)
def test_number_that_announces_a_variable_waits_for_it(
    notebook, text, expected
):
    notebook.code[-1].source = "x = [0, 0]"
    notebook.markdown[0].source += f"\n\n{text}"
    found = run(notebook).messages
    assert len(found) == len(expected)
    for message, part in zip(found, expected, strict=True):
        assert "small.ipynb, cell 1 ('# Small')" in message
        assert part in message


def test_number_keeps_the_variable_that_stands_above_it(notebook):
    notebook.markdown[6].source = "It has 3<!--= len(x) -->, not 2<!--= y -->."
    notebook.code[4].source = "x, y = [0, 0], 2"
    assert run(notebook).messages == []


# The comparison


@pytest.mark.parametrize(
    ("stored", "computed", "agree"),
    [
        ("0.30000000000000004", "0.3", True),
        ("tensor([0.1235, 2.0000])", "tensor([0.1235, 2.0000])", True),
        ("tensor([0.1235, 2.0000])", "tensor([0.1236, 2.0000])", False),
        ("464.1590", "464.1591", False),
        ("8.433e-26", "8.434e-26", False),
        ("0.0", "1e-300", False),
        ("1.5 words", "1.5 Words", False),
        ("7", "8", False),
        ("12345678901", "12345678902", False),
        ("1.0 nan", "1.0 inf", False),
        ("1.5, 2.5", "1.5", False),
    ],
)
def test_decimals_within_a_tolerance_and_the_rest_to_the_letter(
    stored, computed, agree
):
    assert compare.text_agrees(stored, computed) == agree


IMAGE = (
    "from IPython.display import Image, display\n"
    f"import base64\ndisplay(Image(base64.b64decode('{PNG}')))"
)


def black_pixel():
    """Return a black pixel as a base64 PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (1, 1)).save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Compare one notebook, a cell for each fault, in one kernel."""
    path = tmp_path_factory.mktemp("nbval") / "faulty.ipynb"
    stream = new_output("stream", name="stdout", text="a\n")
    cells = {
        "same": code("0.1 + 0.2", value("0.3")),
        "text": code("'a'", value("'b'")),
        "decimal": code("1.2345", value("1.2346")),
        "integer": code("7", value("8")),
        "missing": code("7"),
        "surplus": code("x = 7", value("7")),
        "order": code("print('a')\n7", value("7"), stream),
        "picture": code(IMAGE, figure(black_pixel())),
        "same picture": code(IMAGE, figure()),
        "cleared": new_code_cell("7"),
        "skipped": code("7", value("8"), tags=["nbval-skip"]),
        "ignored": code("# NBVAL_IGNORE_OUTPUT\n7", value("8")),
        "raises": code("1 / 0"),  # last, as it ends the run
    }
    node = new_notebook(cells=list(cells.values()), metadata=METADATA)
    for number, (name, cell) in enumerate(cells.items(), 1):
        if name != "cleared":
            cell.execution_count = number
    nbformat.write(node, path)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", "pyproject.toml"),
            *("-p", "conftest", "-n0", "-p", "no:cacheprovider"),
            *("-q", "--color=no", str(path)),
        ],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    failed = re.findall(r"^FAILED .*::\[(\d+)\]", result.stdout, re.MULTILINE)
    names = list(cells)
    return {names[int(number) - 1] for number in failed}, result.stdout, names


def test_comparison_finds_each_changed_output(comparison):
    failed, text, names = comparison
    assert failed == set(names) - {"same", "same picture"}, text


def test_comparison_names_cell_and_remedy(comparison):
    failed, text, names = comparison
    for name in failed:
        assert f"faulty.ipynb [{names.index(name) + 1}]: " in text
    assert "make outputs NB=" in text
    assert "not executed, or its outputs were cleared" in text
    assert "The figure differs by" in text


# make outputs


def test_outputs_are_stored_once_and_for_all(notebook, capsys):
    notebook.code[1].update(outputs=[], execution_count=None)
    notebook.code[5].source = IMAGE
    notebook.code[5].metadata["outputId"] = "1"
    notebook.node.metadata["colab"] = {}
    outputs.write(notebook)
    os.chmod(notebook.path, 0o640)
    assert outputs.main([str(notebook.path)]) == 0
    stored = notebook.path.read_bytes()
    assert messages(Notebook.read(notebook.path)) == []
    assert stat.S_IMODE(notebook.path.stat().st_mode) == 0o640
    assert outputs.main([str(notebook.path)]) == 0
    assert notebook.path.read_bytes() == stored
    assert "stored" in (out := capsys.readouterr().out) and "unchanged" in out
