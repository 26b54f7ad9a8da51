"""A whole chapter in one framework, without what needs the other one.

Its outputs are the chapter's. Links within it are such as Colab follows, which
takes the id of a cell; links to other pages lead to the site. Side roads, the
setup and the other mistakes are collapsed, in Colab and in JupyterLab.
"""

import re

from nbformat.v4 import new_markdown_cell, new_notebook

from tools.markdown import anchor, headings
from tools.notebooks import (
    COLLAPSED,
    METADATA,
    Notebook,
    is_aside,
    untitled,
)
from tools.sheets.cells import left
from tools.sheets.exercises import NAMES, copied
from tools.sheets.source import COLAB, attribution, plain

NOTE = """> **Note.** This is the chapter in {ours} alone, written from the \
book's notebook.
> Where a sentence speaks of both frameworks, or announces code that is not \
here, the other one is {theirs}.
> {gone} of {all} code cells are left out.
"""


# What a chapter sets before TensorFlow is imported.
QUIET = re.compile(
    r"(?m)^(# Before TensorFlow.*|(# .*\n)*os\.environ\[\"TF_.*)\n\n?"
)

# In a list of names, those of the other framework.
TWINS = {
    "pytorch": r", `\w+(_tf|TF)`",
    "tensorflow": r"`(\w+)`, (?=`\1(_tf|TF)`)",
}


def without_tensorflow(cells):
    """Return the sources of cells, by id, without settings of TensorFlow."""
    sources = {cell.id: QUIET.sub("", cell.source) for cell in cells}
    if not any(re.search(r"\bos\.", text) for text in sources.values()):
        lines = re.compile(r"(?m)^import os\n\n?")
        sources = {name: lines.sub("", s) for name, s in sources.items()}
    return sources


def single(path, framework):
    """Return a chapter without the other framework, or raise NotebookError."""
    notebook = Notebook.read(path)
    [other] = {*NAMES} - {framework}
    kept = {c.id: c for c in left(notebook.code, framework)}
    sources = {name: cell.source for name, cell in kept.items()}
    if framework == "pytorch":
        sources = without_tensorflow(kept.values())
    places = {
        anchor(title): f"#scrollTo={cell.id}"
        for cell in notebook.markdown
        for _, title in headings(cell.source)
    }
    cells, count = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = COLAB.sub("", cell.source)
            if cell.id == "built-before":  # a list of both frameworks' names
                text = re.sub(TWINS[framework], "", text)
            new = copied(cell, plain(text, path, places))
            if is_aside(cell):
                new.metadata[COLLAPSED] = True
        elif cell.id in kept:
            new = copied(cell, untitled(sources[cell.id]))
            new.outputs = cell.outputs
            count += 1
            for part in [new, *new.outputs]:
                if "execution_count" in part:
                    part["execution_count"] = count
        else:
            continue
        new.metadata["id"] = cell.id  # as Colab knows it
        cells.append(new)
    note = NOTE.format(
        ours=NAMES[framework],
        theirs=NAMES[other],
        gone=len(notebook.code) - len(kept),
        all=len(notebook.code),
    )
    of = f"what it has in {NAMES[framework]}"
    note = new_markdown_cell(f"{note}\n{attribution(path, of)}", id="single")
    cells.insert(1, note)
    aside = [cell.id for cell in cells if COLLAPSED in cell.metadata]
    colab = {"toc_visible": True, "collapsed_sections": aside}
    return new_notebook(cells=cells, metadata=METADATA | {"colab": colab})
