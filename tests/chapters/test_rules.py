"""Hold every chapter to the rules that can be read off its file."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import rules
from tools.notebooks import Notebook, paths
from tools.rules.book import one_name_one_body
from tools.settings import ROOT


@pytest.fixture(scope="module")
def book():
    """The notebooks of the book."""
    return [Notebook.read(path) for path in paths()]


@pytest.fixture(scope="module")
def chapters(book, request):
    """Those that are asked for."""
    wanted = Path(request.config.getoption("only") or "").stem
    return [one for one in book if wanted in ("", one.path.stem)]


def fail_with(messages):
    """Fail with all messages at once, one to a line, if there are any."""
    if text := "\n".join(messages):
        pytest.fail(text, pytrace=False)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda f: f.__name__)
def test_chapters_follow(rule, chapters):
    fail_with(message for chapter in chapters for message in rule(chapter))


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
