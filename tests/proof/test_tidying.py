"""`make outputs NB=` needs no kernel where no code changed."""

import subprocess

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.commands import outputs
from tools.notebooks import METADATA, Notebook
from tools.rules.stored import (
    executed_in_order,
    metadata_is_what_belongs_there,
)


def commit(folder):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["add", "."], ["commit", "-qm", "as it is"]):
        subprocess.run([*git, *command], cwd=folder, check=True)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Commit a small notebook with the pins; return its path."""
    monkeypatch.setattr(outputs, "ROOT", tmp_path)
    result = nbformat.v4.new_output(
        "execute_result", {"text/plain": "1"}, execution_count=1
    )
    cells = [
        new_markdown_cell("A tpyo."),
        new_code_cell("1", outputs=[result], execution_count=1),
    ]
    path = tmp_path / "small.ipynb"
    path.touch()
    outputs.write(Notebook(path, new_notebook(cells=cells, metadata=METADATA)))
    (tmp_path / "constraints.txt").write_text("torch==1\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "net.py").touch()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return path


@pytest.fixture
def runs(monkeypatch):
    """Return the list of notebooks that would have been run."""
    executed = []

    def execute(notebook):
        executed.append(notebook.path)
        return Notebook(notebook.path, nbformat.from_dict(notebook.node))

    monkeypatch.setattr(outputs, "execute", execute)
    return executed


def edit(path, change):
    """Change a notebook as JupyterLab does, which adds its own metadata."""
    notebook = Notebook.read(path)
    notebook.node.metadata.language_info["version"] = "3.11.9"
    notebook.cells[0].metadata["editable"] = True
    change(notebook)
    path.write_text(nbformat.writes(notebook.node, indent=2))
    return outputs.store(path, anew=False)


def mend_typo(notebook):
    notebook.cells[0].source = "A typo."
    notebook.code[0].update(execution_count=7, outputs=[])  # run half


def test_a_typo_is_stored_without_a_kernel(path, runs):
    said = edit(path, mend_typo)
    assert said == "tidied; no code has changed, so its outputs stay"
    assert not runs
    notebook = Notebook.read(path)
    assert notebook.cells[0].source == "A typo."
    assert notebook.code[0].outputs[0].data["text/plain"] == "1"
    for rule in (executed_in_order, metadata_is_what_belongs_there):
        assert not list(rule(notebook))


def test_other_code_packages_or_tools_run_it(path, runs):
    edit(path, lambda notebook: notebook.code[0].update(source="2"))
    for decides in ("constraints.txt", "tools/run.py"):
        commit(path.parent)
        (path.parent / decides).write_text("torch==2\n")
        edit(path, mend_typo)
    assert runs == 3 * [path]


def test_what_was_never_committed_with_its_outputs_is_run(path, runs):
    new = path.with_name("new.ipynb")
    new.write_bytes(path.read_bytes())
    outputs.store(new, anew=False)
    notebook = Notebook.read(path)
    notebook.code[0].execution_count = None
    outputs.write(notebook)
    commit(path.parent)
    edit(path, mend_typo)
    assert runs == [new, path]


def test_without_a_name_all_is_run(path, runs):
    assert (
        outputs.store(path, anew=True) == "unchanged; it prints what is stored"
    )
    assert runs == [path]
