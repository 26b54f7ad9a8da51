"""Run notebooks, each in a new process, and store what they print.

`make outputs`, or of one chapter, `make outputs NB=book/masks.ipynb`. A
notebook is written whole or not at all; what agrees with the stored outputs
stays as it is, so a second run changes no byte.
"""

import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import nbformat

from tools.notebooks import (
    DIED,
    Notebook,
    NotebookError,
    label,
    paths,
    remedy,
)
from tools.run.chapter import SECONDS, Run
from tools.run.compare import ENVIRONMENT, settle


def execute(notebook, seconds=SECONDS):
    """Return a copy of a notebook with the outputs of a new process.

    Raises NotebookError naming the cell that fails, or takes longer.
    """
    new = Notebook(notebook.path, nbformat.from_dict(notebook.node))
    with ProcessPoolExecutor(1, get_context("spawn"), leave_native) as pool:
        try:
            outputs = pool.submit(outputs_of, notebook, seconds).result()
        except BrokenProcessPool:
            raise NotebookError(f"{label(notebook.path)}: {DIED}") from None
    for cell, given in zip(new.code, outputs, strict=True):
        cell.outputs = given
    return new


def leave_native():
    """Let nobody see what libraries write past Python's streams."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def outputs_of(notebook, seconds):
    """Return the outputs of each code cell."""
    return Run(notebook).finish(seconds=seconds).outputs


def normalise(old, new):
    """Return a notebook with what belongs there, in one form.

    old: the notebook as stored, whose outputs stay where they agree.
    """
    for cell, was in zip(new.tidy().code, old.code, strict=True):
        cell.outputs = settle(was.outputs, cell.outputs)
    return new


def write(notebook):
    """Write a notebook in one step, so that no half of it can be left."""
    path = notebook.path.resolve()
    part = path.with_suffix(".part")
    try:
        part.write_text(notebook.text(), "utf-8")
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
