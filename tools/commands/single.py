"""Write chapters in one framework: `make single NB=... FRAMEWORK=pytorch`.

`make single` alone writes all chapters, in either framework: the notebooks
that the site's Colab buttons open.
"""

import sys

import nbformat

from tools.notebooks import NotebookError, label
from tools.settings import ROOT, chapters
from tools.sheets.roads import screens
from tools.sheets.single import single
from tools.sheets.source import NAMES, TeachError, chosen

EDITIONS = ROOT / "build" / "editions"


def main(name="", framework=""):
    """Write one chapter or all in one framework or both; return the code."""
    try:
        names = [name] if name else [f"{n}.ipynb" for n in chapters()]
        for chapter in names:
            path, only = chosen(chapter, framework)
            for each in [only] if only else NAMES:
                target = EDITIONS / each / path.name
                notebook = single(path, each)
                text = nbformat.writes(notebook) + "\n"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, "utf-8")
                size = f"{screens(notebook):.1f} screens"
                print(f"{label(target)}: written, {size} and side roads")
    except (TeachError, NotebookError) as error:
        print(f"{error}\nThe rest was not written.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
