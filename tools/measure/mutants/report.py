"""Report how many mutants are caught, and what survives."""

import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

EXPLAINED = Path(__file__).with_name("explained.toml")
TARGET = 0.95  # of the mutants of definitions


def explanations(file=EXPLAINED):
    """Return (before, after) -> (whether equivalent, the reason)."""
    tables = tomllib.loads(file.read_text("utf-8"))
    return {
        (before, after): (kind == "equivalent", entry["reason"])
        for kind in ("equivalent", "survives")
        for entry in tables.get(kind, [])
        for before, after in entry["changes"]
    }


def outcomes(verdicts, explained):
    """Return mutant -> "caught", "equivalent" or "survives"."""

    def outcome(mutant, caught_by):
        equivalent, _ = explained.get(mutant.lines, (False, ""))
        survives = "equivalent" if equivalent else "survives"
        return "caught" if caught_by else survives

    return {mutant: outcome(mutant, by) for mutant, by in verdicts.items()}


def stale(found, explained):
    """Return the explanations of what is caught, or of no mutant any more."""
    needed = {m.lines for m, outcome in found.items() if outcome != "caught"}
    return [lines for lines in explained if lines not in needed]


def unexplained(found, explained):
    """Return the surviving mutants of definitions that nothing explains."""
    return [
        mutant
        for mutant, outcome in found.items()
        if outcome != "caught" and mutant.scope
        if mutant.lines not in explained
    ]


def score(outcomes):
    """Return the share that is caught of what can be."""
    count = Counter(outcomes)
    return count["caught"] / max(1, len(outcomes) - count["equivalent"])


def table(title, found, key):
    """Print the score of each group of mutants: key(mutant) is its name."""
    groups = {}
    for mutant, outcome in found.items():
        groups.setdefault(key(mutant), []).append(outcome)
    print(f"{title:24}mutants  caught  equivalent  survive    score")
    for name, outcomes in groups.items():
        count = Counter(outcomes)
        print(
            f"{name:24}{len(outcomes):7}{count['caught']:8}"
            f"{count['equivalent']:12}{count['survives']:9}"
            f"{score(outcomes):8.1%}"
        )


def report(verdicts, explained):
    """Print the scores and what survives; return mutant -> outcome.

    verdicts: mutant -> what catches it, or "".
    """
    found = outcomes(verdicts, explained)
    inside = {m: outcome for m, outcome in found.items() if m.scope}
    for mutant in unexplained(found, explained):
        print("survives unexplained:", mutant)
    table("kind", found, lambda mutant: mutant.kind)
    table("chapter", found, lambda mutant: mutant.notebook)
    table("definitions of", inside, lambda mutant: mutant.notebook)
    table("", found, lambda mutant: "all")
    table("", inside, lambda mutant: "all definitions")
    caught = Counter(by for by in verdicts.values() if by)
    print("caught by", *(f"{by}: {n}," for by, n in caught.items()))
    return found


def meter(chapters, total):
    """Say now and then how much is done and how long the rest takes."""
    start, shown = time.time(), sys.stderr.isatty()
    first = sum(chapter.known() for chapter in chapters)
    while True:
        time.sleep(1 if shown else 60)
        if done := sum(chapter.known() for chapter in chapters) - first:
            left = (total - done) * (time.time() - start) / done
            print(
                f"{done} of {total} mutants, {left / 60:.0f} min left   ",
                end="\r" if shown else "\n",
                file=sys.stderr,
                flush=True,
            )
