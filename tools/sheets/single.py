"""A whole chapter in one framework, without what needs the other one.

Its outputs are the chapter's. Links within it are such as Colab follows, which
takes the id of a cell, and JupyterLab, which looks for an anchor of this name;
links to other pages lead to the site. The setup is collapsed; side roads and
the other mistakes stand at the end.
"""

import re
from base64 import b64encode

from nbformat.v4 import new_markdown_cell, new_notebook

from tools.markdown import anchor, headings
from tools.notebooks import (
    COLLAPSED,
    METADATA,
    Notebook,
    NotebookError,
    alt_text,
    label,
    untitled,
)
from tools.sheets.cells import left
from tools.sheets.exercises import NAMES, copied
from tools.sheets.roads import at_the_end
from tools.sheets.source import COLAB, attribution, plain

NOTE = """> **Note.** This is the chapter in {ours} alone, written from the \
book's notebook.
> Where a sentence speaks of both frameworks, or announces code that is not \
here, the other one is {theirs}.
> {gone} of {all} code cells are left out; side roads stand at the end.
> If a picture's controls are missing, run its cell, or trust the notebook \
(in JupyterLab: *Trust Notebook*, in the command palette).
"""
# What a chapter says of its side roads, and of its own button.
ELSEWHERE = re.compile(rf"\n*The site folds the side roads;.*|{COLAB.pattern}")


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


def picture_of(cell):
    """Return a cell that shows the picture of one that is left out, or None.

    A moving picture is code, as its script runs only in an output.
    """
    for output in cell.outputs:
        data = output.get("data", {})
        if html := data.get("text/html"):
            title = cell.source.split("\n")[0]
            show = f"from IPython.display import HTML\n\nHTML({html!r})"
            new = copied(cell, f"{title}\n{show}")
            new.outputs = [output]
            return new
        if svg := data.get("image/svg+xml"):
            where = f"svg+xml;base64,{b64encode(svg.encode()).decode()}"
        elif png := data.get("image/png"):
            where = f"png;base64,{png.strip()}"
        else:
            continue
        text = f"![{alt_text(cell)}](data:image/{where})"
        return new_markdown_cell(text, id=cell.id)


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
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = ELSEWHERE.sub("", cell.source)
            if cell.id == "built-before":  # a list of both frameworks' names
                text = re.sub(TWINS[framework], "", text)
            new = copied(cell, plain(text, path, places))
        elif cell.id in kept:
            new = copied(cell, untitled(sources[cell.id]))
            new.outputs = cell.outputs
        elif not (new := picture_of(cell)):
            continue
        cells.append(new)
    try:
        cells = at_the_end(cells)
    except ValueError as error:
        raise NotebookError(f"{label(path)}: {error}") from None
    note = NOTE.format(
        ours=NAMES[framework],
        theirs=NAMES[other],
        gone=len(notebook.code) - len(kept),
        all=len(notebook.code),
    )
    of = f"what it has in {NAMES[framework]}"
    note = new_markdown_cell(f"{note}\n{attribution(path, of)}", id="single")
    cells.insert(1, note)
    count, collapsed = 0, []
    texts = "".join(cell.source for cell in cells)
    linked = {*re.findall(r"\(#(scrollTo=[\w-]+)\)", texts)}
    for cell in cells:
        cell.metadata["id"] = cell.id  # as Colab knows it
        if (place := f"scrollTo={cell.id}") in linked:
            here = f'\n<a id="{place}"></a>'
            cell.source = re.sub("$", here, cell.source, count=1, flags=re.M)
        if cell.source.startswith("## Setup"):
            cell.metadata[COLLAPSED] = True
            collapsed.append(cell.id)
        elif cell.cell_type == "code":
            count += 1
            for part in [cell, *cell.outputs]:
                if "execution_count" in part:
                    part["execution_count"] = count
    colab = {"toc_visible": True, "collapsed_sections": collapsed}
    return new_notebook(cells=cells, metadata=METADATA | {"colab": colab})
