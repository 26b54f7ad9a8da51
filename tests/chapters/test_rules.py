"""Hold every chapter to the rules that can be read off its file."""

import subprocess
import sys

import pytest

from tools import rules
from tools.notebooks import Notebook, paths
from tools.rules import book
from tools.settings import ROOT


@pytest.fixture(scope="module")
def chapters():
    """The notebooks of the book."""
    return [Notebook.read(path) for path in paths()]


def fail_with(messages):
    """Fail with all messages at once, one to a line, if there are any."""
    if text := "\n".join(messages):
        pytest.fail(text, pytrace=False)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda f: f.__name__)
def test_chapters_follow(rule, chapters):
    fail_with(message for chapter in chapters for message in rule(chapter))


def test_one_name_has_one_body_in_the_book(chapters):
    fail_with(book.one_name_one_body(chapters))


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
