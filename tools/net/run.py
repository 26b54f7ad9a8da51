"""Run a chapter in this process, with its claims turned into checks."""

import io
import linecache
import os
from contextlib import redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from tools.net import shapes
from tools.net.prose import CLAIM, check_prose
from tools.notebooks import NotebookError, alt_text


class Run(NamedTuple):
    """What a run of a chapter leaves.

    namespace: its variables at the end; messages: what does not hold;
    claims: (cell's name, text, the variables there) of each text that states
    numbers; scopes: where shape comments were checked.
    """

    namespace: dict
    messages: list
    claims: list
    scopes: list


@patch.dict(os.environ, MPLBACKEND="agg")  # no window; kernels have their own
def run(notebook):
    """Execute a notebook's cells in order; return a Run.

    Every shape comment is asserted and every number in prose or alt text is
    evaluated where it stands, with the variables of the cells above it.
    Raises NotebookError, naming the cell, if a cell fails.
    """
    toy = shapes.notation("\n".join(cell.source for cell in notebook.markdown))
    messages, claims, scopes = [], [], []
    namespace = {"__name__": "__main__"} | shapes.hooks(toy, scopes)
    for number, cell in enumerate(notebook.cells):
        name = notebook.name(cell)
        if cell.cell_type == "code":
            file = f"<{notebook.path.stem} {number}>"
            linecache.cache[file] = (  # for tracebacks and inspect.getsource
                len(cell.source),
                None,
                cell.source.splitlines(True),
                file,
            )
            try:
                tree = shapes.rewrite(cell.source, name)
                code = compile(tree, file, "exec")
                with redirect_stdout(io.StringIO()):
                    exec(code, namespace)
            except Exception as error:
                raise NotebookError(
                    f"{name}: {type(error).__name__}: {error}"
                ) from error
        text = alt_text(cell) if cell.cell_type == "code" else cell.source
        messages += untrue(name, text, namespace)
        if CLAIM.search(text):
            claims.append((name, text, dict(namespace)))
    toy.clear()  # whoever calls the functions later may choose other sizes
    return Run(namespace, messages, claims, scopes)


def untrue(name, text, namespace):
    """Return a message for each number in a cell's text that is not true."""
    return [f"{name}: {found}" for found in check_prose(text, namespace)]
