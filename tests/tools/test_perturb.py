"""A run under perturbation says what is asserted or printed otherwise."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from benchmarks import perturb
from tools.notebooks import Notebook


@pytest.mark.parametrize("number", [2, 3])
def test_what_changes_is_said_and_the_rest_runs(tmp_path, number):
    cells = [
        new_code_cell("import math\nroot = math.sqrt(NUMBER)"),
        new_markdown_cell("The root."),
        new_code_cell("assert root < 1.5"),
        new_code_cell("print(f'{root:.2f}')"),
    ]
    cells[-1].outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="1.41\n")
    ]
    notebook = Notebook(tmp_path / "x.ipynb", new_notebook(cells=cells))
    said = "\n".join(perturb.changes(notebook, {"NUMBER": number}))
    if number == 2:
        assert said == ""
    else:
        assert "fails: assert root < 1.5" in said
        assert "-1.41" in said and "+1.73" in said
