"""Make nbval run chapters here, see what it is blind to, and say what to do.

nbval starts a kernel for each notebook, which imports the frameworks and runs
what the tests of the chapter need to run again. Here, the cells run in this
process, and RUNS keeps what they leave.

nbval compares text to the letter and leaves figures out; it passes a cell
without an execution count, and obeys marks that switch it off.
"""

import signal
import traceback
from contextlib import contextmanager

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, coalesce_streams

from tools.net.compare import figure_difference, settle
from tools.net.kernel import HANGS
from tools.net.run import Run
from tools.notebooks import Notebook, NotebookError, label, remedy

RUNS = {}  # a notebook's path -> its Run, if all of it ran in this process
MIME_NOT_COMPARED = {"image/png", "image/jpeg"}  # by nbval, unless told to


def compare_outputs(self, test, ref, skip_compare=None):
    """Compare as nbval does after settling what agrees, figures included."""
    test = settle(test, ref)
    skip = set(self.parent.skip_compare) - MIME_NOT_COMPARED
    if not nbval_compare_outputs(self, test, ref, skip_compare=skip):
        for new, old in zip(test, ref, strict=False):
            pngs = [o.get("data", {}).get("image/png") for o in (old, new)]
            if all(pngs) and pngs[0] != pngs[1]:
                self.comparison_traceback.append(figure_difference(*pngs))
        return False
    # nbval compares each kind of output by itself and does not see the order.
    kinds = [[output.output_type for output in outs] for outs in (ref, test)]
    if kinds[0] != kinds[1]:
        self.comparison_traceback.append(f"{kinds[0]} became {kinds[1]}.")
    return kinds[0] == kinds[1]


def collect(self):
    """Collect the cells; say in a sentence why a file is no notebook."""
    try:
        Notebook.read(self.path)
    except NotebookError as error:
        raise self.CollectError(str(error)) from None
    return nbval_collect(self)


def start(self):
    """Begin to run a notebook."""
    self.run = Run(Notebook.read(self.path), collects=True)
    items = self.session.items
    self.selected = [item.cell_num for item in items if item.parent is self]


def end(self):
    """Keep a notebook's run for the tests that need what it leaves."""
    cells = self.run.notebook.cells
    rest = [cell.cell_type for cell in cells[self.run.place :]]
    if not (self.run.failed or self.timed_out or "code" in rest):
        self.run.run_to(len(cells))
        self.run.finish()
        RUNS[self.path] = self.run


def setup(self):
    """Leave out the cells after one that took the process with it."""
    selected, run = self.parent.selected, self.parent.run
    above = [number for number in selected if number < self.cell_num]
    lost = above and not run.has_run(above[-1])
    if lost or self.parent.timed_out:
        pytest.skip("a cell above hangs or ended the process")


class Hangs(BaseException):
    """Is no Exception, as a cell may catch those."""


@contextmanager
def limited(seconds):
    """Raise Hangs in a block that takes longer."""

    def ring(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def runtest(self):
    """Run and compare a cell; refuse one that was never executed."""
    seconds = self.config.option.nbval_cell_timeout
    try:
        with limited(seconds):
            outputs = self.parent.run.outputs_of(self.cell_num)
    except Hangs:
        self.parent.timed_out = True
        raise RuntimeError(HANGS.format(seconds)) from None
    except NotebookError as error:
        self.raise_cell_error(str(error), trace(error.__cause__))
    if self.cell.source.strip() and self.cell.execution_count is None:
        self.raise_cell_error(
            "The cell was not executed, or its outputs were cleared"
        )
    if not self.options["check"] or self.options["skip"]:
        self.raise_cell_error("The cell is marked not to be compared")
    stored = coalesce_streams(self.cell.outputs)
    if not self.compare_outputs(coalesce_streams(outputs), stored):
        text = "\n".join(self.comparison_traceback)
        self.raise_cell_error("Cell outputs differ", text)


def trace(error):
    """Return the traceback of an error from the cell that raised it."""
    frame = error.__traceback__
    while frame and not frame.tb_frame.f_code.co_filename.startswith("<"):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame))


def repr_failure(self, excinfo):
    """Add which cell it is and which command mends it."""
    cell = f"{label(self.parent.path)} [{self.cell_num + 1}]"
    if isinstance(excinfo.value, RuntimeError):
        return f"{cell}: {excinfo.value}"
    return (
        f"{nbval_repr_failure(self, excinfo)}\n"
        f"{cell}: the code does not give what is stored. If the code is "
        f"right, store its outputs with: {remedy(self.parent.path)}"
    )


nbval_collect = IPyNbFile.collect
nbval_compare_outputs = IPyNbCell.compare_outputs
nbval_repr_failure = IPyNbCell.repr_failure


def install():
    """Replace nbval's methods by the strict ones."""
    IPyNbFile.collect = collect
    IPyNbFile.setup = start
    IPyNbFile.teardown = end
    IPyNbCell.setup = setup
    IPyNbCell.compare_outputs = compare_outputs
    IPyNbCell.runtest = runtest
    IPyNbCell.repr_failure = repr_failure
