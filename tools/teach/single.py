"""A whole chapter in one framework, without the cells of the other."""

from itertools import groupby

from nbformat.v4 import new_markdown_cell, new_notebook

from tools.notebooks import METADATA, Notebook
from tools.teach.exercises import NAMES, code, copied, joined
from tools.teach.living import living
from tools.teach.source import attribution, plain


def single(path, framework):
    """Return a chapter without the other framework. Raises NotebookError."""
    notebook = Notebook.read(path)
    left = used(living(code(notebook.cells), framework))
    groups = {
        id(cell): [s.source for s in group]
        for cell, group in groupby(left, lambda s: s.cell)
    }
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cells.append(copied(cell, plain(cell.source, path)))
        elif id(cell) in groups:
            cells.append(joined(cell, groups[id(cell)]))
    cells.insert(1, new_markdown_cell(note(path, framework), id="single"))
    return new_notebook(cells=cells, metadata=METADATA)


def used(statements):
    """Return statements without the imports of what none of them reads."""
    reads = {name for s in statements for name in s.reads | s.later}
    kept = [s.without(s.binds - reads) if s.imports else s for s in statements]
    return [s for s in kept if s]


def note(path, framework):
    """Return what stands at the top of a chapter in one framework."""
    [other] = {*NAMES} - {framework}
    return (
        f"> **Note.** This is the chapter in {NAMES[framework]} alone. Where "
        "a sentence says *both*, or announces a comparison that is not there, "
        f"the other framework is {NAMES[other]}, which is left out.\n\n"
        + attribution(path, f"what it has in {NAMES[framework]}")
    )
