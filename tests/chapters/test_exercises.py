"""Every exercise of the book has a checker, a solution and a stub.

An exercise `x` has `x`, the stub; `x_solution`; and `check_x`. What a checker
says of wrong answers is in the tests of its chapter.
"""

import pytest

from tools.notebooks import Notebook, definitions, paths

pytestmark = pytest.mark.xdist_group("frameworks")

EXERCISES = []
for path in paths():
    names = [name for name, _, _ in definitions(Notebook.read(path))]
    checkers = [name for name in names if name.startswith("check_")]
    for number, name in enumerate(checkers, 1):
        EXERCISES.append((path.stem, number, name.removeprefix("check_")))


@pytest.mark.parametrize(("notebook", "number", "name"), EXERCISES)
def test_solution_is_accepted(chapter, notebook, number, name):
    book = chapter(notebook)
    verdict = book[f"check_{name}"](book[f"{name}_solution"])
    assert verdict == f"Exercise {number}: correct."


@pytest.mark.parametrize(("notebook", "number", "name"), EXERCISES)
def test_untouched_stub_is_reported(chapter, notebook, number, name):
    book = chapter(notebook)
    verdict = book[f"check_{name}"](book[name])
    assert verdict == f"Exercise {number}: not attempted yet."
