"""A chapter's exercises as assignments of nbgrader or otter-grader.

Their metadata is written here; neither is needed to write it. A test imports
the check from the package. A solution stands below its stub, marked.
"""

import ast
import re

from nbformat.v4 import new_code_cell, new_raw_cell

from tools.sheets.exercises import exercises, sheet

POINTS = {"easy": 1, "medium": 2, "hard": 3}
# With modules as they were, whatever an answer did to them.
TEST = """\
{margin}import importlib, sys, warnings, numpy
{margin}for module in [m for m in sys.modules if m.startswith("cellbycell")]:
{margin}    del sys.modules[module]
{margin}with warnings.catch_warnings(action="ignore"):
{margin}    importlib.reload(numpy)
{margin}from cellbycell.exercises.{stem} import {checker}
{margin}verdict = {checker}({name})
{margin}assert verdict == "Exercise {number}: correct.", verdict"""
OTTER_TEST = '''\
""" # BEGIN TEST CONFIG
hidden: true
""" # END TEST CONFIG
def test_{name}({name}):
{test}'''
NBGRADER = """\
c = get_config()
c.CourseDirectory.course_id = "cellbycell"
c.CourseDirectory.db_assignments = [{"name": "%s"}]
# A stub stays as it is when its solution is taken out.
c.ClearSolutions.code_stub = {"python": ""}
c.ExecutePreprocessor.timeout = 300
"""
OTTER = """\
# ASSIGNMENT CONFIG
name: {stem}
init_cell: false
check_all_cell: false
export_cell: false
tests:
  ok_format: false"""


def for_nbgrader(path, framework=None):
    """Return {path in the course's folder: notebook, or text} for nbgrader."""
    node = exported(path, framework, of_nbgrader)
    stem = path.stem
    return {
        "nbgrader_config.py": NBGRADER % stem,
        f"source/{stem}/{stem}.ipynb": node,
    }


def for_otter(path, framework=None):
    """Return {path: notebook}, for `otter assign`."""
    node = exported(path, framework, of_otter)
    node.cells.insert(0, new_raw_cell(OTTER.format(stem=path.stem)))
    return {f"{path.stem}.ipynb": node}


FORMATS = {"nbgrader": for_nbgrader, "otter": for_otter}


def exported(path, framework, cells_of):
    """Return a sheet in which each stub has its solution and its test."""
    of_stub = {exercise.stub.id: exercise for exercise in exercises(path)}
    node = sheet(path, framework, graded=True)
    cells, node.cells = node.cells, []
    for cell in cells:
        if exercise := of_stub.get(cell.id):
            node.cells += cells_of(exercise, cell.source, path.stem)
        else:
            node.cells.append(cell)
    return node


def test_of(exercise, stem, margin=""):
    """Return the source of a test that asks the check."""
    return TEST.format(
        margin=margin,
        stem=stem,
        checker=exercise.checker,
        name=exercise.name,
        number=exercise.number,
    )


def solved(exercise):
    """Return the solution of an exercise under the name of its stub.

    It may call the solution of another exercise.
    """
    [node] = [
        node
        for node in ast.parse(exercise.solution.source).body
        if isinstance(node, ast.FunctionDef)
    ]
    lines = exercise.solution.source.split("\n")
    source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    return re.sub(r"(\w)_solution\b", r"\1", source)


def of_nbgrader(exercise, stub, stem):
    """Return the cells of an exercise: answer and test."""
    answer = f"{stub}\n\n{marked('### {} SOLUTION', solved(exercise))}"
    hidden = marked("### {} HIDDEN TESTS", test_of(exercise, stem))
    test = f"# This cell is graded; leave it as it is.\n{hidden}"
    of_answer = {"grade": False, "solution": True, "locked": False}
    of_test = {"grade": True, "solution": False, "locked": True}
    of_test["points"] = POINTS[exercise.level]
    pairs = [
        ("answer", answer, of_answer),
        ("test", test, of_test),
    ]
    cells = []
    for kind, source, told in pairs:
        cell = new_code_cell(source, id=f"{kind}-{exercise.number}")
        cell.metadata["nbgrader"] = {
            "schema_version": 3,
            "grade_id": cell.id,
            "task": False,
            **told,
        }
        cells.append(cell)
    return cells


def of_otter(exercise, stub, stem):
    """Return the cells of an exercise, and those that mark them."""
    lines = solved(exercise)
    answer = f"{stub}\n\n# BEGIN SOLUTION NO PROMPT\n{lines}\n# END SOLUTION"
    points = POINTS[exercise.level]
    test = test_of(exercise, stem, "    ")
    return [
        new_raw_cell(
            f"# BEGIN QUESTION\nname: {exercise.name}\npoints: {points}"
        ),
        new_raw_cell("# BEGIN SOLUTION"),
        new_code_cell(answer),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        new_code_cell(OTTER_TEST.format(name=exercise.name, test=test)),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]


def marked(mark, source):
    """Return a source between two lines that mark it."""
    return f"{mark.format('BEGIN')}\n{source}\n{mark.format('END')}"
