"""Count how many mutants of the book's code the regression net catches.

`make mutants`, or for one chapter `python -m tools.measure.mutants masks`;
with `--sample=80` for so many of each chapter's functions.
Verdicts are kept in _build/mutants/ until what they hang on changes; an
interrupted run goes on where it stopped. Of the whole book, survivors.txt
beside them lists what nothing notices, and what explained.toml need no longer
explain is said.
"""

import sys
import tempfile
import zlib
from argparse import ArgumentParser
from functools import partial
from pathlib import Path

from tools.measure.mutants import forks, report
from tools.measure.mutants.keep import RESULTS, Chapter
from tools.notebooks import Notebook, label
from tools.settings import ROOT, chapters

SURVIVORS = "survivors.txt"


def sample(mutants, size):
    """Return some mutants, the same on every run, from here and there."""
    return sorted(
        sorted(mutants, key=lambda m: zlib.crc32(m.id.encode()))[:size],
        key=lambda mutant: mutant.cell,
    )


def judge_all(chapters):
    """Judge all mutants of chapters; return mutant -> what catches it."""
    forks.warm()
    total = sum(len(chapter.unknown()) for chapter in chapters)
    try:
        with forks.beside(partial(report.meter, chapters, total)):
            for chapter in chapters:
                forks.judge_all(chapter)
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on here.", file=sys.stderr)
        sys.exit(130)
    return {
        mutant: known[mutant.id][0]
        for chapter in chapters
        for known in [chapter.read()]
        for mutant in chapter.mutants
    }


def measure(chapters, explained, whole_book):
    """Judge the mutants of chapters and report; return the exit code."""
    found = report.report(judge_all(chapters), explained)
    if whole_book:
        survivors = chapters[0].file.with_name(SURVIVORS)
        left = [m for m, outcome in found.items() if outcome != "caught"]
        survivors.write_text("".join(f"{mutant}\n" for mutant in left))
        print(f"What nothing notices is listed in {label(survivors)}.")
        for lines in report.stale(found, explained):
            name = report.EXPLAINED.name
            print(f"{name}: is caught or gone, so remove it: {lines}")
    inside = [found[mutant] for mutant in found if mutant.scope]
    if report.score(inside) >= report.TARGET:
        return 0
    print(f"Under {report.TARGET:.0%} of the definitions are caught.")
    return 1


def main(arguments):
    """Judge the mutants of the chapters; return the exit code."""
    parser = ArgumentParser(prog="mutants")
    parser.add_argument("chapters", nargs="*", help="as masks; or all")
    parser.add_argument(
        "--definitions", action="store_true", help="only what is in these"
    )
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only N of each chapter"
    )
    given = parser.parse_args(arguments)
    book = [Notebook.read(ROOT / f"{name}.ipynb") for name in chapters()]
    names = [notebook.path.stem for notebook in book]
    if missing := set(given.chapters) - set(names):
        parser.error(f"there is no chapter {missing}")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) if given.sample else RESULTS
        chosen = [
            Chapter(notebook, book[:place], kept)
            for place, notebook in enumerate(book)
            if notebook.path.stem in (given.chapters or names)
        ]
        for chapter in chosen:
            if given.sample or given.definitions:
                chapter.mutants = [m for m in chapter.mutants if m.scope]
            if given.sample:
                chapter.mutants = sample(chapter.mutants, given.sample)
        part = given.chapters or given.definitions or given.sample
        return measure(chosen, report.explanations(), not part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
