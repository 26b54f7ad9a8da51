"""Execute notebooks in a fresh kernel and store what they print.

`make outputs` or `python -m tests.outputs [NOTEBOOK ...]`, all without
names. A notebook is written whole or not at all; what agrees with the stored
outputs stays as it is, so a second run changes no byte.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from tests.compare import settle
from tests.notebooks import (
    KERNEL_ENVIRONMENT,
    Notebook,
    NotebookError,
    label,
    paths,
)

# What a notebook may carry besides its cells' source and outputs.
METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "file_extension": ".py",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
CELL_METADATA = {"cellView", "jupyter", "mystnb", "tags"}
CELL_TIMEOUT = 300  # seconds


def execute(notebook):
    """Return a copy of a notebook with the outputs of a fresh kernel.

    Raises NotebookError naming the cell that fails or writes to stderr.
    """
    node = nbformat.from_dict(notebook.node)
    new = Notebook(notebook.path, node)
    client = NotebookClient(
        node,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        coalesce_streams=True,  # or timing decides where a loop's output ends
        resources={"metadata": {"path": str(notebook.path.parent)}},
    )
    running = {}
    client.on_cell_execute = lambda cell, cell_index: running.update(
        name=new.name(cell)
    )
    try:
        client.execute(stderr=subprocess.DEVNULL)  # native log lines
    except CellExecutionError as error:
        raise NotebookError(
            f"{running['name']}: {error.ename}: {error.evalue}"
        ) from None
    except DeadKernelError:
        raise NotebookError(f"{running['name']}: the kernel died") from None
    except TimeoutError:
        raise NotebookError(
            f"{running['name']}: still running after {CELL_TIMEOUT} s"
        ) from None
    for cell in new.code:
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise NotebookError(
                    f"{new.name(cell)}: writes to stderr, which differs from "
                    f"machine to machine: {output.text.strip()[:200]!r}"
                )
    return new


def normalise(new, old):
    """Leave in a notebook what belongs there, in one form.

    old: the notebook as stored, whose outputs stay where they agree.
    """
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
        cell.outputs = settle(cell.outputs, was.outputs)
    return new


def write(notebook):
    """Write a notebook in one step: the old file or the new one, no half."""
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


def main(names):
    """Execute and store the named notebooks; return the exit code."""
    os.environ.update(KERNEL_ENVIRONMENT)
    # ipykernel then leaves native lines on stderr alone, as under nbval.
    os.environ["PYTEST_CURRENT_TEST"] = "recording"
    failed = False
    for path in map(Path, names or paths()):
        try:
            old = Notebook.read(path)
            before = path.read_bytes()
            write(normalise(execute(old), old))
            changed = path.read_bytes() != before
            print(f"{label(path)}: {'stored' if changed else 'unchanged'}")
        except NotebookError as error:
            failed = True
            print(
                f"{error}\n{label(path)} was left as it was.", file=sys.stderr
            )
        except KeyboardInterrupt:
            print(
                f"Interrupted: {label(path)} was left as it was.",
                file=sys.stderr,
            )
            return 130
        except OSError as error:
            failed = True
            print(
                f"{label(path)}: {error.strerror}; it was left as it was.",
                file=sys.stderr,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
