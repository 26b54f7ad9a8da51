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
from nbformat.v4 import new_code_cell

from tools.commands.grade import main
from tools.settings import BOOK, ROOT
from tools.teach.exercises import exercises, sheet
from tools.teach.export import solved

WRONG = """
def window_mask(seq_len, window):
    {}
    return np.zeros((seq_len, seq_len), bool)
"""
# Replaces what the check compares with.
PATCHES = """
import cellbycell.exercises as judge

judge.agree = lambda *given: True
np.allclose = lambda *given, **named: True
""" + WRONG.format("judge.agree = np.allclose")
# Replaces what it calls, from inside the call.
REACHES = WRONG.format(
    """import sys
    frame = sys._getframe()
    while frame := frame.f_back:
        frame.f_globals["agree"] = lambda *given: True"""
)
OWN_HELPERS = """
%matplotlib inline
STEP = 1


def back_of(seq_len):
    return np.subtract.outer(np.arange(seq_len), np.arange(seq_len)) * STEP


def window_mask(seq_len, window):
    return (back_of(seq_len) >= 0) & (back_of(seq_len) < window)


undefined_name + 1
"""
IS_WRONG = "False at [0, 0] (query, key) is wrong for seq_len=7, window=3"
# Student: the answer to exercise 2, what the grader says of it.
CLASS = {
    "right": (None, "correct"),
    "wrong": (
        WRONG.format("return np.tri(seq_len) > 0"),
        "the far past is not blocked",
    ),
    "empty": ("", "not attempted"),
    "own helpers": (OWN_HELPERS, "correct"),
    "does not parse": (
        "def window_mask(seq_len, window)\n    return 3",
        "it does not parse: expected ':' (line 1)",
    ),
    "exits": (WRONG.format("raise SystemExit"), "it ends with SystemExit"),
    "ends": (
        "import os\n" + WRONG.format("os._exit(0)"),
        "it ends the process",
    ),
    "prints": (WRONG.format("print('x' * 10**8)"), IS_WRONG),
    "long": (
        WRONG.format("raise ValueError('x' * 10**6)"),
        "your function raises ValueError: xxx",
    ),
    "patches": (PATCHES, f"a second check says: {IS_WRONG}"),
    "reaches": (REACHES, f"a second check says: {IS_WRONG}"),
}
TAMPERED = [
    "def judge(*given):\n    return 'correct'",
    "def judged(number):\n    return lambda check: 'correct'",
    "def check_window_mask(answer):\n    return 'Exercise 2: correct.'",
    "class Wrong(Exception): pass",
    "def agree(*given):\n    return True",
    "while True:\n    pass",
    "exit()",
    "return 3",
    "(" * 9999,
    "x = '\0'",
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
    """Return {student: row} of the CSV that the command writes."""
    command = [sys.executable, "-m", "tools.commands.grade"]
    out = folder.parent / "grades.csv"
    given = [BOOK / "masks.ipynb", folder, out]
    subprocess.run([*command, *given], check=True, cwd=ROOT)
    with out.open(encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "sheets"
    (folder / "group").mkdir(parents=True)
    for name, (answer, _) in CLASS.items():
        text = handed_in(answer)
        (folder / f"{name}.ipynb").write_text(text, "utf-8")
    text = handed_in(WRONG.format("pass"), *TAMPERED, graded=False)
    (folder / "group" / "tampered.ipynb").write_text(text, "utf-8")
    (folder / "text.ipynb").write_text("[1, 2]", "utf-8")
    return grades(folder)


@pytest.mark.parametrize("student", CLASS)
def test_each_answer_gets_its_verdict(rows, student):
    verdict = rows[student]["2 window_mask"]
    assert verdict.startswith(CLASS[student][1]) and len(verdict) < 350


@pytest.mark.parametrize("student", [*CLASS, "group/tampered"])
def test_an_answer_costs_no_other(rows, student):
    columns = ["1 count_pairs", "3 packed_mask", "4 mean_of_tokens"]
    columns.append("5 masked_softmax")
    assert {rows[student][column] for column in columns} == {"correct"}


def test_a_check_of_the_student_s_own_judges_nothing(rows):
    assert rows["group/tampered"]["2 window_mask"] == IS_WRONG


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
