"""A small chapter that passes every check, for tests that damage it."""

import copy

import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)

from tools.notebooks import (
    COLLAPSED,
    FOLDED,
    METADATA,
    Notebook,
    is_aside,
)
from tools.settings import colab_link


def pytest_collection_modifyitems(items):
    """Begin with nbval, which takes longest."""
    items.sort(key=lambda item: item.path.name != "test_nbval.py")


PNG = (  # one white pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+i"
    "p1sAAAAASUVORK5CYII="
)


def code(source, result=None, **metadata):
    """Return a code cell; its count is set by `small_notebook`."""
    cell = new_code_cell(source, metadata=metadata)
    if result:
        text = {"text/plain": result}
        cell.outputs.append(new_output("execute_result", text))
    return cell


CELLS = [  # texts as they are
    "# Small\n\nWhat is missing?\n\n[Open in Colab](COLAB)",
    "## Setup\n\nOne import.",
    "### What you will be able to do\n\nRead it.",
    "### Notation\n\nSee the [setup](#setup).\n\n"
    "| in code | letter in shapes | in formulas | size here |\n"
    "|---|---|---|---|\n"
    "| | T | | 3<!--= len(x) --> |\n| | S | | 4<!--= len(x) + 1 --> |\n"
    "| `d_model` | D | $d_{model}$ | as needed |\n| `key_mask` | (B, S) | | |",
    code("import math\n\nd_model, key_mask = 3, [[True]]"),
    "A list of **numbers**.",
    code("x = [1, 2, 3]  # (T,)\nx", "[1, 2, 3]"),
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
    code("assert twice(x) == twice_tf(x)\nround(math.pi, 4)", "3.1416"),
    "## Wrong on purpose\n\nA picture.",
    code(
        "x",
        "[1, 2, 3]",
        mystnb={"image": {"alt": "A line that rises from left to right."}},
    ),
    "## The other mistakes\n\nThere are no others.",
    "## In your code\n\n`math.pi`",
    "## Summary\n\nIt is done.\n\n| equation | function | PyTorch |\n"
    "|---|---|---|\n| $(1)$ | `twice` | `math.pi` |",
    "## Exercises\n\n### Exercise 1: more (easy, 5 minutes)\n\n"
    "<details><summary>Hint</summary>Read y.</details>",
    code("# @title Solution\ny = 4  # ()", **FOLDED),
    "## Further reading\n\n- [Setup](#setup), to begin again.",
]


@pytest.fixture
def small_notebook(tmp_path):
    """Return a function: file name -> a chapter that passes every check."""

    def of(name):
        path = tmp_path / name
        cells = [
            new_markdown_cell(cell.replace("COLAB", colab_link(path)))
            if isinstance(cell, str)
            else copy.deepcopy(cell)
            for cell in CELLS
        ]
        for number, cell in enumerate(cells):
            cell.id = f"cell-{number}"
            if is_aside(cell):
                cell.metadata[COLLAPSED] = True
        node = new_notebook(cells=cells, metadata=METADATA)
        node.nbformat_minor = 5
        notebook = Notebook(path, node)
        words = "<IPython.core.display.Image object>"
        data = {"image/png": PNG, "text/plain": words}
        notebook.code[5].outputs.append(new_output("display_data", data))
        for number, cell in enumerate(notebook.code, 1):
            cell.execution_count = number
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = number
        return notebook

    return of


@pytest.fixture
def notebook(small_notebook):
    """Return small.ipynb, which is written as well."""
    notebook = small_notebook("small.ipynb")
    nbformat.write(notebook.node, notebook.path)
    return notebook
