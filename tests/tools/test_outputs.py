"""The comparison finds each changed output, and `make outputs` stores them.

Where things go wrong, the message names the place and says what to do, and
every file is as it was to the byte, with no half of one beside it.
"""

import base64
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from tools.commands import outputs
from tools.notebooks import METADATA, Notebook
from tools.rules import RULES, stored
from tools.settings import ROOT

COMPARE = [
    *(sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p"),
    *("conftest", "-q", "-p", "no:cacheprovider", "--color=no"),
]


def compare(*given):
    """Compare notebooks; return the exit code and what is said."""
    done = subprocess.run(
        [*COMPARE, *map(str, given)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


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


def value(text):
    return new_output("execute_result", {"text/plain": text})


def figure(colour):
    words = "<IPython.core.display.Image object>"
    data = {"image/png": pixel(colour), "text/plain": words}
    return new_output("display_data", data)


def write(path, cells):
    """Write a notebook of (code, *outputs), as if it had been run."""
    cells = [new_code_cell(code, outputs=shown) for code, *shown in cells]
    for number, cell in enumerate(cells, 1):
        cell.execution_count = number
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_comparison_names_each_changed_cell_and_both_roads(tmp_path):
    stream = new_output("stream", name="stdout", text="a\n")
    cells = {
        "same": ("0.1 + 0.2", value("0.30000000000000004")),
        "same picture": (IMAGE, figure("white")),
        "text": ("'a'", value("'b'")),
        "decimal": ("1.23456789", value("1.23456788")),
        "integer": ("7", value("8")),
        "missing": ("7",),
        "surplus": ("x = 7", value("7")),
        "order": ("print('a')\n7", value("7"), stream),
        "picture": (IMAGE, figure("black")),
        "raises": ("1 / 0",),  # last, as it ends the run
    }
    _, text = compare(
        "-n0", "-rf", write(tmp_path / "faulty.ipynb", cells.values())
    )
    failed = re.findall(r"^FAILED .*::\[(\d+)\]", text, re.MULTILINE)
    assert [*map(int, failed)] == [*range(3, len(cells) + 1)], text
    for number in failed:
        assert f"faulty.ipynb [{number}]: " in text
    differs = "the code does not give what is stored.\n--- stored\n"
    assert differs in text and "\n-8\n+7\n" in text
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
    stored_so = notebook.path.read_bytes()
    new = Notebook.read(notebook.path)
    assert not [m for rule in RULES for m in rule(new)]
    assert stat.S_IMODE(notebook.path.stat().st_mode) == 0o640
    assert outputs.main([str(notebook.path)]) == 0
    assert notebook.path.read_bytes() == stored_so
    assert "stored" in (out := capsys.readouterr().out) and "unchanged" in out


# What a second cell does, and what is said of it.
HEEDLESS = """import time
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass"""
DIES = "import os, time; time.sleep(0.5); os._exit(0)"
CELLS = {
    "ends": (DIES, ": its process died. Memory ran out"),
    "hangs": (HEEDLESS, " [2]: still running after 3 s. Mend an endless loop"),
    "raises": ("x = 1\n1 / 0", " [2]: ZeroDivisionError: division by zero"),
}
NO_NOTEBOOK = "is no Jupyter notebook. Restore it, as with: git checkout"
FILES = {
    "binary": (b"\x89PNG\xff\x00", NO_NOTEBOOK),
    "object": (b"{}", NO_NOTEBOOK),
    "no_source": (
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": '
        b'[{"cell_type": "markdown", "id": "a", "metadata": {}}]}',
        NO_NOTEBOOK,
    ),
    "conflict": (
        b'{\n<<<<<<< HEAD\n "cells": [],\n=======\n>>>>>>> main\n}',
        "holds conflict markers of a merge. Resolve them, then run: make",
    ),
}


@pytest.fixture
def folder(tmp_path):
    """Return a folder of notebooks whose second cell fails."""
    folder = tmp_path / "book"
    folder.mkdir()
    two = value("2")
    for name, (source, _) in CELLS.items():
        cells = [("1 + 1", two), (source,), ("1 + 1", two)]
        write(folder / f"{name}.ipynb", cells)
    return folder


def test_recording_names_each_fault_goes_on_and_harms_no_file(
    folder, monkeypatch, capsys
):
    for name, (content, _) in FILES.items():
        (folder / f"{name}.ipynb").write_bytes(content)
    last = write(folder / "sound.ipynb", [("'new'",)])
    before = contents(folder)
    faulty = [folder / name for name in before if name != last.name]
    execute = outputs.execute
    monkeypatch.setattr(outputs, "execute", lambda book: execute(book, 3))
    assert outputs.main([folder / "missing.ipynb", *faulty, last]) == 1
    said, after = capsys.readouterr().err, contents(folder)
    assert "missing.ipynb: there is no such notebook" in said
    for name, (_, message) in CELLS.items():
        assert f"{name}.ipynb{message}" in said
    for name, (_, message) in FILES.items():
        assert f"{name}.ipynb: {message}" in said
    assert "line 2, in <module>\n    1 / 0\n" in said
    assert said.count("was left as it was.") == len(before)
    assert before.pop("sound.ipynb") != after.pop("sound.ipynb")
    assert after == before


def test_comparison_names_the_cell_that_loses_the_process(folder):
    before = contents(folder)
    # In a process that may be lost, as in `make test`.
    code, said = compare(
        "--cell-timeout=3", "-n1", "-rs", f"--rootdir={folder}", folder
    )
    assert code == 1 and contents(folder) == before
    for name, (_, message) in CELLS.items():
        assert f"{name}.ipynb [2]{message.removeprefix(' [2]')}" in said
        assert f"{name}.ipynb [2] failed" in said
    # One failure for each; what came after it says so, and is not compared,
    # nor is the lost cell, which xdist hands out once more.
    assert "3 failed, 3 passed, 4 skipped" in said


def test_comparison_names_the_file_that_is_no_notebook(tmp_path):
    for name, (content, _) in FILES.items():
        (tmp_path / f"{name}.ipynb").write_bytes(content)
    code, said = compare("-n0", tmp_path)
    assert code == 2 and "Traceback" not in said
    for name, (_, message) in FILES.items():
        assert f"{name}.ipynb: {message}" in said


ASKED_TWICE = """
import pytest

@pytest.mark.parametrize("turn", [1, 2])
def test_of_what_it_leaves(chapter, turn):
    chapter({!r})
"""


@pytest.mark.parametrize("cells_first", [True, False])
def test_chapter_that_fails_is_run_once_and_said_once(folder, cells_first):
    path, ran = folder / "small.ipynb", folder.parent / "ran"
    source = f"open({str(ran)!r}, 'a').write('x')\nassert 1 == 2, 'no'"
    write(path, [(source,), ("1",)])
    test = folder.parent / "test_small.py"
    test.write_text(ASKED_TWICE.format(str(path.with_suffix(""))))
    order = [path, test] if cells_first else [test, path]
    code, said = compare("-n0", "-rs", *order)
    assert code == 1 and ran.read_text() == "x"
    assert "1 failed, 3 skipped" in said
    assert said.count("small.ipynb [1]: AssertionError: no") == 1
    assert f"{path} [1] failed" in said
    # The traceback is the cell's, with its line, and nothing of the tools.
    assert "assert 1 == 2" in said and '.py"' not in said


def test_interrupted_recording_leaves_the_notebook(tmp_path):
    path, running = tmp_path / "slow.ipynb", tmp_path / "running"
    source = f"import time\nopen({str(running)!r}, 'w')\ntime.sleep(60)"
    before = write(path, [(source,)]).read_bytes()
    # Ctrl-C works, though a shell in the background has switched it off.
    code = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"import runpy, signal, sys; {code}; runpy.run_module("
    code += "'tools.commands.outputs', run_name='__main__', alter_sys=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", code, path],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not running.exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode and path.read_bytes() == before
    assert "Interrupted; what was stored before is whole." in said


def test_full_disk_leaves_the_notebook(tmp_path, capsys, monkeypatch):
    path = write(tmp_path / "sound.ipynb", [("'new'",)])
    before = contents(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.os, "replace", full)
    assert outputs.main([path]) == 1
    assert contents(tmp_path) == before
    said = capsys.readouterr().err
    assert "No space left on device" in said and "left as it was" in said


# Notebooks that other programs have saved


def saved_by_colab(node):
    """Return a notebook with what Colab adds to it, and without ids."""
    node.update(nbformat_minor=0)
    node.metadata.update(colab={"gpuType": "T4"}, accelerator="GPU")
    node.metadata.language_info = {"name": "python"}
    for cell in node.cells:
        del cell["id"]
        cell.metadata.update(id="Hx3k", outputId="1f0c", executionInfo={})
        cell.outputs[0].data["application/vnd.google+json"] = {"type": "int"}
    return node


def of_version_3(node):
    """Return a notebook as IPython 2 saved it."""
    return nbformat.convert(node, 3)


@pytest.mark.filterwarnings("ignore:Cell is missing an id field")
@pytest.mark.parametrize("saved", [saved_by_colab, of_version_3])
def test_foreign_notebook_is_rejected_until_recorded(tmp_path, saved):
    def found():
        notebook = Notebook.read(path)
        return [*stored.file_is_as_it_was_stored(notebook)]

    path = write(tmp_path / "foreign.ipynb", [("1 + 1", value("2"))] * 2)
    path.write_text(json.dumps(saved(nbformat.read(path, as_version=4))))
    messages = found()
    assert messages and all("make outputs NB=" in m for m in messages)
    assert outputs.main([path]) == 0
    assert found() == []
    for cell in Notebook.read(path).code:
        assert cell.outputs[0].data == {"text/plain": "2"}
