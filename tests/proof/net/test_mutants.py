"""The tool that counts which mutants are noticed does what it says.

Small notebooks stand in for chapters, but for the last test, which tries a
few of the book's own mutants.
"""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.commands import outputs
from tools.measure.mutants.make import mutants
from tools.notebooks import METADATA, Notebook
from tools.settings import ROOT


def notebook_of(path, *sources):
    """Return a notebook of code cells."""
    cells = [new_code_cell(source) for source in sources]
    for count, cell in enumerate(cells, 1):
        cell.execution_count = count
    node = new_notebook(cells=cells, metadata=METADATA)
    return Notebook(path, node)


def write(notebook):
    notebook.path.write_text(nbformat.writes(notebook.node))


def changes(tmp_path, source):
    """Return (kind, the cell after the change) of a cell's mutants."""
    made = mutants(notebook_of(tmp_path / "small.ipynb", source))
    return [(mutant.kind, mutant.mutated) for mutant in made]


@pytest.mark.parametrize(
    ("source", "kind", "mutated"),
    [
        ("a + b", "operator", "a - b"),
        ("a / sqrt(c)", "term", "a"),
        ("f(a, b)", "arguments", "f(b, a)"),
        ("f(a, mask=m)", "keyword", "f(a)"),
        ("a < b", "comparison", "(a <= b)"),
        ("~mask", "polarity", "mask"),
        ("x = -torch.inf", "published", "x = -1e9"),
        ("f(2)", "constant", "f(3)"),
        ("x.sum(dim=-1)", "axis", "x.sum(dim=-2)"),
        ("np.sin(x)", "function", "np.cos(x)"),
        ("x.transpose(1, 2)", "removal", "x"),
        ("range(n)", "range", "range(n - 1)"),
        ("torch.manual_seed(0)", "statement", "pass"),
        ("def f(x):\n    return x", "statement", "def f(x):\n    pass"),
        ("return_ = a, b\nquery, key", "name", "return_ = a, b\nkey, key"),
        ("é = f(2)", "constant", "é = f(3)"),  # bytes are not letters
    ],
)
def test_each_kind_of_change_is_made(tmp_path, source, kind, mutated):
    assert (kind, mutated) in changes(tmp_path, source)


@pytest.mark.parametrize(
    "source", ["import a", 'def f():\n    """Words."""', "a: int"]
)
def test_what_only_checks_is_left_alone(tmp_path, source):
    assert not changes(tmp_path, source)


def test_an_id_stays_when_another_cell_is_inserted(tmp_path):
    cells = ["def f(x):\n    return x + 1", "y = f(2)", "y = f(2)"]
    path = tmp_path / "small.ipynb"
    before = [m.id for m in mutants(notebook_of(path, *cells))]
    after = mutants(notebook_of(path, cells[0], "z = 0", *cells[1:]))
    assert len(set(before)) == len(before) > 4
    assert [m.id for m in after if "z" not in m.source] == before


def test_a_shape_comment_stays_where_it_is(tmp_path):
    made = changes(tmp_path, "x = f(2)  # (B, T)\nx = g(x)  # (B, T)")
    assert ("constant", "x = f(3)  # (B, T)\nx = g(x)  # (B, T)") in made
    assert ("statement", "x = f(2)  # (B, T)\npass") in made
    assert all("pass  #" not in mutated for _, mutated in made)


# What decides about a mutant

CELLS = [
    "x = [3]\nx, 1.5",
    "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3])",
    "assert x[0] == 3",
    "w = [3, 4][:1]  # (1,)",
    "def low():\n    return min([7, 7])",
    "for _ in range(x[0] - 2):\n    y = low()",
    "z = 5",
    "key = 4\n\n\ndef unused(query):\n    return query",
    "def shared():\n    return 2",
]
TESTS = """
def test_z(chapter):
    assert chapter("embedding")["z"] == 5
"""
# The notebooks are called as chapters are, so that their tests find them.
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from tools.measure.mutants import __main__ as tool, forks
from tools.notebooks import Notebook

# A shell that started the tests in the background has switched it off.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.update(forks.ONE_THREAD)
folder = Path(sys.argv[1])

def chapter(name):
    notebook = Notebook.read(folder / f"{name}.ipynb")
    return tool.Chapter(notebook, {"shared"}, folder / "kept", folder)

small = chapter("embedding")
tool.measure([small])
forks.SECONDS = 1
endless = chapter("masks")
forks.judge_all(endless)
try:
    forks.judge_all(chapter("attention"))
except SystemExit as error:
    stopped = str(error)
print(json.dumps({
    "small": small.read(),
    "endless": {m.text: endless.read()[m.id] for m in endless.mutants},
    "broken": stopped,
}))
"""


def start(folder):
    """Start the program on the notebooks of a folder, as from a terminal."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, folder],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """What the program says, once it was interrupted and run again."""
    folder = tmp_path_factory.mktemp("mutants")
    small = notebook_of(folder / "embedding.ipynb", *CELLS)
    small.cells.append(new_markdown_cell("It is 7<!--= y -->."))
    write(small)
    assert outputs.main([str(small.path)]) == 0
    loop = "x = 0\nwhile x < 2:\n    x = x + 1"
    write(notebook_of(folder / "masks.ipynb", loop))
    write(notebook_of(folder / "attention.ipynb", "1 + 1"))  # shows no 2
    for name in ("masks", "attention", "exercises"):
        (folder / f"test_{name}.py").write_text("def test_it(): pass")
    (folder / "test_embedding.py").write_text(TESTS)
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())

    def kept():
        files = (folder / "kept").glob("embedding-*.jsonl")
        return "".join(file.read_text() for file in files)

    process = start(folder)
    while kept().count("\n") < 5:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    process.communicate()
    before = kept()
    again = start(folder)
    said, errors = again.communicate()
    assert again.returncode == 0, errors
    *report, found = said.splitlines()
    return SimpleNamespace(
        **json.loads(found),
        before=before,
        after=kept(),
        report="\n".join(report),
        survivors=(folder / "kept" / "survivors.txt").read_text(),
        mutants=mutants(Notebook.read(folder / "embedding.ipynb")),
    )


@pytest.mark.parametrize(
    ("mutated", "by"),
    [
        ("x = [4]\nx, 1.5", "output"),
        ("import matplotlib.pyplot as plt\n_ = plt.plot([1, 4])", "output"),
        ("w = [3, 4][:2]  # (1,)", "shape comment"),
        ("assert x[0] == 4", "error"),
        ("def low():\n    pass", "number in prose"),
        ("def low():\n    return max([7, 7])", ""),
        ("z = 6", "test"),
        ("key = 4\n\n\ndef unused(query):\n    return key", "rule"),
    ],
)
def test_what_catches_a_mutant_is_known(judged, mutated, by):
    (mutant,) = [m for m in judged.mutants if m.mutated == mutated]
    assert judged.small[mutant.id][0] == by


def test_the_report_counts_and_lists_what_survives(judged):
    survive = [by for by, _ in judged.small.values()].count("")
    all_of_them = len(judged.small)
    counted = f"all: {all_of_them - survive} of {all_of_them} noticed"
    assert counted in judged.report and "output " in judged.report
    assert judged.survivors.count("\n    + ") == survive
    assert "    + return max([7, 7])" in judged.survivors
    assert "z = 6" not in judged.survivors


def test_what_an_earlier_chapter_defines_is_asked_there(judged):
    shared = {m.id for m in judged.mutants if m.scope == "shared"}
    assert shared and not shared & set(judged.small)


def test_an_interrupted_run_goes_on(judged):
    assert judged.after.startswith(judged.before)
    names = [json.loads(line)[0] for line in judged.after.splitlines()]
    assert len(names) == len(set(names)) == len(judged.small)


def test_a_mutant_that_hangs_is_caught(judged):
    assert judged.endless["-"][0] == "hang or crash"


def test_a_chapter_that_is_not_as_stored_is_not_judged(judged):
    assert "does not run to its end as stored" in judged.broken
    assert "make outputs NB=" in judged.broken


def test_a_sample_of_a_chapter_s_mutants_is_judged():
    command = [sys.executable, "-m", "tools.measure.mutants", "--sample=2"]
    command.append("book/embedding.ipynb")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "embedding: 2 of 2 noticed" in done.stdout
