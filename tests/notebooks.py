"""Read the book's notebooks. Nothing in here imports a framework."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"

# What a kernel that records or compares needs. A CUDA build of torch warns on
# stderr where there is no GPU, which is no output of the book.
KERNEL_ENVIRONMENT = {"PYTHONWARNINGS": "ignore:CUDA initialization"}


class NotebookError(Exception):
    """A notebook cannot be used; the message says what to do about it."""


def paths():
    """Return the paths of all notebooks of the book, sorted."""
    return sorted(BOOK.glob("*.ipynb"))


def label(path):
    """Return how messages call a file: its path from the top level."""
    path = Path(path).resolve()
    return str(path.relative_to(ROOT) if ROOT in path.parents else path)


def remedy(path):
    """Return the command that stores a notebook's outputs anew."""
    return f"make outputs NB={label(path)}"


@dataclass
class Notebook:
    """A notebook and where it lies; cells are named as messages do."""

    path: Path
    node: nbformat.NotebookNode

    @classmethod
    def read(cls, path):
        """Read a notebook; raises NotebookError if it is not one."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotebookError(
                f"{label(path)}: there is no such notebook; "
                f"the chapters are in {label(BOOK)}/."
            ) from None
        if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
            raise NotebookError(
                f"{label(path)}: holds conflict markers of a merge. "
                f"Resolve them, then run {remedy(path)}."
            )
        try:
            return cls(path, nbformat.reads(text, as_version=4))
        except Exception as error:
            raise NotebookError(
                f"{label(path)}: is not a readable notebook "
                f"({type(error).__name__}). "
                f"Restore it with: git checkout -- {label(path)}"
            ) from None

    @property
    def cells(self):
        return self.node.cells

    @cached_property
    def code(self):
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @cached_property
    def markdown(self):
        return [cell for cell in self.cells if cell.cell_type == "markdown"]

    def name(self, cell):
        """Return 'book/embedding.ipynb [7]', or the place of a text cell."""
        if cell.cell_type == "code":
            number = next(i for i, c in enumerate(self.code, 1) if c is cell)
            return f"{label(self.path)} [{number}]"
        place = next(i for i, c in enumerate(self.cells, 1) if c is cell)
        first = cell.source.strip().split("\n")[0][:40]
        return f"{label(self.path)}, cell {place} ({first!r})"


def tags(cell):
    """Return a cell's tags as a set."""
    return set(cell.metadata.get("tags", []))
