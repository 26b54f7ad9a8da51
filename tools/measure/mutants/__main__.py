"""Count how many small mistakes in the book's code its checks notice.

`make mutants`, which takes hours; `make mutants NB=book/masks.ipynb` for one
chapter, SAMPLE=40 for forty of the functions of each. It is a measure, and
reports; what survives is a list to read, in _build/mutants/survivors.txt. A
run that is interrupted goes on where it stopped, unless code has changed.
"""

import json
import sys
from argparse import ArgumentParser
from collections import Counter
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from tools.measure.mutants import forks
from tools.measure.mutants.judge import faults
from tools.measure.mutants.make import mutants
from tools.net.rules.book import bodies
from tools.notebooks import Notebook, label
from tools.settings import ROOT, chapters

TESTS = ROOT / "tests" / "chapters"
RESULTS = ROOT / "_build" / "mutants"


class Chapter:
    """A chapter's mutants, and a file with what is known of them.

    defined: the names that earlier chapters define. Whether code that
    chapters share is wrong is asked where it comes first.
    """

    def __init__(self, notebook, defined=(), results=RESULTS, tests=TESTS):
        self.notebook, stem = notebook, notebook.path.stem
        self.mutants = [
            mutant
            for mutant in mutants(notebook)
            if mutant.scope not in defined
        ]
        self.tests = [tests / f"test_{stem}.py", tests / "test_exercises.py"]
        decide = [notebook.path, *self.tests, tests / "conftest.py"]
        decide += sorted((ROOT / "tools").rglob("*.py"))
        digest = sha256()
        for path in filter(Path.exists, decide):
            digest.update(path.read_bytes())
        self.file = results / f"{stem}-{digest.hexdigest()[:12]}.jsonl"

    @cached_property
    def faults(self):
        """What the rules say of the chapter as it is."""
        return faults(self.notebook)

    def read(self):
        """Return a mutant's id -> (what catches it, or "", what that says)."""
        lines = self.file.read_text("utf-8") if self.file.exists() else ""
        found = map(json.loads, lines.splitlines())
        return {name: (by, why) for name, by, why in found}

    def record(self, mutant, by, why):
        """Keep a verdict, in one write."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.id, by, why[:200]]) + "\n")

    def unknown(self):
        """Return the mutants of which nothing is known."""
        known = self.read()
        return [mutant for mutant in self.mutants if mutant.id not in known]


def chosen(names, size):
    """Return the chapters of these names, or all, with a sample of mutants.

    size: how many of a chapter's functions; None takes all of the chapter.
    """
    defined, found = set(), []
    for name in chapters():
        notebook = Notebook.read(ROOT / f"{name}.ipynb")
        if not names or notebook.path.stem in names:
            chapter = Chapter(notebook, defined)
            if size:
                inside = [m for m in chapter.mutants if m.scope]
                some = sorted(inside, key=lambda mutant: mutant.id)[:size]
                chapter.mutants = sorted(some, key=lambda m: m.cell)
            found.append(chapter)
        defined |= {body for body, _, _ in bodies(notebook)}
    return found


def measure(chapters):
    """Judge the mutants of chapters, report, and list the survivors."""
    survivors, total = [], Counter()
    for chapter in chapters:
        forks.judge_all(chapter)
        known = chapter.read()
        left = [m for m in chapter.mutants if not known[m.id][0]]
        by = Counter(known[m.id][0] for m in chapter.mutants)
        report(chapter.notebook.path.stem, by)
        survivors, total = survivors + left, total + by
    report("all", total)
    file = chapters[0].file.with_name("survivors.txt")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{mutant}\n" for mutant in survivors), "utf-8")
    print(f"What nothing noticed is listed in {label(file)}.")


def report(name, by):
    """Print how many mutants were noticed, and by what."""
    total, caught = by.total(), by.total() - by[""]
    words = ", ".join(f"{what} {n}" for what, n in by.most_common() if what)
    share = caught / max(1, total)
    print(f"{name}: {caught} of {total} noticed, {share:.1%} ({words})")


def main(arguments):
    """Judge the mutants of the chapters; return the exit code."""
    parser = ArgumentParser(prog="mutants")
    parser.add_argument("chapters", nargs="*", help="book/masks.ipynb; or all")
    parser.add_argument("--sample", type=int, metavar="N", help="N of each")
    given = parser.parse_args(arguments)
    names = {Path(name).stem for name in given.chapters}
    if missing := names - {Path(name).stem for name in chapters()}:
        parser.error(f"there is no chapter {', '.join(sorted(missing))}")
    forks.warm()
    try:
        measure(chosen(names, given.sample))
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
