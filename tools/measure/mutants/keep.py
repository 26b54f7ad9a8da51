"""Keep the verdicts on a chapter's mutants while they hold.

Each stands in a line of a file of its chapter, written as it comes: a run
that is interrupted goes on where it stopped. What a verdict hangs on, besides
the mutant, is digested in the file's first line.
"""

import hashlib
import json
import platform
from functools import cached_property
from importlib.metadata import version

from tools.measure.mutants.judge import copies, faults
from tools.measure.mutants.make import mutants
from tools.settings import ROOT

TESTS = ROOT / "tests" / "chapters"
RESULTS = ROOT / "_build" / "mutants"
TOOLS = [
    *(ROOT / "tools" / name for name in ("notebooks.py", "settings.py")),
    *(ROOT / "tools" / "net", ROOT / "tools" / "measure" / "mutants"),
]
SHARED = [ROOT / "conftest.py", TESTS / "conftest.py"]  # by all tests
PACKAGES = [
    *("torch", "tensorflow", "keras", "numpy", "matplotlib"),
    *("ipython", "matplotlib-inline", "nbformat", "nbval", "pytest"),
]
# What says and explains the verdicts does not decide them.
IDLE = {"__main__.py", "report.py", "explained.toml"}


def digest(paths, *words):
    """Return what changes when a word, or a file in one of the paths, does."""
    told = hashlib.sha256(repr(words).encode())
    for file in files(paths):
        told.update(f"{file.name} {file.stat().st_size} ".encode())
        told.update(file.read_bytes())
    return told.hexdigest()


def files(paths):
    """Yield the files of the paths, and of the folders among them."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            idle = file.suffix == ".pyc" or file.name in IDLE
            if file.is_file() and not idle:
                yield file


class Chapter:
    """A chapter's mutants and what is known of them.

    before: the chapters that stand before it in the book.
    """

    def __init__(self, notebook, before, results=RESULTS, tests=TESTS):
        self.notebook, stem = notebook, notebook.path.stem
        self.mutants = mutants(notebook)
        self.file = results / f"{stem}.jsonl"
        self.tests = [tests / f"test_{stem}.py", tests / "test_exercises.py"]
        self.copies = {
            mutant.id: ("rule", message)
            for mutant, message in copies(notebook, self.mutants, before)
        }
        versions = platform.python_version(), *map(version, PACKAGES)
        self.digests = [
            digest([notebook.path, *TOOLS], *versions),
            digest([*self.tests, *SHARED]),
        ]

    @cached_property
    def faults(self):
        """What the rules say of the chapter as it is."""
        return faults(self.notebook)

    def read(self):
        """Return a mutant's id -> (what catches it, or "", what that says).

        Of another text of the chapter or the net nothing is known; of other
        tests of the chapter, what was caught before they ran.
        """
        header, *lines = [""]
        if self.file.exists():
            header, *lines = self.file.read_text().splitlines()
        found = [json.loads(line) for line in lines]
        if header.split() != self.digests:
            same = header.split()[:1] == self.digests[:1]
            found = [f for f in found if same and f[1] not in ("", "test")]
            self.file.parent.mkdir(parents=True, exist_ok=True)
            lines = [" ".join(self.digests), *map(json.dumps, found)]
            self.file.write_text("".join(f"{line}\n" for line in lines))
        return {name: (by, why) for name, by, why in found} | self.copies

    def record(self, mutant, by, why):
        """Keep a verdict, in one write."""
        line = json.dumps([mutant.id, by, why[:200]])
        with self.file.open("a") as file:
            file.write(f"{line}\n")

    def known(self):
        """Return how many verdicts the file holds."""
        return self.file.read_text().count("\n") - 1

    def unknown(self):
        """Return the mutants of which nothing is known."""
        known = self.read()
        return [mutant for mutant in self.mutants if mutant.id not in known]
