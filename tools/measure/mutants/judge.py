"""Judge a mutant: what would notice it, if anything.

Each cell runs, and its outputs are compared with what is stored; the shape
comments and the numbers in sentences are checked on the way. Then come the
rules that are read off the file, and at last the chapter's own tests. The
first that does not hold has noticed it.
"""

import io
import re
from contextlib import redirect_stderr, redirect_stdout

import pytest
from nbformat import NotebookNode

from tools.net.cells import RUNS
from tools.net.compare import difference
from tools.net.rules import RULES
from tools.net.rules.stored import file_is_as_written
from tools.net.run import Run
from tools.net.shapes import ShapeError
from tools.notebooks import Notebook, NotebookError
from tools.settings import BOOK


class Caught(Exception):
    """A check notices a mutant: which, and what it says."""


def judge(chapter, mutant, run=None):
    """Return (what catches a mutant, what that says), or ("", "").

    run: the chapter's, which has come to before the mutant's cell, to go on
    from there; without one, the chapter runs from its beginning.
    """
    mutated, place = altered(chapter.notebook, mutant)
    first = place if run else 0
    run = run or Run(mutated)
    run.notebook = mutated
    try:
        for place in range(first, len(mutated.cells)):
            hold_cell(run, place)
        if new := faults(mutated) - chapter.faults:
            raise Caught("rule", min(new))
        hold_to_tests(run, chapter.tests)
    except Caught as caught:
        return caught.args
    return "", ""


def altered(notebook, mutant):
    """Return (a notebook with a mutant in it, the place of its cell)."""
    old = notebook.code[mutant.cell - 1]
    place = next(n for n, cell in enumerate(notebook.cells) if cell is old)
    cells = list(notebook.cells)
    cells[place] = NotebookNode(old, source=mutant.mutated)
    node = NotebookNode(notebook.node, cells=cells)
    return Notebook(notebook.path, node), place


def hold_cell(run, place):
    """Run one cell; raise Caught where it is not as stored."""
    cell = run.notebook.cells[place]
    try:
        run.step(place)
    except NotebookError as error:
        shape = isinstance(error.__cause__, ShapeError)
        by = "shape comment" if shape else "error"
        raise Caught(by, str(error)) from None
    if cell.cell_type == "code" and difference(cell.outputs, run.outputs[-1]):
        raise Caught("output", run.notebook.name(cell))
    if run.messages:
        raise Caught("number in prose", run.messages[0])


def faults(notebook):
    """Return what the rules say of a chapter, if it were stored."""
    rules = [rule for rule in RULES if rule is not file_is_as_written]
    return {message for rule in rules for message in rule(notebook)}


def hold_to_tests(run, files):
    """Run a chapter's tests on a run of it; raise Caught if one fails."""
    run.finish()
    path, said = BOOK / run.notebook.path.name, io.StringIO()
    RUNS[path] = run  # which the tests find there
    options = ["-qx", "-o", "addopts=", "--only", path.name]
    for plugin in ("cacheprovider", "xdist", "hypothesispytest"):
        options += ["-p", f"no:{plugin}"]
    with redirect_stdout(said), redirect_stderr(said):
        status = pytest.main([*options, *map(str, files)])
    if failed := re.search(r"(?m)^(?:FAILED|ERROR) (\S+)", said.getvalue()):
        raise Caught("test", failed[1])
    if status:
        raise RuntimeError(f"pytest ended with {status!r}: {said.getvalue()}")
