"""What the tests of sheets share: a class that hands them in."""

import copy
import functools

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from tools.teach.exercises import exercises, sheet
from tools.teach.export import solved


@pytest.fixture(scope="session")
def handed_in():
    """Return a function that gives a sheet, filled in, as text.

    answers: {exercise's number: source}, in place of the solution; more: the
    sources of further cells.
    """

    empty = functools.cache(sheet)

    def fill(path, answers, *more, framework=None, graded=True):
        node = copy.deepcopy(empty(path, framework, graded))
        by_id = {cell.id: cell for cell in node.cells}
        for exercise in exercises(path):
            if cell := by_id.get(exercise.stub.id):
                source = answers.get(exercise.number, solved(exercise))
                cell.source = source or cell.source
        node.cells += map(new_code_cell, more)
        return nbformat.writes(node)

    return fill
