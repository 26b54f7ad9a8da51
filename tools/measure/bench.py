"""Measure what the tests and the pages cost.

`make bench ROUNDS=3`, of which the medians count. An aim is what whoever
changes something would like to wait; a limit is what two cores take today,
with a margin: above it, something has grown, and the command fails. At the
end the pages are judged: see lighthouse.py.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tools.measure import lighthouse
from tools.settings import ROOT, chapters

PYTEST = [sys.executable, "-m", "pytest", "--quiet"]
AIMS = {"rules": 3, "chapter": 15, "test": 240, "proof": 150}  # seconds
LIMITS = {"rules": 10, "chapter": 45, "test": 600, "proof": 450}


def commands(folder):
    """Return what is measured, name -> command; folder: of a new site."""
    notebooks = [f"{name}.ipynb" for name in chapters()]
    one = max(notebooks, key=lambda name: (ROOT / name).stat().st_size)
    quick = [one, "tests/chapters", "tests/pages/test_pages.py"]
    book = Path(sys.executable).with_name("jupyter-book")
    return {
        "rules": [*PYTEST, "-n0", "tests/chapters/test_rules.py"],
        "chapter": [*PYTEST, *quick, "--only", one],
        "test": PYTEST,
        "proof": [*PYTEST, "tests/proof"],
        "site": [book, "build", "--path-output", folder, "."],
    }


def cpu_of_children():
    """Return the core seconds of all processes that have ended here."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(command):
    """Run a command; return its seconds, and those of all cores together."""
    start = time.perf_counter(), cpu_of_children()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nNothing to measure: see above.")
    return time.perf_counter() - start[0], cpu_of_children() - start[1]


def main(rounds):
    found = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name, command in commands(folder).items():
                found.setdefault(name, []).append(measure(command))
    print(f"{len(chapters())} chapters, rounds: {rounds}")
    print("          seconds   aim  limit  core seconds")
    slow = []
    for name, times in found.items():
        wall, cpu = map(median, zip(*times, strict=True))
        aim, limit = AIMS.get(name, ""), LIMITS.get(name, "")
        print(f"{name:8}{wall:9.1f}{aim:>6}{limit:>7}{cpu:14.1f}")
        slow += [f"{name}: {wall:.0f} s"] if wall > (limit or wall) else []
    if slow := slow + lighthouse.main(rounds):
        sys.exit("\n".join(["Above the limit:", *slow]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1)
