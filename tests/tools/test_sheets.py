"""Sheets run by themselves in a new process.

Those of a few chapters; `--all-sheets` runs those of all.
"""

import json
import subprocess
import sys

import pytest

from tools.commands import sheet as sheet_command
from tools.commands import single as single_command
from tools.settings import ROOT, chapters
from tools.sheets import source
from tools.sheets.exercises import exercises, sheet
from tools.sheets.source import NAMES, TeachError

# Imports only what a sheet needs, and reads what it says.
RUN = """
import ast, json, linecache, sys
names, said = {"__name__": "sheet"}, []
for place, text in enumerate(json.load(sys.stdin)):
    cell = f"<cell {place}>"  # whose text inspect may ask for
    lines = [line + "\\n" for line in text.split("\\n")]
    linecache.cache[cell] = len(text), None, lines, cell
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, cell, "exec"), names)
    if last:
        code = compile(ast.Expression(last.value), cell, "eval")
        said.append(eval(code, names))
loaded = [name for name in ("torch", "tensorflow") if name in sys.modules]
said = [x for x in said if str(x).startswith("Exercise")]
print(json.dumps([said, loaded]))
"""
FEW = {("masks", None), ("attention", "tensorflow"), ("tiles", "pytorch")}


def run(notebook, *more):
    """Return what a sheet says, and the frameworks that it has loaded."""
    texts = [c.source for c in notebook.cells if c.cell_type == "code"]
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([*texts, *more]),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("framework", [None, *NAMES])
@pytest.mark.parametrize("name", chapters())
def test_a_sheet_runs_by_itself(name, framework, graded, pytestconfig):
    stem = name.removeprefix("book/")
    everything = pytestconfig.getoption("all_sheets")
    if not everything and (stem, framework) not in FEW:
        pytest.skip("runs with --all-sheets")
    path = ROOT / f"{name}.ipynb"
    mine = exercises(path)
    solved = [] if graded else [e.solution.source for e in mine]
    said, loaded = run(sheet(path, framework, graded), *solved)
    if framework:
        assert {*loaded} <= {framework.replace("py", "")}
    wanted = [f"Exercise {e.number}: not attempted yet." for e in mine]
    assert graded or said[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("command", "given", "says"),
    [
        (sheet_command, [""], "'' is no chapter; write NB=book/masks.ipynb"),
        (sheet_command, ["README.md"], "is no chapter"),
        (sheet_command, ["book/none.ipynb"], "is no chapter"),
        (sheet_command, ["book/masks.ipynb", "keras"], "is no framework"),
        (sheet_command, ["book/masks.ipynb", "", "yes"], "GRADED=yes"),
        (single_command, ["book/masks.ipynb", "jax"], "is no framework"),
    ],
)
def test_what_cannot_be_done_is_explained(command, given, says, capsys):
    assert command.main(*given) == 1
    said = capsys.readouterr().err
    assert says in said and "Traceback" not in said


def test_a_chapter_without_exercises_is_named(monkeypatch):
    monkeypatch.setattr("tools.sheets.exercises.read", lambda p: ([], [], ""))
    with pytest.raises(TeachError, match="masks.ipynb: has no exercises"):
        sheet("book/masks.ipynb")


def test_a_sheet_lies_outside_of_the_book(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(source, "SHEETS", tmp_path / "new")
    assert sheet_command.main("book/masks.ipynb", "pytorch", "1") == 0
    assert (tmp_path / "new" / "masks-graded-pytorch.ipynb").exists()
    assert "written" in capsys.readouterr().out
