"""Write a chapter's exercises as a notebook: `make sheet NB=book/masks.ipynb`.

`FRAMEWORK=pytorch` leaves the other framework out, `GRADED=1` the checks.
"""

import sys

from tools.notebooks import NotebookError, label
from tools.sheets.exercises import sheet
from tools.sheets.source import TeachError, chosen, write


def main(name="", framework="", graded=""):
    """Write a sheet; return the exit code."""
    try:
        path, framework = chosen(name, framework)
        if graded not in ("", "0", "1"):
            raise TeachError(
                f"GRADED={graded} is neither; GRADED=1 leaves the checks out, "
                "and without it they stay."
            )
        graded = graded == "1"
        notebook = sheet(path, framework, graded)
        kind = "graded" if graded else "practice"
        print(f"{label(write(notebook, path.stem, kind, framework))}: written")
    except (TeachError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
