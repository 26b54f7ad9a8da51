"""Make nbval see what it is blind to, and say what to do.

nbval compares text to the letter and leaves figures out; it passes a cell
without an execution count and obeys marks that switch it off. It waits for a
dead kernel, and goes on without one.
"""

import time
from queue import Empty

import nbval.kernel
import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile

from tools.net.compare import figure_difference, settle
from tools.net.kernel import DIED, HANGS
from tools.notebooks import Notebook, NotebookError, label, remedy

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
    """Start a notebook's kernel; say in a sentence why it does not."""
    try:
        nbval_start(self)
    except (OSError, RuntimeError) as error:
        pytest.fail(
            f"{label(self.path)}: its kernel does not start: {error}. "
            "Mend that and run again.",
            pytrace=False,
        )


def await_reply(self, msg_id, timeout=None):
    """Wait as nbval does, while the kernel lives."""
    end = time.monotonic() + timeout
    while True:
        try:
            return nbval_await_reply(self, msg_id, timeout=min(timeout, 1))
        except Empty:
            if not self.is_alive():
                raise RuntimeError(DIED) from None
            if time.monotonic() > end:
                raise RuntimeError(HANGS.format(timeout)) from None


def setup(self):
    """Leave out the cells after one that took the kernel with it."""
    if self.parent.timed_out:
        pytest.skip("a cell above hangs or ended the kernel")


def runtest(self):
    """Run and compare a cell; refuse one that was never executed."""
    if self.cell.source.strip() and self.cell.execution_count is None:
        self.raise_cell_error(
            "The cell was not executed, or its outputs were cleared"
        )
    if not self.options["check"] or self.options["skip"]:
        self.raise_cell_error("The cell is marked not to be compared")
    try:
        nbval_runtest(self)
    except RuntimeError:
        self.parent.timed_out = True
        raise


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
nbval_start = IPyNbFile.setup
nbval_await_reply = RunningKernel.await_reply
nbval_compare_outputs = IPyNbCell.compare_outputs
nbval_runtest = IPyNbCell.runtest
nbval_repr_failure = IPyNbCell.repr_failure


def install():
    """Replace nbval's methods by the strict ones."""
    # It would lay every message out for a log that nobody keeps.
    nbval.kernel.pformat = lambda message: message
    IPyNbFile.collect = collect
    IPyNbFile.setup = start
    RunningKernel.await_reply = await_reply
    IPyNbCell.setup = setup
    IPyNbCell.compare_outputs = compare_outputs
    IPyNbCell.runtest = runtest
    IPyNbCell.repr_failure = repr_failure
