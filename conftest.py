"""What every test of the book shares, and what makes each cell a test."""

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

from tools.notebooks import DIED, Notebook, NotebookError, label, paths
from tools.rules.reading import minutes
from tools.run import cells
from tools.run.chapter import SECONDS
from tools.run.compare import ENVIRONMENT
from tools.settings import BOOK, chapters, need_model, without_model

STEMS = {path.stem for path in paths()}

os.environ.update(ENVIRONMENT)


def pytest_addoption(parser):
    parser.addoption(
        "--only",
        metavar="NOTEBOOK",
        help="leave out what other chapters are held to: book/masks.ipynb",
    )
    parser.addoption(
        "--all-sheets",
        action="store_true",
        help="run the sheets of all chapters, and each in one framework",
    )
    parser.addoption(
        "--cell-timeout",
        metavar="SECONDS",
        type=float,
        default=SECONDS,
        help="a cell that runs longer fails",
    )


def pytest_collect_file(file_path, parent):
    """Make each cell of a notebook a test; with --nbval, nbval does."""
    if file_path.suffix == ".ipynb":
        if not parent.config.getoption("nbval", False):
            return cells.File.from_parent(parent, path=file_path)


def pytest_itemcollected(item):
    """Keep each file's tests in one process, and all that runs a chapter.

    The processes take one such group after the other, so that they end
    together, however many there are.
    """
    group = item.get_closest_marker("xdist_group")
    if group is None:
        name = "frameworks" if item.path.parent == BOOK else str(item.path)
        group = pytest.mark.xdist_group(name)
        item.add_marker(group)
    if group.args == ("frameworks",):
        name = min(chapter_of(item), default=str(item.path))
        item.add_marker(pytest.mark.xdist_group(name))


def pytest_configure(config):
    wanted = config.getoption("only")
    if wanted and Path(wanted).stem not in STEMS:
        raise pytest.UsageError(
            f"{wanted} is no chapter; there are {', '.join(sorted(STEMS))}."
        )


def pytest_ignore_collect(collection_path, config):
    """Leave the files of other chapters unread, where one is asked for."""
    if wanted := config.getoption("only"):
        others = STEMS - {Path(wanted).stem}
        if collection_path.stem.removeprefix("test_") in others:
            return True


def pytest_collection_modifyitems(config, items):
    """Leave out what other files ask of other chapters.

    And what needs the published model, where its file is not here.
    """
    wanted = config.getoption("only")
    lost = need_model() if without_model() else set()
    out = {
        item
        for item in items
        if (chapter_of(item) | {item.path.stem}) & lost
        or (wanted and chapter_of(item) - {Path(wanted).stem})
    }
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


def chapter_of(item):
    """Return the chapter that a test is about, in a set; often empty.

    It is named by the test's file or by one of its parameters, which may be
    an exercise: `attention.own_attention`.
    """
    parameters = getattr(item, "callspec", None)
    values = parameters.params.values() if parameters else ()
    names = {Path(value).stem for value in values if isinstance(value, str)}
    names |= {*re.findall(r"\w+(?=\.)", parameters.id if parameters else "")}
    return names & STEMS or {item.path.stem.removeprefix("test_")} & STEMS


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem, report, sched):
    """Say which cell took the process with it, also to the next process."""
    if found := re.match(r"(.+)::(\[\d+\])", crashitem):
        cell = f"{label(sched.config.rootpath / found[1])} {found[2]}"
        report.longrepr = f"{cell}: {DIED}"
        os.environ[cells.LOST] = f"{os.environ.get(cells.LOST, '')}{cell}\n"


def pytest_terminal_summary(terminalreporter, config):
    """Say what was skipped, and how long the chapter asked for takes."""
    if reason := without_model():
        terminalreporter.write_line(f"{reason} What needs it was left out.")
    wanted = config.getoption("only")
    if wanted and f"book/{Path(wanted).stem}" in chapters():
        with suppress(NotebookError):
            time = minutes(Notebook.read(BOOK / Path(wanted).name))
            said = f"{wanted}: a first reading takes {time:.1f} minutes."
            terminalreporter.write_line(said)


@pytest.fixture(scope="session")
def chapter_run():
    """Return a function: chapter's name -> its Run.

    A chapter runs once in a process, whoever asks first. If it fails, that
    one fails, and all who ask later are skipped.
    """
    return lambda name: cells.run_of(BOOK / f"{name}.ipynb")


@pytest.fixture(scope="session")
def chapter(chapter_run):
    """Return a function: chapter's name -> its variables after a run."""
    return lambda name: chapter_run(name).namespace
