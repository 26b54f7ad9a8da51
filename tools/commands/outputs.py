"""Execute notebooks in a fresh kernel and store what they print.

`make outputs`, or of one chapter, `make outputs NB=book/masks.ipynb`: if its
code is that of the last commit, it is tidied without a kernel. A notebook is
written whole or not at all; what agrees with the stored outputs stays as it
is, so a second run changes no byte.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools.notebooks import (
    CELL_METADATA,
    DIED,
    HANGS,
    METADATA,
    Notebook,
    NotebookError,
    label,
    paths,
    remedy,
)
from tools.run.compare import ENVIRONMENT, settle
from tools.settings import ROOT

CELL_TIMEOUT = 300  # seconds


def execute(notebook):
    """Return a copy of a notebook with the outputs of a fresh kernel.

    Raises NotebookError naming the cell that fails. The kernel ends with this
    function, however that ends.
    """
    node = nbformat.from_dict(notebook.node)
    new = Notebook(notebook.path, node)
    client = NotebookClient(
        node,
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
            for place, cell in enumerate(node.cells):
                where = new.name(cell)
                client.execute_cell(cell, place)
    except CellExecutionError as error:
        raise NotebookError(
            f"{where}: {error.ename}: {error.evalue}"
        ) from None
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
    text = nbformat.writes(notebook.node) + "\n"
    path = notebook.path.resolve()
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, suffix=".part", delete=False
    ) as part:
        try:
            part.write(text)
            part.flush()
            os.chmod(part.name, path.stat().st_mode)
            os.replace(part.name, path)
        except BaseException:
            os.unlink(part.name)
            raise


def committed(path):
    """Return a notebook as the last commit has it, run; None without one.

    Also None where the packages or the tools are not those of that commit:
    its outputs may be others now.
    """

    def git(*command):
        command = ["git", "-C", path.resolve().parent, *command]
        return subprocess.run(command, capture_output=True, text=True)

    decides = [ROOT / x for x in ("constraints.txt", "cellbycell", "tools")]
    if git("diff", "--quiet", "HEAD", "--", *decides).returncode:
        return None
    shown = git("show", f"HEAD:./{path.name}")
    if shown.returncode:
        return None
    notebook = Notebook(path, nbformat.reads(shown.stdout, as_version=4))
    counts = [cell.execution_count for cell in notebook.code]
    return notebook if counts == list(range(1, len(counts) + 1)) else None


def tidied(old, was):
    """Return a notebook with its committed outputs, or None if code changed.

    was: the notebook as committed, or None.
    """
    if not was or [c.source for c in old.code] != [c.source for c in was.code]:
        return None
    new = Notebook(old.path, nbformat.from_dict(old.node))
    for cell, before in zip(new.code, was.code, strict=True):
        cell.outputs = before.outputs
    return new


def store(path, anew):
    """Store the outputs of a notebook; return what was done, in words.

    anew: run it also if no code has changed since the last commit.
    """
    old = Notebook.read(path)
    before = path.read_bytes()
    tidy = None if anew else tidied(old, committed(path))
    new = normalise(old, tidy or execute(old))
    # No lock: an editor would not heed it, and a file is whole in any case.
    if path.read_bytes() != before:
        raise NotebookError(
            f"{label(path)}: was changed while it ran, by an editor or "
            f"another run. Run again: {remedy(path)}"
        )
    write(new)
    if tidy:
        return "tidied; no code has changed, so its outputs stay"
    changed = path.read_bytes() != before
    return "stored" if changed else "unchanged; it prints what is stored"


def fault_of(path, anew):
    """Store the outputs of a notebook; return what stopped it, or None."""
    try:
        done = store(path, anew)
    except NotebookError as error:
        return str(error)
    except OSError as error:
        return (
            f"{label(path)}: {error.strerror}. "
            f"Once that is mended, run: {remedy(path)}"
        )
    print(f"{label(path)}: {done}")
    return None


def main(names):
    """Execute and store the named notebooks; return the exit code."""
    os.environ.update(ENVIRONMENT)
    code = 0
    for path in map(Path, names or paths()):
        try:
            if not (fault := fault_of(path, anew=not names)):
                continue
            code = 1
        except KeyboardInterrupt:
            code, fault = 130, f"Interrupted. To go on: {remedy(path)}"
        print(f"{fault}\n{label(path)} was left as it was.", file=sys.stderr)
        if code == 130:
            break
    return code


if __name__ == "__main__":
    for end in (signal.SIGINT, signal.SIGTERM):  # ignored in the background
        signal.signal(end, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
