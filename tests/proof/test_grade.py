"""Every solution of the book is graded correct, on a sheet of either kind.

A loop costs the exercise in which it is, and no other.
"""

import json
import subprocess
import sys

import nbformat
import pytest

from tools.settings import BOOK, ROOT, chapters
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
LOOP = "def {}(*given):\n    while True:\n        pass"


def filled(path, graded, answers):
    """Return a sheet with these answers, {number: source}, and solutions."""
    node = sheet(path, graded=graded)
    for exercise in exercises(path):
        for cell in node.cells:
            if cell.id == exercise.stub.id:
                cell.source = answers.get(exercise.number, solved(exercise))
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
    return graded(60, {p: {"right": filled(p, True, {})} for p in paths})


@pytest.mark.parametrize("name", chapters())
def test_each_solution_is_correct(solutions, name):
    path = ROOT / f"{name}.ipynb"
    row = solutions[str(path)]["right"]
    assert list(row.values()) == ["correct"] * len(exercises(path))


def test_a_loop_costs_its_own_exercise():
    path, answers = BOOK / "masks.ipynb", {2: LOOP.format("window_mask")}
    kinds = {str(kind): filled(path, kind, answers) for kind in (True, False)}
    for row in graded(3, {path: kinds})[str(path)].values():
        assert row.pop("2 window_mask").startswith("it does not end within 3")
        assert {*row.values()} == {"correct"}
