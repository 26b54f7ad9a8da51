"""A sheet has each exercise of its chapter, and no solution of any.

Nothing is run but the sheets of a chapter that imports no framework; those of
all chapters run with `--all-sheets`, weekly.
"""

import ast
import re

import nbformat
import pytest

from tools.markdown import anchor, headings, links
from tools.notebooks import Notebook
from tools.settings import BOOK, chapters, edition
from tools.sheets.cells import left, needed
from tools.sheets.exercises import exercises, sheet
from tools.sheets.source import plain

NAMES = [name.removeprefix("book/") for name in chapters()]


def chapter_of(name):
    return BOOK / f"{name}.ipynb"


def leaks(cells, exercise, graded):
    """Return what the cells of a sheet tell of an exercise's solution."""
    own = {exercise.check.id}
    found = [
        c.source for c in cells if f"{exercise.name}_solution" in c.source
    ]
    kept = [c for c in cells if c.cell_type == "code" and c.id not in own]
    for node in ast.walk(ast.parse(exercise.solution.source)):
        line = ast.unparse(node) if isinstance(node, ast.Return) else ""
        if len(line) > len("return None") and "verdict" not in line:
            for cell in kept:
                if line in ast.unparse(ast.parse(cell.source)):
                    found.append(f"{cell.id}: {line}")
    if graded:
        found += [c.id for c in cells if c.id in own]
        found += [c.id for c in kept if exercise.checker in c.source]
    return found


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_has_every_exercise_and_no_solution(name, graded):
    path = chapter_of(name)
    found, notebook = exercises(path), sheet(path, None, graded)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "CC BY 4.0" in text and "MIT licence" in text
    prose = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    assert not re.search(r"<!--|\]\((?!https?:)", "\n".join(prose))
    ids = [cell.id for cell in notebook.cells]
    assert found
    for exercise in found:
        assert f"### Exercise {exercise.number}: {exercise.title} (" in text
        assert exercise.stub.id in ids
        assert (exercise.check.id in ids) != graded
        assert not leaks(notebook.cells, exercise, graded)
    assert ids.index(found[0].stub.id) > ids.index("do")


@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_leads_to_its_chapter(name, monkeypatch):
    monkeypatch.setattr("tools.sheets.source.slug", lambda: "Me/book")
    path = chapter_of(name)
    page = f"https://me.github.io/book/book/{name}.html"
    known = {anchor(title) for title in headings_of(path)}
    of_stub = {exercise.text[0].id for exercise in exercises(path)}
    for cell in sheet(path).cells:
        text = cell.source if cell.cell_type == "markdown" else ""
        for number in re.findall(r"(?i)\bequation \$\((\d+)\)\$", text):
            assert f"${number}" not in text
            assert f"$({number})$ of the chapter" in text
            assert f"\\tag{{{number}}}" in text
        own = [t for _, t in links(text) if t.partition("#")[0] == page]
        assert own or cell.id not in of_stub
        assert {t.partition("#")[2] for t in own} <= {"", *known}


def headings_of(path):
    cells = Notebook.read(path).cells
    prose = [c.source for c in cells if c.cell_type == "markdown"]
    return [title for text in prose for _, title in headings(text)]


@pytest.mark.parametrize("framework", [None, "tensorflow"])
def test_a_sheet_says_what_to_do(framework):
    path = chapter_of("encoder")
    alone = sheet(path, framework, graded=True).cells
    first, second, bring = sheet(path, framework).cells[:3]
    ours = "TensorFlow" if framework else "PyTorch and TensorFlow"
    assert f"This sheet is for {ours}.\n" in first.source
    assert "keep the function's name.\n\nFrom" in first.source
    assert "function's name.\nHand in this file.\n" in alone[0].source
    assert "check_" not in "\n".join(cell.source for cell in alone)
    install = f"python -m pip install cellbycell-{edition()[0]}-py3-none-any"
    assert install in second.source and install in bring.source
    assert "checkout" not in bring.source
    compile(bring.source, "bring", "exec")


def test_the_page_counts_the_exercises():
    count = sum(len(exercises(chapter_of(name))) for name in NAMES)
    page = (BOOK / "operate.md").read_text("utf-8")
    assert f"All {count} exercises are in either framework." in page


def test_a_planted_leak_is_found():
    path = chapter_of("masks")
    exercise = exercises(path)[1]
    cells = sheet(path, None, True).cells
    for leak in (
        "window_mask_solution(7, 3)",
        "back = 1\nmask = lambda: 0\ndef f(back, window):\n"
        "    return (back >= 0) & (back < window)",
        "check_window_mask(window_mask)",
    ):
        planted = nbformat.v4.new_code_cell(leak)
        assert leaks([*cells, planted], exercise, True)


def outputs(notebook):
    """Run the code cells; return what their last lines give, and names."""
    names, found = {}, []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            if isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body.pop().value)
                exec(compile(tree, cell.id, "exec"), names)
                found.append(eval(compile(last, cell.id, "eval"), names))
            else:
                exec(compile(tree, cell.id, "exec"), names)
    return found, names


@pytest.mark.parametrize("framework", [None, "pytorch", "tensorflow"])
def test_a_sheet_runs_and_nothing_is_attempted_yet(framework):
    path = chapter_of("masks")
    found, names = outputs(sheet(path, framework))
    said = [f"Exercise {n}: not attempted yet." for n in range(1, 6)]
    assert [x for x in found if x is not None] == said
    for exercise in exercises(path):
        solution = exercise.solution.source.split("\n\n\nassert")[0]
        exec(solution, names)
        says = names[exercise.checker](names[f"{exercise.name}_solution"])
        assert says == f"Exercise {exercise.number}: correct."


def cells(*sources, **tagged):
    """Return code cells; of=framework tags the last of them."""
    made = [nbformat.v4.new_code_cell(source) for source in sources]
    if tagged:
        made[-1].metadata["tags"] = [tagged["of"]]
    return made


def test_cells_are_taken_whole_and_imports_as_needed():
    before = cells("import a\nimport b", "x = a.y", "def f():\n    return x")
    *rest, asked = cells("z = 3", "f()")
    kept = [c.source for c in needed([*before, *rest], [asked])]
    assert kept == ["import a", "x = a.y", "def f():\n    return x"]


def test_what_needs_the_other_framework_goes():
    setup = "import torch\nimport tensorflow as tf\n\ntf.config.y()\nz = 1"
    given = cells(setup, "x = torch.ones(3)", "y = 2", "tf.zeros(y)")
    given += cells("y_tf = 3", of="tensorflow")
    given += cells("both = x + y_tf", "both", "x")
    alone = [c.source for c in left(given, "pytorch")]
    ours = ["x = torch.ones(3)", "y = 2", "x"]
    assert alone == ["import torch\nz = 1", *ours]
    assert left(given, None) == given


def test_links_lead_to_the_site_or_nowhere(monkeypatch):
    path, text = chapter_of("masks"), "[a](attention.ipynb#b), [c](https://d)"
    monkeypatch.setattr("tools.sheets.source.slug", lambda: "OWNER/book")
    assert plain(text, path) == "a, [c](https://d)"
    monkeypatch.setattr("tools.sheets.source.slug", lambda: "Me/book")
    there = "https://me.github.io/book/book/attention.html#b"
    assert plain(text, path) == f"[a]({there}), [c](https://d)"
    assert "masks.html#x" in plain("[y](#x)", path)
