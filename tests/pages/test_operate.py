"""The walk through sheets and grades does what the page shows."""

import re
import subprocess
import sys
import textwrap

import nbformat

from tools.settings import BOOK, ROOT
from tools.sheets.exercises import sheet

OPERATE = (BOOK / "operate.md").read_text("utf-8")


def test_the_walk_names_the_mistakes_of_three_students(tmp_path):
    lines = re.search(r"(?s)<<'END'\n(.*?)\n *END\n", OPERATE)[1]
    said = re.search(r"(?s)```text\n(.*?)\n *```", OPERATE)[1]
    assert "make sheet NB=book/masks.ipynb GRADED=1" in OPERATE
    sheets = tmp_path / "build" / "sheets"
    sheets.mkdir(parents=True)
    notebook = sheet(BOOK / "masks.ipynb", graded=True)
    (sheets / "masks-graded.ipynb").write_text(nbformat.writes(notebook))
    play = [sys.executable, "-c", textwrap.dedent(lines)]
    subprocess.run(play, cwd=tmp_path, check=True)
    submissions, grades = tmp_path / "build/submissions", tmp_path / "a.csv"
    command = [sys.executable, "-m", "tools.commands.grade"]
    command += ["book/masks.ipynb", str(submissions), str(grades)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found = [",".join(line.split(",")[:2]) for line in grades.open()]
    assert found == textwrap.dedent(said).strip().split("\n")
