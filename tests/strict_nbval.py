"""Make nbval see what it is blind to, and say what to do.

nbval compares text to the letter and leaves figures out; it passes a cell
without an execution count and obeys marks that switch it off.
"""

import nbval.kernel
from nbval.plugin import IPyNbCell

from tests.compare import FIGURE_TOLERANCE, figure_distance, settle
from tests.notebooks import label, remedy

MIME_NOT_COMPARED = {"image/png", "image/jpeg"}  # by nbval, unless told to


def compare_outputs(self, test, ref, skip_compare=None):
    """Compare as nbval does after settling what agrees, figures included."""
    test = settle(test, ref)
    skip = set(self.parent.skip_compare) - MIME_NOT_COMPARED
    if not nbval_compare_outputs(self, test, ref, skip_compare=skip):
        for new, old in zip(test, ref, strict=False):
            pngs = [o.get("data", {}).get("image/png") for o in (old, new)]
            if all(pngs) and pngs[0] != pngs[1]:
                self.comparison_traceback.append(
                    f"The figure differs by {figure_distance(*pngs):.1f} "
                    f"({FIGURE_TOLERANCE} is allowed)."
                )
        return False
    # nbval compares each kind of output by itself and does not see the order.
    kinds = [[output.output_type for output in outs] for outs in (ref, test)]
    if kinds[0] != kinds[1]:
        self.comparison_traceback.append(f"{kinds[0]} became {kinds[1]}.")
    return kinds[0] == kinds[1]


def runtest(self):
    """Run and compare a cell; refuse one that was never executed."""
    if self.cell.source.strip() and self.cell.execution_count is None:
        self.raise_cell_error(
            "The cell was not executed, or its outputs were cleared"
        )
    if not self.options["check"] or self.options["skip"]:
        self.raise_cell_error("The cell is marked not to be compared")
    nbval_runtest(self)


def repr_failure(self, excinfo):
    """Add which cell it is and which command mends it."""
    notebook = self.parent.path
    return (
        f"{nbval_repr_failure(self, excinfo)}\n"
        f"{label(notebook)} [{self.cell_num + 1}]: the code does not give "
        "what is stored. If the code is right, store its outputs with: "
        f"{remedy(notebook)}"
    )


nbval_compare_outputs = IPyNbCell.compare_outputs
nbval_runtest = IPyNbCell.runtest
nbval_repr_failure = IPyNbCell.repr_failure


def install():
    """Replace nbval's methods by the strict ones."""
    # It would lay every message out for a log that nobody keeps.
    nbval.kernel.pformat = lambda message: message
    IPyNbCell.compare_outputs = compare_outputs
    IPyNbCell.runtest = runtest
    IPyNbCell.repr_failure = repr_failure
