"""Read the book's notebooks. Nothing in here imports a framework."""

import ast
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

from tools.settings import BOOK, ROOT

# What a notebook may carry besides its cells' source and outputs.
METADATA = {
    "colab": {"toc_visible": True},
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "file_extension": ".py",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
# What a first reading leaves out: the site folds it, JupyterLab collapses it.
COLLAPSED = "jp-MarkdownHeadingCollapsed"
ASIDE = re.compile(r"##+ (?:Side road: .*|Setup|The other mistakes)(?:\n|$)")
CELL_METADATA = {"cellView", "jupyter", "mystnb", "tags", COLLAPSED}
# What folds a code cell in Colab, in JupyterLab and on the site.
FOLDED = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "tags": ["hide-input"],
}
# The tags of twins, and what their titles say where both stand in one file.
NAMES = {"pytorch": "PyTorch", "tensorflow": "TensorFlow"}

DIED = "its process died. Memory ran out, or the code ended it: mend the cell."
HANGS = "still running after {:g} s. Mend an endless loop, or compute less."


class NotebookError(Exception):
    """A notebook cannot be used; the message says what to do about it."""


def paths():
    """Return the paths of all notebooks of the book, sorted."""
    return sorted(BOOK.glob("*.ipynb"))


@cache  # for the disk is asked, and the rules ask often
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
        except UnicodeDecodeError:
            text = ""  # which is no notebook either
        if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
            raise NotebookError(
                f"{label(path)}: holds conflict markers of a merge. "
                f"Resolve them, then run: {remedy(path)}"
            )
        invalid = {}  # takes what nbformat would only log
        try:
            node = nbformat.reads(
                text, as_version=4, capture_validation_error=invalid
            )
        except Exception as error:  # of many kinds
            invalid["error"] = error
        if invalid:
            raise NotebookError(
                f"{label(path)}: is no Jupyter notebook. "
                f"Restore it, as with: git checkout -- {label(path)}"
            )
        return cls(path, node)

    @classmethod
    def page(cls, path):
        """Return a page of Markdown as a notebook, a cell for each section."""
        parts = re.split(r"\n(?=##+ )", path.read_text("utf-8"))
        cells = [new_markdown_cell(part) for part in parts]
        return cls(path, new_notebook(cells=cells))

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
        part = "section" if Path(self.path).suffix == ".md" else "cell"
        first = cell.source.strip().split("\n")[0][:40]
        return f"{label(self.path)}, {part} {place} ({first!r})"

    def text(self):
        """Return what its file holds."""
        return nbformat.v4.writes(self.node) + "\n"

    def tidy(self):
        """Leave in the notebook what belongs there, in one form; return it."""
        nbformat.v4.upgrade(self.node)  # Colab saves 4.0, without ids of cells
        self.node.metadata = nbformat.from_dict(METADATA)
        for cell in self.cells:
            for key in set(cell.metadata) - CELL_METADATA | {COLLAPSED}:
                cell.metadata.pop(key, None)
            if is_aside(cell):
                cell.metadata[COLLAPSED] = True
        for count, cell in enumerate(self.code, 1):
            cell.source = titled(cell)
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type != "stream":
                    # How large a figure is shown that is drawn dense.
                    for key in {*output.get("metadata", {})} - {"image/png"}:
                        del output.metadata[key]
                if output.output_type == "execute_result":
                    output.execution_count = count
        return self


def tags(cell):
    """Return a cell's tags as a set."""
    return set(cell.metadata.get("tags", []))


def is_aside(cell):
    """Tell whether a cell begins with the heading of what is left out."""
    return cell.cell_type == "markdown" and bool(ASIDE.match(cell.source))


def titled(cell):
    """Return a cell's source, its title naming the framework of a twin."""
    source = untitled(cell.source)
    for tag, name in NAMES.items():
        if tag in tags(cell) and source.startswith("# @title "):
            return re.sub(
                r"(?<=.)$", f" ({name})", source, count=1, flags=re.M
            )
    return source


def untitled(source):
    """Return a cell's source without the framework in its title."""
    names = "|".join(NAMES.values())
    return re.sub(
        rf"\A(# @title .*) \(({names})\)$", r"\1", source, flags=re.M
    )


def alt_text(cell):
    """Return what a code cell's metadata says that its figure shows."""
    return cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")


@cache
def parsed(source):
    """Return the syntax tree of a cell, which nobody may change."""
    return ast.parse(source)


def definitions(notebook):
    """Yield (name, source, cell) of the functions and classes defined."""
    for cell in notebook.code:
        for node in parsed(cell.source).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name, ast.unparse(node), cell
