"""A whole chapter in one framework, without what needs the other one."""

from nbformat.v4 import new_markdown_cell, new_notebook

from tools.notebooks import METADATA, Notebook
from tools.sheets.cells import left
from tools.sheets.exercises import NAMES, copied, exercises
from tools.sheets.source import COLAB, attribution, plain

NOTE = """> **Note.** This is the chapter in {ours} alone.
> Where a sentence says *both*, or announces code that is gone, the other \
framework is {theirs}.
> {gone} of {all} code cells are left out.
"""


def single(path, framework):
    """Return a chapter without the other framework, or raise NotebookError."""
    notebook = Notebook.read(path)
    [other] = {*NAMES} - {framework}
    lost = [e for e in exercises(path) if framework not in e.frameworks]
    never = {cell.id for e in lost for cell in [*e.run, *e.after]}
    kept = {c.id: c for c in left(notebook.code, framework)}
    kept = {name: cell for name, cell in kept.items() if name not in never}
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = COLAB.sub("", cell.source)
            for exercise in lost:
                says = f"*Its code is left out: it is in {exercise.only}.*"
                start = f"### Exercise {exercise.number}: "
                if text.startswith(start):
                    text = text.replace("\n", f"\n\n{says}\n", 1)
            cells.append(copied(cell, plain(text, path)))
        elif cell.id in kept:
            cells.append(copied(cell, kept[cell.id].source))
    note = NOTE.format(
        ours=NAMES[framework],
        theirs=NAMES[other],
        gone=len(notebook.code) - len(kept),
        all=len(notebook.code),
    )
    of = f"what it has in {NAMES[framework]}"
    note = new_markdown_cell(f"{note}\n{attribution(path, of)}", id="single")
    cells.insert(1, note)
    return new_notebook(cells=cells, metadata=METADATA)
