"""Hold every notebook to the rules that can be read off its file."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import rules
from tools.notebooks import Notebook, paths
from tools.rules.book import one_name_one_body
from tools.rules.code import reshaping_lines_say_their_shape
from tools.rules.reading import first_reading_is_short
from tools.rules.text import sections_are_those_of_a_chapter
from tools.settings import ROOT, chapters

# What a notebook of the reference need not follow.
OF_CHAPTERS = {
    sections_are_those_of_a_chapter,
    first_reading_is_short,
    reshaping_lines_say_their_shape,  # it has no letters
}
CHAPTERS = {ROOT / f"{name}.ipynb" for name in chapters()}


@pytest.fixture(scope="module")
def book():
    """The notebooks of the book."""
    return [Notebook.read(path) for path in paths()]


@pytest.fixture(scope="module")
def notebooks(book, request):
    """Those that are asked for."""
    wanted = Path(request.config.getoption("only") or "").stem
    return [one for one in book if wanted in ("", one.path.stem)]


def fail_with(messages):
    """Fail with all messages at once, one to a line, if there are any."""
    if text := "\n".join(messages):
        pytest.fail(text, pytrace=False)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda f: f.__name__)
def test_notebooks_follow(rule, notebooks):
    fail_with(
        message
        for notebook in notebooks
        if notebook.path in CHAPTERS or rule not in OF_CHAPTERS
        for message in rule(notebook)
    )


def test_one_name_has_one_body_in_the_book(book):
    fail_with(one_name_one_body(book))


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff(command):
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--quiet", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        fail_with(
            [
                result.stdout + result.stderr,
                "Run: .venv/bin/ruff check --fix . && .venv/bin/ruff format .",
            ]
        )
