"""Each code cell of a chapter is a test: it runs and gives what is stored.

All cells of a chapter run in this process, from the first on, and RUNS keeps
what they leave for the tests that need it. Where a cell fails the run ends.
"""

import gc
import os

import pytest

from tools.notebooks import Notebook, NotebookError, label, remedy
from tools.run.chapter import SECONDS, Run
from tools.run.compare import difference

# A notebook's path -> its Run, as far as it has come. Only the latest is kept:
# each may hold several copies of a published model, and a process has one
# chapter's tests after the other's.
RUNS = {}
# A process that dies leaves word here, for the one that takes its place.
LOST = "CELLS_THAT_ENDED_A_PROCESS"
FAILED = {  # a notebook's label -> the cell at which its run ended
    cell.partition(" [")[0]: cell
    for cell in os.environ.get(LOST, "").splitlines()
}


def run_of(path, number=None, seconds=SECONDS):
    """Return a notebook's Run, up to a cell or whole.

    The test that asks first fails where a cell does; later ones are skipped.
    """
    if cell := FAILED.get(label(path)):
        pytest.skip(f"{cell} failed")
    try:
        if path not in RUNS:
            RUNS.clear()
            gc.collect()
            RUNS[path] = Run(Notebook.read(path))
        return RUNS[path].finish(number, seconds)
    except NotebookError as error:
        FAILED[label(path)] = str(error).partition(": ")[0]
        raise pytest.fail.Exception(str(error), pytrace=False) from None


class File(pytest.File):
    """A notebook."""

    def collect(self):
        try:
            notebook = Notebook.read(self.path)
        except NotebookError as error:
            raise self.CollectError(str(error)) from None
        for number, cell in enumerate(notebook.code, 1):
            yield Cell.from_parent(self, name=f"[{number}]", cell=cell)


class Cell(pytest.Item):
    """A code cell, with the number that JupyterLab shows."""

    def __init__(self, *, cell, **named):
        super().__init__(**named)
        self.cell = cell

    def reportinfo(self):
        return self.path, None, f"{label(self.path)} {self.name}"

    def runtest(self):
        number = int(self.name[1:-1])
        run = run_of(self.path, number, self.config.getoption("cell_timeout"))
        if self.cell.execution_count is None:
            fault = "it was not executed, or its outputs were cleared."
        elif fault := difference(self.cell.outputs, run.outputs[number - 1]):
            fault = f"the code does not give what is stored.\n{fault}"
        if fault:
            pytest.fail(
                f"{label(self.path)} {self.name}: {fault}\n"
                "If what the code gives is right, store it with: "
                f"{remedy(self.path)}\nIf it is wrong, mend the code.",
                pytrace=False,
            )
