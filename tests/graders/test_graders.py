"""nbgrader and otter-grader take what is written for them: a class is graded.

Run by `nox --session graders`, where both are installed.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tools.settings import BOOK, ROOT
from tools.sheets.exercises import exercises
from tools.sheets.export import FORMATS, POINTS, solved

NAMES = ["masks", "decoder"]  # which need NumPy alone
# What a student adds below an empty stub.
STUDENTS = {
    "honest": "",
    "lazy": "",
    "redefining": """
agree = lambda *given: True
check_{name} = lambda answer: "Exercise {number}: correct."
""",
    "patching": """
import cellbycell.exercises as module

module.agree = lambda *given: True
np.allclose = lambda *given, **named: True
np.isclose = lambda x, *given, **named: np.ones(np.shape(x), bool)
{name} = lambda *given: 1
""",
    "without exec": "\nexec = lambda *given: None",
    "patching inside": """
def {name}(*given):
    import cellbycell.exercises as module

    module.Wrong.__str__ = lambda wrong: "correct"
    return 1
""",
}
# Who gets all points; the last one should not, and the page says so.
PAID = ["honest", "patching inside"]


def write(files, folder):
    """Write what is exported into a folder."""
    for place, content in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str):
            content = nbformat.writes(content)
        path.write_text(content, "utf-8")


def run(folder, *command):
    """Run a program of this environment in a folder."""
    program = Path(sys.executable).with_name(command[0])
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    found = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        env=os.environ | path | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def hand_in(release, name, student):
    """Return a released notebook with a student's answers."""
    node = nbformat.read(release, as_version=4)
    for exercise in exercises(BOOK / f"{name}.ipynb"):
        [cell] = [
            cell
            for cell in node.cells
            if f"def {exercise.name}(" in cell.source
        ]
        cell.source += STUDENTS[student].format(
            name=exercise.name, number=exercise.number
        )
        if student == "honest":
            cell.source = solved(exercise)
    return nbformat.writes(node)


def leaks(text, name):
    """Return the lines of solutions that stand in a text."""
    found = []
    for exercise in exercises(BOOK / f"{name}.ipynb"):
        given = "".join(c.source for c in [exercise.stub, *exercise.text])
        lines = exercise.solution.source.split("\n")
        found += [
            line
            for line in lines
            if len(line.strip()) > 20 and line.strip() not in given
            if line.strip() in text
        ]
    return found


def expected(name):
    """Return {student: the points} of a class."""
    levels = [e.level for e in exercises(BOOK / f"{name}.ipynb")]
    points = dict.fromkeys(STUDENTS, 0)
    return points | dict.fromkeys(PAID, sum(POINTS[x] for x in levels))


@pytest.mark.parametrize("name", NAMES)
def test_nbgrader(name, tmp_path):
    write(FORMATS["nbgrader"](BOOK / f"{name}.ipynb"), tmp_path)
    run(tmp_path, "nbgrader", "generate_assignment", name)
    release = tmp_path / "release" / name / f"{name}.ipynb"
    text = "".join(cell.source for cell in nbformat.read(release, 4).cells)
    assert not leaks(text, name)
    for student in expected(name):
        folder = tmp_path / "submitted" / student / name
        folder.mkdir(parents=True)
        answers = hand_in(release, name, student)
        (folder / f"{name}.ipynb").write_text(answers, "utf-8")
    run(tmp_path, "nbgrader", "autograde", name)
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        rows = book.assignment_submissions(name)
        assert {row.student.id: row.score for row in rows} == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_otter(name, tmp_path):
    write(FORMATS["otter"](BOOK / f"{name}.ipynb"), tmp_path)
    given = ["--no-run-tests", f"{name}.ipynb", "dist"]
    run(tmp_path, "otter", "assign", *given)
    release = tmp_path / "dist" / "student"
    text = "".join(
        file.read_text("utf-8").replace('\\"', '"')
        for file in release.rglob("*")
        if file.is_file()
    )
    assert not leaks(text, name)
    [archive] = tmp_path.glob("dist/autograder/*.zip")
    found = {}
    for student in expected(name):
        folder = tmp_path / student
        shutil.copytree(release, folder)
        answers = hand_in(folder / f"{name}.ipynb", name, student)
        (folder / f"{name}.ipynb").write_text(answers, "utf-8")
        run(folder, "otter", "run", f"{name}.ipynb", "-a", archive)
        result = json.loads((folder / "results.json").read_text("utf-8"))
        found[student] = sum(test.get("score", 0) for test in result["tests"])
    assert found == expected(name)
