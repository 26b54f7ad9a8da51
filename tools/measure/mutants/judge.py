"""Judge a mutant: what would notice it, if anything.

By reading, before it runs: that what an earlier chapter defines has another
body here. By running: each cell's outputs, as the regression check compares
them, the shape comments, and the numbers in prose. Then by reading again, the
style rules, and at last by the chapter's own tests. The first that does not
hold has caught it.
"""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from nbformat import NotebookNode

from tools.net import run as engine
from tools.net.compare import difference
from tools.net.rules import RULES
from tools.net.rules.book import bodies, first_bodies, other_bodies
from tools.net.rules.stored import file_is_as_written
from tools.net.shapes import ShapeError
from tools.notebooks import Notebook, NotebookError


class Caught(Exception):
    """The net notices a mutant; by what, and what it says."""


def judge(chapter, mutant, run=None):
    """Return (what catches a mutant, what that says), or ("", "").

    run: the chapter's, which has come to before the mutant's cell, to go on
    from there; without one, the chapter runs from its beginning.
    """
    mutated, place = altered(chapter.notebook, mutant)
    first = place if run else 0
    run = run or engine.Run(mutated)
    run.notebook = mutated
    try:
        for place in range(first, len(mutated.cells)):
            hold_cell(run, place)
        hold_to_rules(mutated, chapter.faults)
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


# By running


def hold_cell(run, place):
    """Run one cell; raise Caught where it is not as stored."""
    cell = run.notebook.cells[place]
    try:
        run.step(place)
    except NotebookError as error:
        shape = isinstance(error.__cause__, ShapeError)
        by = "shape comment" if shape else "error"
        raise Caught(by, str(error)) from None
    is_code = cell.cell_type == "code"
    if is_code and difference(cell.outputs, run.outputs[-1]):
        raise Caught("output", run.notebook.name(cell))
    if run.messages:
        raise Caught("number in prose", run.messages[0])


# By reading


def copies(notebook, mutants, before):
    """Yield (mutant, message) where the rule of the one body sees a mutant.

    before: the chapters that stand before this one. Only these: whether code
    that chapters share is wrong is asked where it comes first.
    """
    first = first_bodies(before)
    shared = {
        notebook.name(cell)
        for name, cell, _ in bodies(notebook)
        if name in first
    }
    for mutant in mutants:
        if notebook.name(notebook.code[mutant.cell - 1]) in shared:
            for message in other_bodies(altered(notebook, mutant)[0], first):
                yield mutant, message


def faults(notebook):
    """Return what the rules of a chapter say of one, if it were stored."""
    return {
        message
        for rule in RULES
        if rule is not file_is_as_written
        for message in rule(notebook)
    }


def hold_to_rules(notebook, before):
    """Raise Caught if a chapter has a fault that is not among those before."""
    if new := faults(notebook) - before:
        raise Caught("rule", min(new))


# By the chapter's own tests


class Only:
    """Has pytest run what is of one chapter, and remembers what fails."""

    def __init__(self, name):
        self.name, self.failed = name, []

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self.is_of_chapter(item)]

    def is_of_chapter(self, item):
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        return parameters.get("notebook", self.name) == self.name

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


def hold_to_tests(run, files):
    """Run a chapter's tests on a run of it; raise Caught if one fails."""
    run.finish()
    path = run.notebook.path.resolve()
    read, run_anew = Notebook.read, engine.run

    def read_this(other):
        return run.notebook if Path(other).resolve() == path else read(other)

    def run_this(notebook):
        return run if notebook is run.notebook else run_anew(notebook)

    options = ["-qx", "-o", "addopts=", "-m", "not browser"]
    for plugin in ("cacheprovider", "xdist", "nbval", "hypothesispytest"):
        options += ["-p", f"no:{plugin}"]
    only = Only(path.stem)
    with (
        patch.object(Notebook, "read", read_this),
        patch.object(engine, "run", run_this),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        status = pytest.main([*options, *map(str, files)], [only])
    if only.failed:
        raise Caught("test", only.failed[0])
    if status:
        raise RuntimeError(f"pytest ended with {status!r}")
