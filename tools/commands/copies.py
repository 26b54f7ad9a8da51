"""Renew the definitions that chapters copy from earlier ones: `make copies`.

Only the one file arrives in Colab, so a chapter holds a copy of what it needs.
The first chapter that defines a name is its source.
"""

import sys
from difflib import unified_diff

from tools.commands.outputs import write
from tools.net.rules.book import bodies, first_bodies
from tools.notebooks import Notebook, remedy
from tools.settings import ROOT, chapters


def renew(notebooks):
    """Yield (notebook, cell, its source before) of each cell that changes."""
    first = first_bodies(notebooks)
    for notebook in notebooks:
        # From the end, so that the lines above keep their numbers.
        for name, cell, where in reversed(list(bodies(notebook))):
            before = cell.source
            lines = before.split("\n")
            lines[where] = first[name][0].split("\n")
            cell.source = "\n".join(lines)
            if cell.source != before:
                yield notebook, cell, before


def main():
    notebooks = [Notebook.read(ROOT / f"{name}.ipynb") for name in chapters()]
    changed = {}
    for notebook, cell, before in renew(notebooks):
        changed[notebook.path] = notebook
        name = notebook.name(cell)
        texts = before.split("\n"), cell.source.split("\n")
        print(*unified_diff(*texts, name, name, lineterm=""), sep="\n")
    for path, notebook in changed.items():
        write(notebook)
        print(f"Written; now run: {remedy(path)}")
    if not changed:
        print("All copies are as the first chapter has them.")


if __name__ == "__main__":
    sys.exit(main())
