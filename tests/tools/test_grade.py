"""Every solution of the book is graded correct."""

import json
import subprocess
import sys

import nbformat
import pytest

from tools.settings import ROOT, chapters
from tools.sheets.exercises import exercises, sheet
from tools.sheets.export import solved

# All in one process, as to import the frameworks takes longest.
COMMAND = """
import json, os, sys
from pathlib import Path
from tools.commands.grade import ONE
from tools.sheets import grade

os.environ.update(dict.fromkeys(ONE, "1"))
grade.SECONDS, sheets = json.load(sys.stdin)
found = {p: grade.grade(Path(p), texts) for p, texts in sheets.items()}
print(json.dumps(found))
"""


def filled(path):
    """Return a graded sheet with its solutions."""
    node = sheet(path, graded=True)
    for exercise in exercises(path):
        for cell in node.cells:
            if cell.id == exercise.stub.id:
                cell.source = solved(exercise)
    return nbformat.writes(node)


def graded(seconds, sheets):
    """Return {chapter: {student: row}} of {chapter: {student: text}}."""
    command = [sys.executable, "-c", COMMAND]
    given = json.dumps([seconds, {str(p): s for p, s in sheets.items()}])
    found = subprocess.run(
        command, input=given, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert found.returncode == 0
    return json.loads(found.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def solutions():
    paths = [ROOT / f"{name}.ipynb" for name in chapters()]
    return graded(60, {p: {"right": filled(p)} for p in paths})


@pytest.mark.parametrize("name", chapters())
def test_each_solution_is_correct(solutions, name):
    path = ROOT / f"{name}.ipynb"
    row = solutions[str(path)]["right"]
    assert list(row.values()) == ["correct"] * len(exercises(path))
