"""Execute notebooks in a fresh kernel and store what they print.

`make outputs`, or of one chapter, `make outputs NB=book/masks.ipynb`. A
notebook is written whole or not at all; what agrees with the stored outputs
stays as it is, so a second run changes no byte.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools.notebooks import (
    CELL_METADATA,
    COLLAPSED,
    DIED,
    HANGS,
    METADATA,
    Notebook,
    NotebookError,
    is_aside,
    label,
    paths,
    remedy,
    titled,
)
from tools.run.compare import ENVIRONMENT, settle

CELL_TIMEOUT = 300  # seconds
LINE = re.compile(r"(?:Cell In\s*\[\d+\], )?line (\d+)")


def execute(notebook):
    """Return a copy of a notebook with the outputs of a fresh kernel.

    Raises NotebookError naming the cell that fails, and its line.
    """
    new = Notebook(notebook.path, nbformat.from_dict(notebook.node))
    client = NotebookClient(
        new.node,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        coalesce_streams=True,  # or timing decides where a loop's output ends
        # As under nbval, where pytest makes the kernel leave native lines be.
        extra_arguments=["--IPKernelApp.capture_fd_output=False"],
        resources={"metadata": {"path": str(notebook.path.parent)}},
    )
    where = f"{label(notebook.path)}, at the start"
    try:
        # Not client.execute(), which takes a signal for a kernel's death.
        with client.setup_kernel(stderr=subprocess.DEVNULL):  # native lines
            for place, cell in enumerate(new.cells):
                where = new.name(cell)
                client.execute_cell(cell, place)
    except CellExecutionError as error:
        line = LINE.search(re.sub(r"\x1b\[[\d;]*m", "", error.traceback))
        said = f"{error.ename}: {error.evalue}"
        if line:
            where += f", line {line[1]}"
            source = cell.source.split("\n")[int(line[1]) - 1 :]
            said += f"\n    {source[0].strip()}" if source else ""
        raise NotebookError(f"{where}: {said}") from None
    except TimeoutError:
        raise NotebookError(f"{where}: {HANGS.format(CELL_TIMEOUT)}") from None
    except RuntimeError:
        raise NotebookError(f"{where}: {DIED}") from None
    return new


def normalise(old, new):
    """Leave in a notebook what belongs there, in one form.

    old: the notebook as stored, whose outputs stay where they agree.
    """
    nbformat.v4.upgrade(new.node)  # Colab saves 4.0, without ids of cells
    new.node.metadata = nbformat.from_dict(METADATA)
    for cell in new.cells:
        for key in set(cell.metadata) - CELL_METADATA:
            del cell.metadata[key]
        if cell.cell_type == "code":
            cell.source = titled(cell)
        cell.metadata.pop(COLLAPSED, None)
        if is_aside(cell):
            cell.metadata[COLLAPSED] = True
    for count, (cell, was) in enumerate(
        zip(new.code, old.code, strict=True), 1
    ):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type != "stream":
                output.metadata = {}
            if output.output_type == "execute_result":
                output.execution_count = count
        cell.outputs = settle(was.outputs, cell.outputs)
    return new


def write(notebook):
    """Write a notebook in one step, so that no half of it can be left."""
    path = notebook.path.resolve()
    part = path.with_suffix(".part")
    try:
        part.write_text(nbformat.writes(notebook.node) + "\n", "utf-8")
        if path.exists():
            shutil.copymode(path, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def store(path):
    """Store the outputs of a notebook; return what was done, in words."""
    before = path.read_bytes() if path.exists() else b""
    old = Notebook.read(path)
    new = normalise(old, execute(old))
    if path.read_bytes() != before:  # by an editor that saved meanwhile
        raise NotebookError(
            f"{label(path)}: was changed while it ran. Run again: "
            f"{remedy(path)}"
        )
    write(new)
    changed = path.read_bytes() != before
    return "stored" if changed else "unchanged; it prints what is stored"


def main(names):
    """Execute and store the named notebooks; return the exit code."""
    os.environ.update(ENVIRONMENT)
    code = 0
    for path in map(Path, names or paths()):
        try:
            print(f"{label(path)}: {store(path)}")
        except (NotebookError, OSError) as error:
            fault = f"{error}\n{label(path)} was left as it was."
            print(fault, file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("Interrupted; what was stored before is whole.")
