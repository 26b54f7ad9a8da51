"""Run a chapter in this process, with its claims turned into checks."""

import ast
import linecache

from tools.notebooks import NotebookError, alt_text
from tools.run import shapes, shell
from tools.run.claims import CLAIM, check_claims, names


class Run:
    """A run of a chapter, cell by cell, and what it leaves.

    namespace: its variables so far; outputs: of each code cell that ran;
    messages: what does not hold; claims: (cell's name, text, the variables
    there) of each text that states numbers; collects: a wrong shape is one of
    the messages, and does not end the run; place: of the next cell; at: the
    name of the one that ran last, or runs.
    """

    def __init__(self, notebook, collects=False):
        self.notebook, self.collects = notebook, collects
        self.messages, self.claims, self.waiting = [], [], []
        self.outputs, self.place, self.at = [], 0, ""
        shell.start()
        self.namespace = {
            "__name__": "__main__",
            **shapes.hooks(self.messages if collects else None),
        }

    def step(self, place):
        """Run one cell and check its text, or its figure's.

        Every shape comment is asserted and every claim is evaluated where it
        stands; a text that announces a variable of the cells below waits
        until it is there. Raises NotebookError, naming the cell, if it fails.
        """
        self.place = place + 1
        cell = self.notebook.cells[place]
        name, text = self.notebook.name(cell), cell.source
        self.at = name
        if cell.cell_type == "code":
            text = alt_text(cell)
            file = f"<{name}>"
            # For tracebacks and inspect.getsource.
            lines = cell.source.splitlines(True)
            linecache.cache[file] = len(cell.source), None, lines, file
            try:
                tree = self.tree(cell.source, name)
                self.outputs.append(shell.execute(tree, file, self.namespace))
            except (Exception, SystemExit) as error:
                raise NotebookError(
                    f"{name}: {type(error).__name__}: {error}"
                ) from error
        self.waiting.append((name, text, dict(self.namespace)))
        last = place + 1 == len(self.notebook.cells)
        for waits in list(self.waiting):
            if last or names(waits[1]) <= self.namespace.keys():
                self.waiting.remove(waits)
                self.check(*waits)

    def check(self, name, text, above):
        """Check a text with the variables above it, and those it announces."""
        known = self.namespace | above
        self.messages += untrue(name, text, known)
        if CLAIM.search(text):
            self.claims.append((name, text, known))

    def tree(self, source, name):
        """Return a cell's syntax tree with its shape comments as checks."""
        try:
            return shapes.rewrite(source, name)
        except shapes.ShapeError as error:
            if not self.collects:
                raise
            self.messages.append(f"{name}, {error}")
            return ast.parse(source)

    def outputs_of(self, number):
        """Run what is left up to a code cell, from 1; return its outputs."""
        while len(self.outputs) < number:
            self.step(self.place)
        return self.outputs[number - 1]

    def finish(self):
        """Run what is left."""
        while self.place < len(self.notebook.cells):
            self.step(self.place)


def run(notebook):
    """Run a notebook's cells in order, without showing what they print.

    Returns the Run. Raises NotebookError, naming the cell, if a cell fails.
    """
    chapter = Run(notebook, collects=True)
    chapter.finish()
    return chapter


def untrue(name, text, namespace):
    """Return a message for each number in a cell's text that is not true."""
    return [f"{name}: {found}" for found in check_claims(text, namespace)]
