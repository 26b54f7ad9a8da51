"""Run `make outputs` and the comparison where things go wrong.

Each time, the message names the place and says what to do, the exit code is
not 0, and every file is as it was to the byte, with no half of one beside it.
"""

import json
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.commands import outputs
from tools.notebooks import METADATA, Notebook
from tools.rules import stored
from tools.settings import ROOT

# A module run as by python -m; Ctrl-C works, though a shell that started the
# tests in the background has switched it off.
RUN = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
COMPARE = [
    *("pytest", "-c", "pyproject.toml", "-p", "conftest", "-n0", "-q"),
    *("-p", "no:cacheprovider", "--color=no", "-rs"),
]


def start(module, *paths):
    """Start a module on notebooks."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *module, *paths],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process):
    """Return a process's exit code and what it said."""
    text, _ = process.communicate(timeout=60)
    return process.returncode, text


def write(path, *sources):
    """Write a notebook that was run, but for the cells of the sources."""
    cells = [new_code_cell(s) for s in ("1 + 1", *sources, "1 + 1")]
    for number, cell in enumerate(cells, 1):
        cell.execution_count = number
    for cell in (cells[0], cells[-1]):
        cell.outputs = [new_output("execute_result", {"text/plain": "2"})]
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "book"
    folder.mkdir()
    return folder


# What a cell does, and what is said of it.
CELLS = {
    "ends": (
        "import os, time; time.sleep(0.5); os._exit(0)",
        ": its process died. Memory ran out",
    ),
    "hangs": (  # and heeds no interrupt
        "import time\nwhile True:\n    try:\n        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n        pass",
        ": still running after 3 s. Mend an endless loop",
    ),
}
RAISES = {"raises": ("x = 1\n1 / 0", ", line 2: ZeroDivisionError: division")}
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


def test_recording_names_each_fault_goes_on_and_harms_no_file(
    folder, monkeypatch, capsys
):
    for name, (content, _) in FILES.items():
        (folder / f"{name}.ipynb").write_bytes(content)
    for name, (source, _) in {**CELLS, **RAISES}.items():
        write(folder / f"{name}.ipynb", source)
    last = write(folder / "sound.ipynb", "'new'")
    before = contents(folder)
    monkeypatch.setattr(outputs, "CELL_TIMEOUT", 3)
    faulty = [folder / name for name in before if name != last.name]
    assert outputs.main([folder / "missing.ipynb", *faulty, last]) == 1
    said, after = capsys.readouterr().err, contents(folder)
    assert "missing.ipynb: there is no such notebook" in said
    for name, (_, message) in {**CELLS, **RAISES}.items():
        assert f"{name}.ipynb [2]{message}" in said
    for name, (_, message) in FILES.items():
        assert f"{name}.ipynb: {message}" in said
    assert "ZeroDivisionError: division by zero\n    1 / 0\n" in said
    assert said.count("was left as it was.") == len(before)
    assert "Traceback" not in said
    assert before.pop("sound.ipynb") != after.pop("sound.ipynb")
    assert after == before


def test_comparison_names_the_cell_that_loses_the_process(folder):
    for name, (source, _) in CELLS.items():
        write(folder / f"{name}.ipynb", source)
    write(folder / "sound.ipynb")
    before = contents(folder)
    # In a process that may be lost, as in `make test`.
    options = ["--cell-timeout=3", "-n1", f"--rootdir={folder}"]
    code, said = finish(start(COMPARE, *options, folder))
    assert code == 1 and contents(folder) == before
    for name, (_, message) in CELLS.items():
        assert f"{name}.ipynb [2]{message}" in said
        assert f"{name}.ipynb [2] failed" in said
    # One failure for each; what came after it says so, and is not compared,
    # nor is the lost cell, which xdist hands out once more.
    assert "2 failed, 4 passed, 3 skipped" in said
    assert "Traceback" not in said


ASKED_TWICE = """
import pytest

@pytest.mark.parametrize("turn", [1, 2])
def test_of_what_it_leaves(chapter, turn):
    chapter({!r})
"""


@pytest.mark.parametrize("cells_first", [True, False])
def test_chapter_that_fails_is_run_once_and_said_once(folder, cells_first):
    ran = folder.parent / "ran"
    source = f"open({str(ran)!r}, 'a').write('x')\nassert 1 == 2, 'no'"
    path = write(folder / "small.ipynb", source)
    test = folder.parent / "test_small.py"
    test.write_text(ASKED_TWICE.format(str(path.with_suffix(""))))
    order = [path, test] if cells_first else [test, path]
    code, said = finish(start(COMPARE, *order))
    assert code == 1 and ran.read_text() == "x"
    passed = "1 passed, " if cells_first else ""
    assert f"1 failed, {passed}{3 if passed else 4} skipped" in said
    assert said.count("small.ipynb [2]: AssertionError: no") == 1
    assert f"{path} [2] failed" in said
    # The traceback is the cell's, with its line, and nothing of the tools.
    assert "assert 1 == 2" in said and '.py"' not in said


def test_comparison_names_the_file_that_is_no_notebook(folder):
    for name, (content, _) in FILES.items():
        (folder / f"{name}.ipynb").write_bytes(content)
    code, said = finish(start(COMPARE, folder))
    assert code == 2
    for name, (_, message) in FILES.items():
        assert f"{name}.ipynb: {message}" in said
    assert "Traceback" not in said


def test_interrupted_recording_leaves_the_notebook(folder):
    running = folder.parent / "running"
    source = f"import time\nopen({str(running)!r}, 'w')\ntime.sleep(60)"
    path = write(folder / "slow.ipynb", source)
    before = contents(folder)
    process = start(["tools.commands.outputs"], path)
    while not running.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code and contents(folder) == before
    assert "Interrupted; what was stored before is whole." in said
    assert "Traceback" not in said


def test_full_disk_leaves_the_notebook(folder, capsys, monkeypatch):
    path = write(folder / "sound.ipynb", "'new'")
    before = contents(folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.os, "replace", full)
    assert outputs.main([path]) == 1
    assert contents(folder) == before
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
def test_foreign_notebook_is_rejected_until_recorded(folder, saved):
    def found():
        notebook = Notebook.read(path)
        checks = stored.executed_in_order, stored.file_is_as_written
        return [m for check in checks for m in check(notebook)]

    path = write(folder / "foreign.ipynb")
    saved_so = saved(nbformat.read(path, as_version=4))
    path.write_text(json.dumps(saved_so))
    messages = found()
    assert messages and all("make outputs NB=" in m for m in messages)
    assert outputs.main([path]) == 0
    assert found() == []
    for cell in Notebook.read(path).code:
        assert cell.outputs[0].data == {"text/plain": "2"}
    stored_so = contents(folder)
    assert outputs.main([path]) == 0 and contents(folder) == stored_so
