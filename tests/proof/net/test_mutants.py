"""The tool that counts which mutants are caught does what it says.

Small notebooks stand in for chapters, but for the last test, which tries a
fixed sample of the book's own mutants.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.commands import outputs
from tools.measure.mutants import keep
from tools.measure.mutants.make import mutants
from tools.notebooks import METADATA, Notebook, paths
from tools.settings import BOOK, ROOT


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
        ("assert not x.any()", "function", "assert not x.all()"),
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


# What decides about a mutant

CELLS = [
    "x = [3]\nx, 1.5",
    "for i in range(2):\n    print(i)",
    "from IPython.display import HTML\nHTML(f'<b>{x[0] + 1}</b>')",
    "assert x[0] == 3",
    "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3])",
    "w = [3, 4][:1]  # (1,)",
    "def low():\n    return min([7, 7])",
    "for _ in range(x[0] - 2):\n    y = low()",
    "z = 5",
    "key = 4\n\n\ndef unused(query):\n    return query",
    "def shared():\n    return 2",
]
TESTS = """
from tools.net import run
from tools.notebooks import Notebook

def test_z():
    notebook = Notebook.read({!r})
    assert run.run(notebook).namespace["z"] == 5
"""
# Of the explanations, one is needed, one of a mutant that is caught, and one
# of none at all.
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from tools.measure.mutants import __main__ as tool, forks, judge, keep
from tools.net.run import Run
from tools.notebooks import Notebook
from tools.settings import ROOT

# A shell that started the tests in the background has switched it off.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.update(forks.ENVIRONMENT)
forks.warm = lambda: None  # the small notebooks need no framework
folder = Path(sys.argv[1])

def read(name):
    return Notebook.read(folder / f"{name}.ipynb")

def chapter(name):
    return keep.Chapter(read(name), [read("earlier")], folder / "kept", folder)

def caught(run, place):
    try:
        judge.hold_cell(run, place)
    except judge.Caught:
        return True
    return False

explained = {
    ("return min([7, 7])", "return max([7, 7])"): (True, ""),
    ("z = 5", "z = 6"): (False, ""),
    ("gone", "by now"): (False, ""),
}
small = chapter("small")
code = tool.measure([small], explained, True)
forks.SECONDS = 1
endless = chapter("endless")
forks.judge_all(endless)
try:
    forks.judge_all(chapter("broken"))
except SystemExit as error:
    stopped = str(error)
run = Run(read("all"))
modules = [name for name in sys.modules if name.startswith("tools.")]
print(json.dumps({
    "code": code,
    "small": small.read(),
    "endless": {m.text: endless.read()[m.id] for m in endless.mutants},
    "broken": stopped,
    "all": [caught(run, place) for place in range(len(run.notebook.cells))],
    "modules": [sys.modules[name].__file__ for name in modules],
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


def all_mutants(notebook):
    """Return each mutant's cell in one notebook, each after the first cell.

    The first cell makes anew what a mutant may have spoilt.
    """
    cells = []
    for mutant in mutants(notebook):
        for cell, source in (
            (notebook.code[0], CELLS[0]),
            (notebook.code[mutant.cell - 1], mutant.mutated),
        ):
            count = len(cells) + 1
            cells.append(NotebookNode(cell, source=source, id=f"c{count}"))
            cells[-1].execution_count = count
    return new_notebook(cells=cells, metadata=METADATA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of notebooks, and tests of them.

    The small one has every kind of output, stored.
    """
    folder = tmp_path_factory.mktemp("mutants")
    small = notebook_of(folder / "small.ipynb", *CELLS)
    small.cells.append(new_markdown_cell("It is 7<!--= y -->."))
    write(small)
    assert outputs.main([str(small.path)]) == 0
    small = Notebook.read(small.path)
    write(Notebook(folder / "all.ipynb", all_mutants(small)))
    write(notebook_of(folder / "earlier.ipynb", CELLS[-1]))
    loop = "x = 0\nwhile x < 2:\n    x += 1"
    write(notebook_of(folder / "endless.ipynb", loop))
    write(notebook_of(folder / "broken.ipynb", "1 + 1"))  # shows no 2
    for name in ("endless", "broken", "exercises"):
        (folder / f"test_{name}.py").write_text("def test_it(): pass")
    (folder / "test_small.py").write_text(TESTS.format(str(small.path)))
    return folder


@pytest.fixture(scope="module")
def judged(folder):
    """What the program says, once it was interrupted and run again."""
    kept = folder / "kept" / "small.jsonl"
    process = start(folder)
    while not kept.exists() or kept.read_text().count("\n") < 5:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    _, interrupted = process.communicate()
    before = kept.read_text()
    again = start(folder)
    said, errors = again.communicate()
    assert again.returncode == 0, errors
    *report, found = said.splitlines()
    return SimpleNamespace(
        **json.loads(found),
        code_of_interrupted=process.returncode,
        interrupted=interrupted,
        before=before,
        after=kept.read_text(),
        report="\n".join(report),
        mutants=mutants(Notebook.read(folder / "small.ipynb")),
    )


def verdict(judged, mutated):
    """Return what catches the mutant that makes this of its cell."""
    (mutant,) = [m for m in judged.mutants if m.mutated == mutated]
    return judged.small[mutant.id][0]


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
        ("def shared():\n    return 3", "rule"),
    ],
)
def test_what_catches_a_mutant_is_known(judged, mutated, by):
    assert verdict(judged, mutated) == by


def test_a_copy_is_judged_without_a_run(judged):
    assert "shared" not in judged.after


def test_survivors_and_stale_explanations_are_named(judged, folder):
    assert judged.code == 1 and "Under 95%" in judged.report
    listed = (folder / "kept" / "survivors.txt").read_text()
    said = re.findall(r"^    \+ (.*)$", judged.report, re.M)
    # Both numbers are 7: the smallest is also the largest.
    explained, unexplained = "return max([7, 7])", "return min([8, 7])"
    assert explained not in said and unexplained in said
    assert explained in listed and unexplained in listed
    assert "for _ in range(x[0] - 3):" not in listed
    stale = re.findall(r"remove it: (.*)", judged.report)
    assert stale == ["('z = 5', 'z = 6')", "('gone', 'by now')"]
    (caught,) = re.findall(r"^caught by (.*)$", judged.report, re.M)
    for what in ("output", "error", "number in prose", "test"):
        assert f"{what}: " in caught


def test_an_interrupted_run_goes_on(judged):
    assert judged.code_of_interrupted == 130, judged.interrupted
    assert "goes on here" in judged.interrupted
    assert "Traceback" not in judged.interrupted
    assert judged.after.startswith(judged.before)
    # Made in another process, the mutants are the same.
    names = [json.loads(line)[0] for line in judged.after.split("\n")[1:-1]]
    run = [m.id for m in judged.mutants if "shared" not in m.source]
    assert sorted(names) == sorted(run)


def test_a_mutant_that_hangs_is_caught(judged):
    by, name = judged.endless["-"]  # in += 1
    assert by == "hang or crash" and name in ("SIGPROF", "SIGALRM")


def test_a_chapter_that_is_not_as_stored_is_not_judged(judged):
    assert "does not run to its end as stored" in judged.broken
    assert "make outputs NB=" in judged.broken


# How long a verdict is kept


def test_all_tools_that_judge_are_known_to_decide(judged):
    known = {str(file) for file in keep.files(keep.TOOLS)}
    idle = {name for name in judged.modules if name not in known}
    assert {Path(name).name for name in idle} <= {*keep.IDLE, "__init__.py"}
    for name in ("matplotlibrc", "kernel.py", "figures.py", "code.py"):
        assert any(Path(file).name == name for file in known)


def test_a_verdict_is_kept_until_what_it_hangs_on_changes(
    tmp_path, monkeypatch
):
    def kept():
        chapter = keep.Chapter(notebook, [], tmp_path / "kept", tmp_path)
        return {by for by, _ in chapter.read().values()}

    def judge():
        chapter = keep.Chapter(notebook, [], tmp_path / "kept", tmp_path)
        for mutant, by in zip(chapter.mutants, verdicts, strict=False):
            chapter.record(mutant, by, "")

    verdicts = ["", "output", "test"]
    notebook = notebook_of(tmp_path / "small.ipynb", "a + 5")
    tests = [tmp_path / f"test_{name}.py" for name in ("small", "exercises")]
    for file in (notebook.path, *tests):
        file.write_text("")
    assert kept() == set()
    judge()
    assert kept() == set(verdicts)
    tests[1].write_text("# another test")
    assert kept() == {"output"}
    monkeypatch.setattr(keep, "version", lambda package: "another")
    assert kept() == set()
    judge()
    notebook.path.write_text("another text")
    assert kept() == set()


def test_a_digest_sees_each_file_that_decides(tmp_path):
    folder = tmp_path / "net"
    (folder / "rules").mkdir(parents=True)
    seen = [keep.digest([folder])]
    for name in ("run.py", "matplotlibrc", "rules/code.py", "explained.toml"):
        (folder / name).write_text(name)
        seen.append(keep.digest([folder]))
    assert len(set(seen)) == 4 and seen[-1] == seen[-2]
    assert keep.digest([folder], "3.11") != keep.digest([folder], "3.12")


# The book


def test_each_mutant_of_a_chapter_has_an_id_of_its_own_on_every_run():
    notebook = Notebook.read(BOOK / "embedding.ipynb")
    made = mutants(notebook)
    assert made == mutants(notebook)
    assert len({mutant.id for mutant in made}) == len(made) > 100


def test_a_fixed_sample_of_the_book_s_mutants_is_caught():
    command = [sys.executable, "-m", "tools.measure.mutants", "--sample=2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    table = done.stdout.partition("\nchapter ")[2]
    for path in paths():
        assert f"\n{path.stem} " in table
