"""Hold every chapter to the rules that can be read off its file."""

import subprocess
import sys

import pytest

from tests import checks
from tests.notebooks import ROOT, Notebook, paths

CHAPTERS = [Notebook.read(path) for path in paths()]


def fail_with(messages):
    """Fail with all messages at once, one to a line."""
    messages = list(messages)
    assert not messages, "\n" + "\n".join(messages)


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda f: f.__name__)
def test_chapters_follow(check):
    fail_with(message for chapter in CHAPTERS for message in check(chapter))


def test_one_name_has_one_body_in_the_whole_book():
    fail_with(checks.one_name_one_body(CHAPTERS))


def test_shapes_that_stand_once_are_meant():
    fail_with(checks.shapes_said_once(CHAPTERS))


def test_every_notebook_is_in_the_table_of_contents():
    fail_with(checks.files_not_built(CHAPTERS))


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
