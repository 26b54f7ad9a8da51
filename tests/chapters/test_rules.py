"""Hold every chapter to the rules that can be read off its file."""

import subprocess
import sys

import pytest

from tools.net import rules
from tools.net.rules import book
from tools.notebooks import Notebook, paths
from tools.settings import BOOK, ROOT


@pytest.fixture(scope="module")
def chapters():
    """The notebooks of the book."""
    return [Notebook.read(path) for path in paths()]


def fail_with(messages):
    """Fail with all messages at once, one to a line."""
    messages = list(messages)
    assert not messages, "\n" + "\n".join(messages)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda f: f.__name__)
def test_chapters_follow(rule, chapters):
    fail_with(message for chapter in chapters for message in rule(chapter))


def test_one_name_has_one_body_in_the_whole_book(chapters):
    fail_with(book.one_name_one_body(chapters))


def test_one_thing_has_one_name_in_all_notation_tables(chapters):
    page = Notebook.page(BOOK / "notation.md")
    fail_with(book.one_thing_one_name([page, *chapters]))


def test_shapes_that_stand_once_are_meant(chapters):
    fail_with(book.shapes_said_once(chapters))


def test_every_notebook_is_in_the_table_of_contents(chapters):
    fail_with(book.files_not_built(chapters))


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff(command):
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--quiet", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, (
        f"\n{result.stdout}{result.stderr}"
        "Run: .venv/bin/ruff check --fix . && .venv/bin/ruff format ."
    )
