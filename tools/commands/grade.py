"""Grade a folder of sheets: `make grade NB=book/x.ipynb SUBMISSIONS=folder`.

Writes a CSV with a row for each notebook in the folder, and a column for each
exercise: "correct", "not attempted", or which mistake it is. What else is in
the folder is named.
"""

import csv
import os
import sys
from collections import Counter
from pathlib import Path

from tools.notebooks import NotebookError, label
from tools.settings import ROOT
from tools.sheets.grade import NOT_FOUND, grade
from tools.sheets.source import TeachError, chosen

# A process that was forked hangs where a library has threads.
ONE = ["OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"]


def main(name="", folder="", out=""):
    """Write the grades of a folder; return the exit code."""
    try:
        path, _ = chosen(name, "")
        notebooks, others = read(folder)
        grades = grade(path, notebooks)
    except (TeachError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    out = Path(out or ROOT / "build" / "grades" / f"{path.stem}.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["student", *next(iter(grades.values()))])
        rows.writerows([name, *row.values()] for name, row in grades.items())
    if others:
        print(f"Not graded, as they are no notebooks: {', '.join(others)}.")
    for name, row in grades.items():
        lost = {NOT_FOUND.format(title.split()[1]) for title in row}
        if {*row.values()} == lost:
            print(
                f"{name}: no function that {label(path)} asks for was found; "
                "is it a sheet of another chapter?"
            )
    right = Counter(v for row in grades.values() for v in row.values())
    print(
        f"{label(out)}: written; students: {len(grades)}, answers: "
        f"{right.total()}, correct: {right['correct']}.\n"
        "This is no sandbox: what students wrote ran with your rights. "
        "book/operate.md says how to run it in a container."
    )
    return 0


def read(folder):
    """Return {student: text} of the notebooks in a folder; names of others.

    The folders in it are read as well. A student is named by the first name
    on the way to a notebook, or the whole way, if there are others on it.
    """
    top = Path(folder)
    files = sorted(f for f in top.rglob("*") if f.is_file()) if folder else []
    files = [f.relative_to(top) for f in files]
    files = [
        file
        for file in files
        if not any(part.startswith(".") for part in file.parts)
        and file.name != "timestamp.txt"  # nbgrader's
    ]
    found = [file for file in files if file.suffix == ".ipynb"]
    if not found:
        where = f"{folder} holds no notebooks"
        if not folder:
            where = "There is nothing to grade"
        elif not top.is_dir():
            where = f"there is no folder {folder}"
        raise TeachError(
            f"{where}: put the students' sheets into a folder, and name it: "
            "SUBMISSIONS=folder."
        )
    firsts = [file.parts[0].removesuffix(".ipynb") for file in found]
    texts = {
        first if firsts.count(first) == 1 else str(file.with_suffix("")): (
            (top / file).read_text("utf-8", errors="replace")
        )
        for file, first in zip(found, firsts, strict=True)
    }
    return texts, [str(file) for file in files if file not in found]


if __name__ == "__main__":
    os.environ.update(dict.fromkeys(ONE, "1"))
    sys.exit(main(*sys.argv[1:]))
