"""The tool that counts which mutants are caught does what it says.

Small notebooks stand in for chapters, but for the last test, which tries a
fixed sample of the book's own mutants.
"""

import json
import re
import signal
import subprocess
import sys
import time
from functools import cache

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.commands import outputs
from tools.measure.mutants import mutants
from tools.measure.mutation import EXPLAINED, explanations
from tools.notebooks import METADATA, Notebook, paths
from tools.settings import BOOK, ROOT

pytestmark = pytest.mark.net


def notebook_of(path, *sources):
    """Store a notebook of code cells and return it."""
    cells = [new_code_cell(source) for source in sources]
    for count, cell in enumerate(cells, 1):
        cell.execution_count = count
    node = new_notebook(cells=cells, metadata=METADATA)
    return Notebook(path, node)


def changes(tmp_path, source):
    """Return (kind, the cell after the change) of a cell's mutants."""
    made = mutants(notebook_of(tmp_path / "small.ipynb", source))
    return [(mutant.kind, mutant.mutated) for mutant in made]


@pytest.mark.parametrize(
    ("source", "kind", "mutated"),
    [
        ("a + b", "operator", "a - b"),
        ("a += b", "operator", "a -= b"),
        ("(a - b) / c", "operator", "(a - b) * c"),
        ("a / sqrt(c)", "term", "a / sqrt(c)".replace(" / sqrt(c)", "")),
        ("q @ k", "arguments", "(k @ q)"),
        ("f(a, b)", "arguments", "f(b, a)"),
        ("f(a, mask=m)", "keyword", "f(a)"),
        ("a < b", "comparison", "(a <= b)"),
        ("a and b", "comparison", "(a or b)"),
        ("~mask", "polarity", "mask"),
        ("f(True)", "polarity", "f(False)"),
        ("if a:\n    f()", "polarity", "if (not a):\n    f()"),
        ("f(10000)", "published", "f(1000)"),
        ("x = -torch.inf", "published", "x = -1e9"),
        ("f(2)", "constant", "f(3)"),
        ("f(0.5)", "constant", "f(1.0)"),
        ('f("ab")', "text", "f('ab!')"),
        ('f(f"{a}")', "text", "f((f'{a}!'))"),
        ("x.sum(dim=-1)", "axis", "x.sum(dim=-2)"),
        ("np.sin(x)", "function", "np.cos(x)"),
        ("x.transpose(1, 2)", "removal", "x"),
        ("x.mT", "removal", "x"),
        ("np.sqrt(x)", "removal", "x"),
        (
            "x.transpose(1, 2)",
            "published",
            "x.reshape(x.transpose(1, 2).shape)",
        ),
        ("range(n)", "range", "range(n - 1)"),
        ("x[:n]", "range", "x[:n - 1]"),
        ("torch.manual_seed(0)", "seed", "pass"),
        ("f(x)", "statement", "pass"),
        ("def f(x):\n    return x", "statement", "def f(x):\n    pass"),
        ("return_ = a, b\nquery, key", "name", "return_ = a, b\nkey, key"),
        (
            "def f():\n    return a, b",
            "arguments",
            "def f():\n    return (b, a)",
        ),
        (
            "def f(x):\n    x = g(x)\n    x = h(x)",
            "order",
            "def f(x):\n    x = h(x)\n    x = g(x)",
        ),
        ("é = f(2)", "constant", "é = f(3)"),  # bytes are not letters
    ],
)
def test_each_kind_of_change_is_made(tmp_path, source, kind, mutated):
    assert (kind, mutated) in changes(tmp_path, source)


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        'def f():\n    """Words."""',
        "assert allclose(a, b, atol=1)",
        "assert f(a), 'words'",
        "a: int",
    ],
)
def test_what_only_checks_is_left_alone(tmp_path, source):
    kinds = {kind for kind, _ in changes(tmp_path, source)}
    assert kinds <= {"arguments"}


def test_a_shape_comment_stays_where_it_is(tmp_path):
    made = changes(tmp_path, "x = f(2)  # (B, T)\nx = g(x)  # (B, T)")
    assert ("constant", "x = f(3)  # (B, T)\nx = g(x)  # (B, T)") in made
    assert ("statement", "x = f(2)  # (B, T)\npass") in made
    assert all("pass  #" not in mutated for _, mutated in made)


@cache
def of_chapter(path):
    return mutants(Notebook.read(path))


def test_mutants_are_the_same_on_every_run():
    path = BOOK / "embedding.ipynb"
    assert of_chapter(path) == mutants(Notebook.read(path))


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_each_mutant_has_an_id_of_its_own(path):
    made = of_chapter(path)
    assert len({mutant.id for mutant in made}) == len(made) > 100


# What decides about a mutant

CELLS = [
    "x = [3]\nx, 1.5",
    "for i in range(2):\n    print(i)",
    "from IPython.display import HTML\nHTML(f'<b>{x[0] + 1}</b>')",
    "assert x[0] == 3",
    "import matplotlib.pyplot as plt\n"
    "fig, axes = plt.subplots(1, 2, layout='constrained')\n"
    "_ = axes[0].plot([1, 2], [3, 5], linewidth=2)",
    "def low():\n    return min([7, 7])",
    "for _ in range(x[0] - 2):\n    y = low()",
    "z = 5",
]
PROGRAM = """
import json, os, pathlib, sys
from tools.measure import mutation
from tools.notebooks import Notebook
os.environ.update(mutation.ENVIRONMENT)
path = pathlib.Path(sys.argv[1])
"""
JUDGE = """
mutation.warm = lambda: None  # the small notebook needs no framework
mutation.SECONDS = 5
chapter = mutation.Chapter(path, path.parent / "results", path.parent)
sys.exit(mutation.judge_all([chapter], False))
"""


@pytest.fixture
def small(tmp_path):
    """A notebook with every kind of output, stored, and a test of it."""
    notebook = notebook_of(tmp_path / "small.ipynb", *CELLS)
    notebook.cells.append(new_markdown_cell("It is 7<!--= y -->."))
    notebook.path.write_text(nbformat.writes(notebook.node))
    assert outputs.main([str(notebook.path)]) == 0
    (tmp_path / "test_small.py").write_text(
        "from tools.net import run as chapters\n"
        "from tools.notebooks import Notebook\n\n"
        "def test_z():\n"
        f"    notebook = Notebook.read({str(notebook.path)!r})\n"
        "    assert chapters.run(notebook)[0]['z'] == 5\n"
    )
    return Notebook.read(notebook.path)


def python(program, *arguments):
    """Start a program in the project."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_verdicts_are_those_of_the_regression_check(small, tmp_path):
    """A kernel with nbval and a fork of ours judge the same cells alike."""
    cells = []
    for mutant in mutants(small):
        for cell, source in (
            (small.code[0], CELLS[0]),
            (small.code[mutant.cell - 1], mutant.mutated),
        ):
            count = len(cells) + 1
            cells.append(NotebookNode(cell, source=source, id=f"c{count}"))
            cells[-1].execution_count = count
    node = new_notebook(cells=cells, metadata=METADATA)
    path = tmp_path / "all.ipynb"
    path.write_text(nbformat.writes(node))

    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml"]
    command += ["-p", "conftest", "-n0", "-q", "-rA", path]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"^(PASSED|FAILED) .*::Cell (\d+)", said.stdout, re.M)
    by_kernel = {int(cell): verdict == "PASSED" for verdict, cell in found}

    ours = python(
        """
notebook = Notebook.read(path)
kernel = mutation.Kernel(notebook)
for index in range(len(notebook.cells)):
    try:
        mutation.run_cell(kernel, notebook, index)
        print("same")
    except mutation.Caught:
        print("caught")
""",
        path,
    )
    lines = ours.communicate()[0].split()
    by_fork = {cell: line == "same" for cell, line in enumerate(lines)}
    assert by_fork == by_kernel and len(by_kernel) == len(cells) > 60
    assert set(by_fork.values()) == {True, False}


def test_what_survives_is_named_and_fails(small):
    program = python(JUDGE, small.path)
    said, errors = program.communicate()
    assert program.returncode == 1, errors
    survivors = re.findall(r"^    \+ (.*)$", said, re.M)
    assert "for _ in range(x[0] - 3):" not in survivors
    # Both numbers in the list are 7: the smallest is also the largest.
    assert "return max([7, 7])" in survivors
    caught = re.search(r"^caught by (.*)$", said, re.M).group(1)
    for what in ("output", "error", "number in prose", "test"):
        assert f"{what}: " in caught


def test_an_interrupted_run_goes_on(small):
    results = small.path.parent / "results" / "small.jsonl"
    program = python(JUDGE, small.path)
    while not results.exists() or results.read_text().count("\n") < 5:
        assert program.poll() is None
        time.sleep(0.01)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate()
    assert program.returncode == 130 and "goes on here" in errors
    before = results.read_text()
    program = python(JUDGE, small.path)
    program.communicate()
    after = results.read_text()
    names = [json.loads(line)[0] for line in after.split("\n")[1:-1]]
    assert after.startswith(before)
    assert sorted(names) == sorted(m.id for m in mutants(small))


def test_a_mutant_that_hangs_is_caught(tmp_path):
    path = tmp_path / "small.ipynb"
    notebook = notebook_of(path, "x = 0\nwhile x < 2:\n    x += 1")
    path.write_text(nbformat.writes(notebook.node))
    (tmp_path / "test_small.py").write_text("def test_it(): pass")
    program = python(JUDGE.replace("= 5", "= 2"), path)
    said, errors = program.communicate()
    assert "hang or crash: " in said, errors


def test_a_chapter_that_is_not_as_stored_is_not_judged(small):
    small.code[0].outputs[0].data["text/plain"] = "([3], 2.5)"
    small.path.write_text(nbformat.writes(small.node))
    program = python(JUDGE, small.path)
    _, errors = program.communicate()
    assert program.returncode == 1
    assert "does not run to its end as stored" in errors
    assert "make outputs NB=" in errors


# The book


def test_explanations_are_of_mutants_that_there_are():
    there = {m.lines for path in paths() for m in of_chapter(path)}
    gone = [lines for lines in explanations() if lines not in there]
    assert not gone, f"remove from tools/measure/{EXPLAINED.name}: {gone}"


def test_a_fixed_sample_of_the_book_s_mutants_is_caught():
    command = [sys.executable, "-m", "tools.measure.mutation", "--sample"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
