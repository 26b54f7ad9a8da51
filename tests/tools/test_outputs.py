"""The comparison finds each changed output, and `make outputs` stores them."""

import base64
import io
import os
import re
import stat
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from tools.commands import outputs
from tools.notebooks import METADATA, Notebook
from tools.rules import RULES
from tools.settings import ROOT


def pixel(colour):
    """Return a PNG of one pixel in base64."""
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1), colour).save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


IMAGE = (
    "from IPython.display import Image, display\n"
    "import base64\n"
    f"display(Image(base64.b64decode('{pixel('white')}')))"
)


def code(source, *results):
    return new_code_cell(source, outputs=list(results))


def value(text):
    return new_output("execute_result", {"text/plain": text})


def figure(colour):
    words = "<IPython.core.display.Image object>"
    data = {"image/png": pixel(colour), "text/plain": words}
    return new_output("display_data", data)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Compare one notebook, a cell for each fault, in one kernel."""
    path = tmp_path_factory.mktemp("nbval") / "faulty.ipynb"
    stream = new_output("stream", name="stdout", text="a\n")
    cells = {
        "same": code("0.1 + 0.2", value("0.30000000000000004")),
        "text": code("'a'", value("'b'")),
        "decimal": code("1.23456789", value("1.23456788")),
        "integer": code("7", value("8")),
        "missing": code("7"),
        "surplus": code("x = 7", value("7")),
        "order": code("print('a')\n7", value("7"), stream),
        "picture": code(IMAGE, figure("black")),
        "same picture": code(IMAGE, figure("white")),
        "cleared": new_code_cell("7"),
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


def test_comparison_names_each_changed_cell_and_both_roads(comparison):
    failed, text, names = comparison
    assert failed == set(names) - {"same", "same picture"}, text
    for name in failed:
        assert f"faulty.ipynb [{names.index(name) + 1}]: " in text
    differs = "the code does not give what is stored.\n--- stored\n"
    assert differs in text and "\n-8\n+7\n" in text
    assert "not executed, or its outputs were cleared" in text
    assert "The figure differs by" in text
    assert "store it with: make outputs NB=" in text
    assert "If it is wrong, mend the code." in text


def test_outputs_are_stored_once_and_for_all(notebook, capsys):
    notebook.code[1].update(outputs=[], execution_count=None)
    notebook.code[5].source = IMAGE
    notebook.code[5].metadata["outputId"] = "1"
    notebook.node.metadata["colab"] = {}
    outputs.write(notebook)
    os.chmod(notebook.path, 0o640)
    assert outputs.main([str(notebook.path)]) == 0
    stored = notebook.path.read_bytes()
    stored_notebook = Notebook.read(notebook.path)
    assert not [m for rule in RULES for m in rule(stored_notebook)]
    assert stat.S_IMODE(notebook.path.stat().st_mode) == 0o640
    assert outputs.main([str(notebook.path)]) == 0
    assert notebook.path.read_bytes() == stored
    assert "stored" in (out := capsys.readouterr().out) and "unchanged" in out
