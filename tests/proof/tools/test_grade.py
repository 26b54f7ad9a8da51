"""Every solution of the book is graded correct, on a sheet of either kind.

A loop costs the exercise in which it is, and no other.
"""

import csv
import subprocess
import sys

import nbformat
import pytest

from tools.settings import BOOK, ROOT, chapters
from tools.teach.exercises import exercises, sheet
from tools.teach.export import solved

COMMAND = """
import os, sys
os.environ |= dict.fromkeys(["OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"], "1")
from tools.commands.grade import main
from tools.teach import grade

grade.SECONDS = float(sys.argv.pop(1))
sys.exit(main(*sys.argv[1:]))
"""
LOOP = "def {}(*given):\n    while True:\n        pass"


def verdicts(path, folder, seconds, answers):
    """Return the rows of two sheets with these answers, {number: source}."""
    for graded in (False, True):
        node = sheet(path, graded=graded)
        for exercise in exercises(path):
            for cell in node.cells:
                if cell.id == exercise.stub.id:
                    source = answers.get(exercise.number, solved(exercise))
                    cell.source = source
        (folder / f"{graded}.ipynb").write_text(nbformat.writes(node), "utf-8")
    given = [str(seconds), path, folder, folder / "grades.csv"]
    command = [sys.executable, "-c", COMMAND, *given]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", chapters())
def test_each_solution_is_correct(name, tmp_path):
    path = ROOT / f"{name}.ipynb"
    for row in verdicts(path, tmp_path, 60, {}):
        assert len(row) == 1 + len(exercises(path))
        assert {*row.values()} == {row["student"], "correct"}


def test_a_loop_costs_its_own_exercise(tmp_path):
    answers = {2: LOOP.format("window_mask")}
    for row in verdicts(BOOK / "masks.ipynb", tmp_path, 3, answers):
        assert row.pop("2 window_mask").startswith("it does not end within 3")
        assert {*row.values()} == {row["student"], "correct"}
