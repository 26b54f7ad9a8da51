"""What is written for graders: solutions pass the tests, stubs do not.

A patch earns nothing before a test, and all within it. `nox --session graders`
tries it with the graders themselves.
"""

import re
import sys
import textwrap

import pytest

from tools.commands import export
from tools.settings import BOOK
from tools.sheets.export import FORMATS

REGION = re.compile(r"#+ BEGIN SOLUTION.*?#+ END SOLUTION", re.S)
OURS = re.compile(r"cellbycell\b")
PATCH = """
import cellbycell.exercises as module

module.Wrong.__str__ = lambda wrong: "correct"
module.agree = lambda *given: True
"""
BEFORE = PATCH + "\n{} = lambda *given: 1\n"
INSIDE = f"def {{}}(*given):{textwrap.indent(PATCH, '    ')}    return 1\n"


@pytest.fixture(autouse=True)
def modules_of_its_own():
    """Let each test import the package anew, and what it patches go again."""

    def taken():
        ours = [name for name in sys.modules if OURS.match(name)]
        return {name: sys.modules.pop(name) for name in ours}

    before = taken()
    yield
    taken()
    sys.modules.update(before)


def verdicts(node, answer=None):
    """Return what the tests of a notebook say, or "" where one passes.

    answer: what stands below a stub, with {} for its name; the solution if
    None.
    """
    names, found = {}, []
    for cell in node.cells:
        if cell.cell_type == "code":
            source = cell.source
            if answer is not None and REGION.search(source):
                name = re.search(r"^def (\w+)", source, re.M)[1]
                source = REGION.sub(answer.format(name), source)
            # otter-grader calls the function that it finds.
            if test := re.search(r"def (test_(\w+))\(", source):
                source += f"\n{test[1]}({test[2]})"
            try:
                exec(source, names)
            except AssertionError as error:
                found.append(str(error))
            else:
                found += [""] * ("importlib.reload" in source)
    return found


@pytest.mark.parametrize("grader", FORMATS)
def test_a_solution_passes_and_a_stub_is_not_attempted(grader):
    node = list(FORMATS[grader](BOOK / "masks.ipynb").values())[-1]
    assert verdicts(node) == [""] * 5
    says = [f"Exercise {n}: not attempted yet." for n in range(1, 6)]
    assert verdicts(node, "") == says


@pytest.mark.parametrize("grader", FORMATS)
def test_a_patch_deceives_from_inside_alone(grader):
    node = list(FORMATS[grader](BOOK / "masks.ipynb").values())[-1]
    assert "" not in verdicts(node, BEFORE)
    assert verdicts(node, INSIDE) == [""] * 5


def test_each_framework_has_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(export, "ROOT", tmp_path)
    for framework in ("pytorch", ""):
        assert export.main("book/masks.ipynb", "otter", framework) == 0
    folders = {path.name for path in (tmp_path / "build/exports").iterdir()}
    assert folders == {"otter-masks", "otter-masks-pytorch"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "'' is no chapter; write NB=book/masks.ipynb"),
        (["book/masks.ipynb"], "'' is no grader; write FOR=nbgrader or"),
        (["book/masks.ipynb", "otter", "jax"], "'jax' is no framework"),
    ],
)
def test_what_cannot_be_exported_gets_one_sentence(given, says, capsys):
    assert export.main(*given) == 1
    found = capsys.readouterr().err
    assert says in found and found.count("\n") == 1
