"""Write a chapter in one framework: `make single NB=... FRAMEWORK=pytorch`.

It is run first, and written with its outputs only if it runs to the end.
"""

import os
import sys

from tools.commands.outputs import execute
from tools.notebooks import Notebook, NotebookError, label
from tools.run.compare import ENVIRONMENT
from tools.sheets.single import single
from tools.sheets.source import NAMES, SHEETS, TeachError, chosen, write


def main(name="", framework=""):
    """Write a chapter in one framework; return the exit code."""
    os.environ.update(ENVIRONMENT)
    try:
        path, framework = chosen(name, framework)
        if framework is None:
            raise TeachError(
                "Which framework is to stay? Write FRAMEWORK=pytorch or "
                "FRAMEWORK=tensorflow."
            )
        notebook = single(path, framework)
        print(
            f"{label(path)}: runs in {NAMES[framework]} alone, to store its "
            "outputs; most chapters take less than a minute.",
            flush=True,
        )
        SHEETS.mkdir(parents=True, exist_ok=True)
        target = SHEETS / f"{path.stem}-{framework}.ipynb"
        new = execute(Notebook(target, notebook))
        print(f"{label(write(new.node, path.stem, framework))}: written")
    except (TeachError, NotebookError) as error:
        print(f"{error}\nNothing was written.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
