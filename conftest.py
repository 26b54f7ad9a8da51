"""What every test of the book shares; the comparison is made strict here."""

import os
from functools import cache

import pytest

from tools.net import kernel, strict_nbval
from tools.net.run import run
from tools.notebooks import Notebook
from tools.settings import BOOK

os.environ.update(kernel.ENVIRONMENT)
strict_nbval.install()


def pytest_itemcollected(item):
    """Keep each file's tests in one process, as each notebook needs."""
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.fixture(scope="session")
def chapter_run():
    """Return a function: chapter's name -> its Run.

    A chapter runs once in a session, whoever asks.
    """
    return cache(lambda name: run(Notebook.read(BOOK / f"{name}.ipynb")))


@pytest.fixture(scope="session")
def chapter(chapter_run):
    """Return a function: chapter's name -> its variables after a run."""
    return lambda name: chapter_run(name).namespace
