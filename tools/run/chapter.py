"""Run a chapter in this process, with its claims turned into checks."""

import ast
import linecache
import signal
import traceback
from contextlib import contextmanager

from tools.notebooks import HANGS, NotebookError, alt_text
from tools.run import shapes, shell
from tools.run.claims import CLAIM, check_claims, names

SECONDS = 300  # that a cell may take


class Run:
    """A run of a chapter, cell by cell, and what it leaves.

    namespace: its variables so far; outputs: of each code cell that ran;
    messages: what does not hold; claims: (cell's name, text, the variables
    there) of each text that states numbers; place: of the next cell; at: the
    name of the one that ran last, or runs.
    """

    def __init__(self, notebook):
        self.notebook = notebook
        self.messages, self.claims, self.waiting = [], [], []
        self.outputs, self.place, self.at = [], 0, ""
        shell.start()
        hooks = shapes.hooks(self.messages)
        self.namespace = {"__name__": "__main__", **hooks}

    def step(self, seconds):
        """Run the next cell and check its text, or its figure's.

        Every shape comment is asserted and every claim is evaluated where it
        stands; a text that announces a variable of the cells below waits
        until it is there. Raises NotebookError, naming the cell, if it fails
        or takes longer.
        """
        cell = self.notebook.cells[self.place]
        self.place += 1
        name, text = self.notebook.name(cell), cell.source
        self.at = name
        if cell.cell_type == "code":
            text = alt_text(cell)
            try:
                with limited(seconds):
                    self.outputs.append(self.execute(cell.source))
            except Hangs:
                said = HANGS.format(seconds)
                raise NotebookError(f"{name}: {said}") from None
            except (Exception, SystemExit) as error:
                raise NotebookError(f"{name}: {explained(error)}") from error
        self.waiting.append((name, text, dict(self.namespace)))
        last = self.place == len(self.notebook.cells)
        for waits in list(self.waiting):
            if last or names(waits[1]) <= self.namespace.keys():
                self.waiting.remove(waits)
                self.check(*waits)

    def execute(self, source):
        """Run code with its shape comments as checks; return its outputs."""
        file = f"<{self.at}>"
        # For tracebacks and inspect.getsource.
        lines = source.splitlines(True)
        linecache.cache[file] = len(source), None, lines, file
        return shell.execute(self.tree(source), file, self.namespace)

    def tree(self, source):
        """Return the syntax tree of code, its shape comments as checks."""
        try:
            return shapes.rewrite(source, self.at)
        except shapes.ShapeError as error:
            self.messages.append(f"{self.at}, {error}")
            return ast.parse(source)

    def check(self, name, text, above):
        """Check a text with the variables above it, and those it announces."""
        known = self.namespace | above
        found = check_claims(text, known)
        self.messages += [f"{name}: {message}" for message in found]
        if CLAIM.search(text):
            self.claims.append((name, text, known))

    def finish(self, number=None, seconds=SECONDS):
        """Run what is left, up to this code cell, counted from 1, or all."""
        while self.place < len(self.notebook.cells):
            if number and len(self.outputs) >= number:
                break
            self.step(seconds)
        return self


def explained(error):
    """Return what a cell raised, with the traceback from that cell on."""
    frame = error.__traceback__
    while frame and not frame.tb_frame.f_code.co_filename.startswith("<"):
        frame = frame.tb_next
    trace = traceback.format_exception(type(error), error, frame)
    return f"{type(error).__name__}: {error}\n{''.join(trace)}"


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
