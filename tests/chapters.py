"""Run a chapter in this process, with its claims turned into checks."""

import ast
import io
import linecache
import os
from contextlib import redirect_stdout
from unittest.mock import patch

from tests import shapes
from tests.notebooks import NotebookError
from tests.prose import check_prose


@patch.dict(os.environ, MPLBACKEND="agg")  # no window; kernels have their own
def run(notebook):
    """Execute a notebook's cells in order; return (namespace, messages).

    Every shape comment is asserted and every number in prose is evaluated
    where it stands, with the variables of the cells above it.
    Raises NotebookError, naming the cell, if a cell fails.
    """
    namespace = {"__name__": "__main__", shapes.CHECK: shapes.check_shape}
    messages = []
    for number, cell in enumerate(notebook.cells):
        name = notebook.name(cell)
        if cell.cell_type == "markdown":
            found = check_prose(cell.source, namespace)
            messages += [f"{name}: {message}" for message in found]
        elif cell.cell_type == "code":
            file = f"<{notebook.path.stem} {number}>"
            linecache.cache[file] = (  # for tracebacks and inspect.getsource
                len(cell.source),
                None,
                cell.source.splitlines(True),
                file,
            )
            try:
                code = compile(shapes.rewrite(cell.source), file, "exec")
                with redirect_stdout(io.StringIO()):
                    exec(code, namespace)
            except Exception as error:
                raise NotebookError(
                    f"{name}: {type(error).__name__}: {error}"
                ) from error
    return namespace, messages


def definitions(notebook):
    """Yield (name, source, cell) of the functions and classes defined."""
    for cell in notebook.code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name, ast.unparse(node), cell
