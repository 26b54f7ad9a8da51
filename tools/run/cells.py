"""Each code cell of a chapter is a test: it runs and gives what is stored.

All cells of a chapter run in this process, from the first on, and RUNS keeps
what they leave for the tests that need it. Where a cell fails the run ends.
"""

import os
import signal
import traceback
from contextlib import contextmanager

import pytest

from tools.notebooks import HANGS, Notebook, NotebookError, label, remedy
from tools.run.chapter import Run
from tools.run.compare import difference

RUNS = {}  # a notebook's path -> its Run, as far as it has come
# A process that dies leaves word here, for the one that takes its place.
LOST = "CELLS_THAT_ENDED_A_PROCESS"
FAILED = {  # a notebook's label -> the cell at which its run ended
    cell.partition(" [")[0]: cell
    for cell in os.environ.get(LOST, "").splitlines()
}


def skip_if_failed(path):
    """Skip the test that asks, if this notebook's run has ended early."""
    if cell := FAILED.get(label(path)):
        pytest.skip(f"{cell} failed")


def fail(cell, message):
    """Fail with a message, and remember the cell at which the run ended."""
    FAILED[cell.partition(" [")[0]] = cell
    raise pytest.fail.Exception(message, pytrace=False) from None


def explained(error):
    """Return what a cell raised, with the traceback from that cell on."""
    cause = error.__cause__
    frame = cause.__traceback__
    while frame and not frame.tb_frame.f_code.co_filename.startswith("<"):
        frame = frame.tb_next
    trace = traceback.format_exception(type(cause), cause, frame)
    return f"{error}\n{''.join(trace)}"


class File(pytest.File):
    """A notebook."""

    def collect(self):
        try:
            self.notebook = Notebook.read(self.path)
        except NotebookError as error:
            raise self.CollectError(str(error)) from None
        for number, _ in enumerate(self.notebook.code, 1):
            yield Cell.from_parent(self, name=f"[{number}]", number=number)


class Cell(pytest.Item):
    """A code cell, with the number that JupyterLab shows."""

    def __init__(self, *, number, **named):
        super().__init__(**named)
        self.number = number

    def reportinfo(self):
        return self.path, None, f"{label(self.path)} {self.name}"

    def runtest(self):
        skip_if_failed(self.path)
        notebook = self.parent.notebook
        if self.path not in RUNS:
            RUNS[self.path] = Run(notebook, collects=True)
        run, cell = RUNS[self.path], notebook.code[self.number - 1]
        seconds = self.config.getoption("cell_timeout")
        try:
            with limited(seconds):
                computed = run.outputs_of(self.number)
        except Hangs:
            fail(run.at, f"{run.at}: {HANGS.format(seconds)}")
        except NotebookError as error:
            fail(run.at, explained(error))
        if cell.execution_count is None:
            fault = "it was not executed, or its outputs were cleared."
        elif fault := difference(cell.outputs, computed):
            fault = f"the code does not give what is stored.\n{fault}"
        if fault:
            pytest.fail(
                f"{notebook.name(cell)}: {fault}\nIf what the code gives is "
                f"right, store it with: {remedy(self.path)}\n"
                "If it is wrong, mend the code.",
                pytrace=False,
            )


class Hangs(BaseException):
    """Is no Exception, as a cell may catch those."""


@contextmanager
def limited(seconds):
    """Raise Hangs in a block that takes longer."""

    def ring(*_):
        raise Hangs

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
