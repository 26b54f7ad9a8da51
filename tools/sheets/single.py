"""A whole chapter in one framework, without what only the other has."""

from itertools import groupby

from nbformat.v4 import new_markdown_cell, new_notebook

from tools.notebooks import METADATA, Notebook, label, tags
from tools.sheets.exercises import NAMES, code, copied, exercises, joined
from tools.sheets.living import living
from tools.sheets.source import COLAB, TeachError, attribution, plain

GONE = " (its code is left out)."
# A chapter has an edition in a framework that has a part of its lines.
LEAST = 0.1
NOTE = """> **Note.** This is the chapter in {ours} alone.
> Where a sentence says *both*, or announces a comparison that is not there, \
the other framework is {theirs}.
> {gone} of {all} code cells are left out, and {cut} are cut.
"""


def single(path, framework):
    """Return a chapter without the other framework.

    Raises NotebookError, and TeachError if it has too little in this one.
    """
    notebook = Notebook.read(path)
    [other] = {*NAMES} - {framework}
    every = code(notebook.cells)
    left = used(living(every, framework))
    require_enough(path, framework, other, every, left)
    lost = [e for e in exercises(path) if framework not in e.frameworks]
    never = {cell.id for e in lost for cell in [*e.run, *e.after]}
    sources = {
        cell.id: [s.source for s in group]
        for cell, group in groupby(left, lambda s: s.cell)
        if cell.id not in never
    }
    bare = announce(notebook.cells, sources)
    cells, cut = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = told(COLAB.sub("", cell.source), lost)
            if cell.id in bare:
                text = text.rstrip().removesuffix(":") + GONE
            cells.append(copied(cell, plain(text, path)))
        elif cell.id in sources:
            cells.append(joined(cell, sources[cell.id]))
            cut += cells[-1].source != cell.source
    count = sum(cell.cell_type == "code" for cell in cells)
    note = NOTE.format(
        ours=NAMES[framework],
        theirs=NAMES[other],
        gone=len(notebook.code) - count,
        all=len(notebook.code),
        cut=cut,
    )
    of = f"what it has in {NAMES[framework]}"
    note = new_markdown_cell(f"{note}\n{attribution(path, of)}", id="single")
    cells.insert(1, note)
    return new_notebook(cells=cells, metadata=METADATA)


def used(statements):
    """Return statements without the imports of what none of them reads."""
    reads = {name for s in statements for name in s.reads | s.later}
    kept = [s.without(s.binds - reads) if s.imports else s for s in statements]
    return [s for s in kept if s]


def require_enough(path, framework, other, every, left):
    """Raise TeachError if nearly all needs the other framework."""

    def lines(statements, others):
        others = {id(s.node) for s in others}
        return sum(
            s.source.strip().count("\n") + 1
            for s in statements
            if id(s.node) not in others and not s.imports
        )

    theirs = living(every, other)
    alone = [s for s in theirs if not tags(s.cell) & {*NAMES}]
    ours, theirs = lines(left, theirs), lines(alone, left)
    if ours < LEAST * (ours + theirs):
        raise TeachError(
            f"{label(path)}: is a chapter in {NAMES[other]}, where {theirs} "
            f"lines have no twin in {NAMES[framework]}. Take the chapter as "
            f"it is, or its sheet: make sheet NB={label(path)}"
        )


def announce(cells, left):
    """Return the ids of texts that announce code of which nothing is left."""
    found, text = set(), None
    for cell in cells:
        if cell.cell_type == "markdown":
            text = cell if cell.source.rstrip().endswith(":") else None
        elif text and cell.id in left:
            found.discard(text.id)
            text = None
        elif text:
            found.add(text.id)
    return found


def told(text, lost):
    """Return Markdown that says which exercises are left out."""
    for exercise in lost:
        start = f"### Exercise {exercise.number}: "
        heading = next((x for x in text.split("\n") if x.startswith(start)), 0)
        if heading:
            says = (
                f"*This exercise is in {exercise.only}; its code is left out.*"
            )
            text = text.replace(heading, f"{heading}\n\n{says}")
    return text
