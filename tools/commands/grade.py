"""Grade a folder of sheets: `make grade NB=book/x.ipynb SUBMISSIONS=folder`.

Writes a CSV with a row for each notebook in the folder, and a column for each
exercise: "correct", "not attempted", or which mistake it is.
"""

import csv
import os
import sys
from pathlib import Path

from tools.notebooks import NotebookError, label
from tools.settings import ROOT
from tools.teach.grade import grade
from tools.teach.source import TeachError, chosen

# A process that was forked hangs where a library has threads.
ONE = ["OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"]


def main(name="", folder="", out=""):
    """Write the grades of a folder; return the exit code."""
    try:
        path, _ = chosen(name, "")
        grades = grade(path, read(folder))
    except (TeachError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    out = Path(out or ROOT / "build" / "grades" / f"{path.stem}.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["student", *next(iter(grades.values()))])
        rows.writerows([name, *row.values()] for name, row in grades.items())
    verdicts = [verdict for row in grades.values() for verdict in row.values()]
    print(
        f"{label(out)}: written; {verdicts.count('correct')} of "
        f"{len(verdicts)} answers are correct.\n"
        "This is no sandbox: what students wrote ran with your rights. "
        "README.md says how to run it in a container."
    )
    return 0


def read(folder):
    """Return {name: text} of the notebooks in a folder, and in its folders."""
    files = sorted(Path(folder).rglob("*.ipynb")) if folder else []
    files = [f for f in files if ".ipynb_checkpoints" not in f.parts]
    if not files:
        where = f"{folder} holds no notebooks"
        if not folder:
            where = "There is nothing to grade"
        elif not Path(folder).is_dir():
            where = f"there is no folder {folder}"
        raise TeachError(
            f"{where}: put the students' sheets into a folder, and name it: "
            "SUBMISSIONS=folder."
        )
    return {
        str(file.relative_to(folder).with_suffix("")): file.read_text(
            "utf-8", errors="replace"
        )
        for file in files
    }


if __name__ == "__main__":
    os.environ.update(dict.fromkeys(ONE, "1"))
    sys.exit(main(*sys.argv[1:]))
