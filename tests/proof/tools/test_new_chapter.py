"""A chapter that `make chapter` laid out passes every check, or is not there.

Slow, half a minute: a kernel runs the chapter to write it and pytest runs it
again, both with both frameworks, and the site is read once.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.commands import chapter as new_chapter
from tools.settings import BOOK, ROOT

NAME = "another_one"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the book and its tests with a new chapter."""
    folder = tmp_path_factory.mktemp("book")
    for path in ("book", "cellbycell", "tests", "tools"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / path, folder / path, ignore=leave)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    said = run(folder, "-m", "tools.commands.chapter", NAME)
    assert f"wrote book/{NAME}.ipynb" in said
    return folder


def run(folder, *arguments):
    """Return what a Python command says, which has to succeed."""
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_it_passes_every_check_that_needs_no_browser(copy):
    # The checks of the whole book, and those that run the new chapter alone.
    whole = ["tests/chapters/test_rules.py", "tests/pages/test_pages.py"]
    alone = [
        "tests/chapters/test_claims.py",
        "tests/chapters/test_exercises.py",
    ]
    own = [f"book/{NAME}.ipynb", f"tests/chapters/test_{NAME}.py"]
    only = f"not test_ruff and (test_rules or test_pages or {NAME})"
    options = ["-n0", "-p", "no:cacheprovider", "-k", only]
    said = run(copy, "-m", "pytest", *options, *whole, *alone, *own)
    for path in (*whole, *alone, *own):
        assert path in said, f"nothing in {path} was run"
    for command in (["check"], ["format", "--check"]):
        run(copy, "-m", "ruff", *command, *own)


def test_the_site_builds_with_it_without_a_warning(copy):
    program = Path(sys.executable).with_name("jupyter-book")
    strict = ["--warningiserror", "--nitpick", "--keep-going"]
    quick = ["--builder", "custom", "--custom-builder", "dummy"]
    run(copy, program, "build", *strict, *quick, ".")


def test_it_is_on_the_map_below_the_others(copy):
    drawing = ElementTree.parse(copy / new_chapter.MAP.relative_to(ROOT))
    *_, height = drawing.getroot().get("viewBox").split()
    links = drawing.findall("{*}a")
    assert links[-1].get("href") == f"{NAME}.html"
    boxes = [link.find("{*}rect").attrib for link in links]
    ends = [float(box["y"]) + float(box["height"]) for box in boxes]
    assert max(ends[:-1]) < float(boxes[-1]["y"]) < ends[-1] < float(height)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "needs a name"),
        ("attention", "book/attention.ipynb exists already"),
        ("index", "book/index.md exists already"),
        ("claims", "tests/chapters/test_claims.py exists already"),
        ("Attention", "lower-case letters"),
        ("layer norm", "lower-case letters"),
        ("chapter_7", "no number"),
        ("../secret", "no path"),
        ("lambda", "lower-case letters"),
        ("größe", "lower-case letters"),
        ("a" * 25, "find a shorter name"),
    ],
)
def test_a_name_that_cannot_be_is_explained(name, says):
    with pytest.raises(SystemExit, match=says) as stopped:
        new_chapter.main([name])
    assert "Nothing was written." in str(stopped.value)


def test_a_chapter_that_does_not_run_is_not_written(
    monkeypatch, tmp_path, capsys
):
    template = tmp_path / "template.txt"
    template.write_text("%% code\n1 / 0\n")
    monkeypatch.setattr(new_chapter, "TEMPLATE", template)
    with pytest.raises(SystemExit, match="does not run. Nothing was written"):
        new_chapter.main([NAME])
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert not (BOOK / f"{NAME}.ipynb").exists()


def test_a_page_of_another_form_is_named():
    page = BOOK / "x.md"
    with pytest.raises(new_chapter.NewChapterError, match="x.md has changed"):
        new_chapter.insert("a a", "a", "b", page)
