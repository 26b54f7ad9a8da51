"""Write a chapter's exercises for a grader: `make export NB=... FOR=nbgrader`.

`FOR=otter` writes them for otter-grader; `FRAMEWORK=pytorch` leaves the other
framework out.
"""

import sys

import nbformat

from tools.notebooks import NotebookError, label
from tools.settings import ROOT
from tools.sheets.export import FORMATS
from tools.sheets.source import TeachError, chosen


def main(name="", grader="", framework=""):
    """Write what a grader takes; return the exit code."""
    try:
        path, framework = chosen(name, framework)
        if grader not in FORMATS:
            raise TeachError(
                f"{grader!r} is no grader; write FOR=nbgrader or FOR=otter."
            )
        files = FORMATS[grader](path, framework)
    except (TeachError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    name = "-".join(filter(None, [grader, path.stem, framework]))
    folder = ROOT / "build" / "exports" / name
    for place, content in files.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str):
            content = nbformat.writes(content) + "\n"
        target.write_text(content, "utf-8")
        print(f"{label(target)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
