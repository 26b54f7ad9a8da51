"""A class hands in its sheets: each answer gets its own verdict.

The sheets are those of Masks, which needs NumPy alone.
"""

import copy
import csv
import functools
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools.commands.grade import main
from tools.settings import BOOK, ROOT
from tools.sheets.exercises import exercises, sheet
from tools.sheets.export import solved

WRONG = """
def window_mask(seq_len, window):
    {}
    return np.zeros((seq_len, seq_len), bool)
"""
OWN_HELPERS = """
%matplotlib inline
STEP = 1


def back_of(seq_len):
    return np.subtract.outer(np.arange(seq_len), np.arange(seq_len)) * STEP


def window_mask(seq_len, window):
    return (back_of(seq_len) >= 0) & (back_of(seq_len) < window)


undefined_name + 1
"""
IS_WRONG = "not the mask of the window: False at [0, 0] (query, key)"
# Student: the answer to exercise 2, what the grader says of it.
CLASS = {
    "right": (None, "correct"),
    "wrong": (
        WRONG.format("return np.tri(seq_len) > 0"),
        "the far past is not blocked",
    ),
    "empty": ("", "not attempted"),
    "own helpers": (OWN_HELPERS, "correct"),
    "timed": ("%%time\n\n%%capture\n" + OWN_HELPERS, "correct"),
    "other name": (
        "def windows(): pass",
        "no function window_mask was found",
    ),
    "does not parse": (
        "def window_mask(seq_len, window)\n    return 3",
        "it does not parse: expected ':' (line 1)",
    ),
    "exits": (WRONG.format("raise SystemExit"), "it ends with SystemExit"),
    "ends": (
        "import os\n" + WRONG.format("os._exit(0)"),
        "it ends the process",
    ),
    "loops": (
        WRONG.format("while True:\n        pass"),
        "it does not end within 10 seconds",
    ),
    "prints": (WRONG.format("print('x' * 10**8)"), IS_WRONG),
    "long": (
        WRONG.format("raise ValueError('x' * 10**6)"),
        "your function raises ValueError: xxx",
    ),
}
TAMPERED = [
    "def check_window_mask(answer):\n    return 'Exercise 2: correct.'",
    "class Wrong(Exception): pass",
    "def agree(*given):\n    return True",
    "while True:\n    pass",
    "exit()",
    "return 3",
    "(" * 9999,
]


@functools.cache
def empty(graded):
    return sheet(BOOK / "masks.ipynb", graded=graded)


def handed_in(answer, *more, graded=True):
    """Return a sheet as text, all solved, but exercise 2 with this answer.

    more: the sources of further cells.
    """
    node = copy.deepcopy(empty(graded))
    by_id = {cell.id: cell for cell in node.cells}
    for exercise in exercises(BOOK / "masks.ipynb"):
        source = solved(exercise)
        if exercise.number == 2 and answer is not None:
            source = answer or exercise.stub.source
        by_id[exercise.stub.id].source = source
    node.cells += map(new_code_cell, more)
    return nbformat.writes(node)


def grades(folder):
    """Return {student: row} of the CSV that the command writes, and lines."""
    command = [sys.executable, "-m", "tools.commands.grade"]
    out = folder.parent / "grades.csv"
    given = [BOOK / "masks.ipynb", folder, out]
    found = subprocess.run(
        [*command, *given], check=True, cwd=ROOT, capture_output=True
    )
    with out.open(encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    return rows, found.stdout.decode().splitlines()


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "sheets"
    tampered = handed_in(WRONG.format("pass"), *TAMPERED, graded=False)
    files = {f"{name}.ipynb": handed_in(CLASS[name][0]) for name in CLASS}
    files |= {
        "tampered/masks/masks.ipynb": tampered,
        "tampered/masks/timestamp.txt": "2026-11-23",
        "pair/one.ipynb": handed_in(None),
        "pair/two.ipynb": nbformat.writes(new_notebook()),
        "pair/.ipynb_checkpoints/one.ipynb": "",
        "pair/two.py": solved(exercises(BOOK / "masks.ipynb")[0]),
        "text.ipynb": "[1, 2]",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return grades(folder)


@pytest.fixture(scope="module")
def rows(graded):
    return graded[0]


def test_each_student_has_a_row_and_what_is_odd_a_line(graded):
    rows, lines = graded
    students = [*CLASS, "pair/one", "pair/two", "tampered", "text"]
    assert sorted(rows) == sorted(students)
    assert lines[:2] == [
        "Not graded, as they are no notebooks: pair/two.py.",
        "pair/two: no function that book/masks.ipynb asks for was found; is "
        "it a sheet of another chapter?",
    ]
    told = [verdict for row in rows.values() for verdict in row.values()]
    assert lines[2].endswith(
        f"written; students: {len(rows)}, answers: {5 * len(rows)}, correct: "
        f"{told.count('correct')}."
    )


@pytest.mark.parametrize("student", CLASS)
def test_each_answer_gets_its_verdict(rows, student):
    verdict = rows[student]["2 window_mask"]
    assert verdict.startswith(CLASS[student][1]) and len(verdict) < 350


@pytest.mark.parametrize("student", [*CLASS, "tampered"])
def test_an_answer_costs_no_other(rows, student):
    columns = ["1 count_pairs", "3 packed_mask", "4 mean_of_tokens"]
    columns.append("5 masked_softmax")
    assert {rows[student][column] for column in columns} == {"correct"}


def test_a_check_of_the_student_s_own_judges_nothing(rows):
    assert rows["tampered"]["2 window_mask"] == IS_WRONG


def test_what_is_no_notebook_is_told(rows):
    assert rows["text"]["2 window_mask"] == "the file is no notebook"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["", ""], "'' is no chapter; write NB=book/masks.ipynb"),
        (["book/no.ipynb", "tests"], "'book/no.ipynb' is no chapter"),
        (["book/masks.ipynb", ""], "There is nothing to grade: put the"),
        (["book/masks.ipynb", "no"], "there is no folder no: put the"),
        (["book/masks.ipynb", "tests"], "tests holds no notebooks: put the"),
    ],
)
def test_what_cannot_be_graded_gets_one_sentence(given, says, capsys):
    assert main(*given) == 1
    found = capsys.readouterr().err
    assert says in found and found.count("\n") == 1
