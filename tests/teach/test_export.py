"""What is written for graders: solutions pass the tests, stubs do not.

`nox --session graders` tries it with the graders themselves.
"""

import re

import pytest

from tools.commands import export
from tools.settings import BOOK
from tools.teach.export import FORMATS

REGION = re.compile(r"#+ BEGIN SOLUTION.*?#+ END SOLUTION", re.S)


def verdicts(node, solved):
    """Return what the tests of a notebook say, or "" where one passes."""
    names, found = {}, []
    for cell in node.cells:
        if cell.cell_type == "code":
            source = cell.source if solved else REGION.sub("", cell.source)
            # otter-grader calls the function that it finds.
            if test := re.search(r"def (test_(\w+))\(", source):
                source += f"\n{test[1]}({test[2]})"
            try:
                exec(source, names)
            except AssertionError as error:
                found.append(str(error))
            else:
                found += [""] * ("linecache" in source)
    return found


@pytest.mark.parametrize("grader", FORMATS)
def test_a_solution_passes_and_a_stub_is_not_attempted(grader):
    node = list(FORMATS[grader](BOOK / "masks.ipynb").values())[-1]
    assert verdicts(node, solved=True) == [""] * 5
    says = [f"Exercise {n}: not attempted yet." for n in range(1, 6)]
    assert verdicts(node, solved=False) == says


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
