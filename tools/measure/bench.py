"""Measure what the notebooks, the tests and the pages cost.

`make bench ROUNDS=3`. The floor is one kernel per notebook that imports the
frameworks and does nothing else; TIMES_FLOOR says how many times its CPU time
the comparison may take, which runs the chapters in as many processes as there
are cores. SECONDS says how long, on two cores, whoever changes something may
have to wait. More than that exits with 1. With several rounds the medians
count. At the end the pages are judged: see lighthouse.py.
"""

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import psutil
from jupyter_client.manager import start_new_kernel

from tools.measure import lighthouse
from tools.settings import ROOT, chapters, contents

TIMES_FLOOR = {"comparison": 1.5}
SECONDS = {"rules": 3, "chapter": 15, "test": 180, "proof": 180}
IMPORTS = "import matplotlib.pyplot, tensorflow, torch"
PYTEST = [sys.executable, "-m", "pytest", "--quiet"]


class Meter:
    """Measure, in a with block, the processes that are started in it.

    cpu and wall are seconds; memory is the peak in MB, of all of them
    together. A process counts once its parent has waited for it.
    """

    def __enter__(self):
        self.memory, self.done = 0, threading.Event()
        self.sampler = threading.Thread(target=self.sample)
        self.sampler.start()
        self.start = time.perf_counter(), self.cpu_of_children()
        return self

    def __exit__(self, *exception):
        self.wall = time.perf_counter() - self.start[0]
        self.cpu = self.cpu_of_children() - self.start[1]
        self.done.set()
        self.sampler.join()

    @staticmethod
    def cpu_of_children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def sample(self):
        while not self.done.wait(0.1):
            total = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    pass  # it ended since it was listed
            self.memory = max(self.memory, total / 1e6)


def run(*command):
    """Run a command to its end; end the program if it fails."""
    result = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode:
        sys.exit(f"{result.stdout}\nNothing to measure: the above failed.")


def floor(notebooks):
    """Start a kernel per notebook, import the frameworks, end it.

    As many at a time as the comparison runs: cores that are busy together
    take more CPU time for the same work.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(start_and_import, notebooks))


def start_and_import(_):
    """Do what a kernel of a notebook cannot do without."""
    manager, client = start_new_kernel(stderr=subprocess.DEVNULL)
    reply = client.execute_interactive(
        IMPORTS, silent=True, output_hook=lambda message: None
    )
    client.stop_channels()
    manager.shutdown_kernel()
    if reply["content"]["status"] != "ok":
        sys.exit(f"{IMPORTS} failed: {reply['content']['evalue']}")


def site():
    """Build the book from nothing, elsewhere."""
    with tempfile.TemporaryDirectory() as out:
        program = Path(sys.executable).with_name("jupyter-book")
        run(program, "build", "--path-output", out, ".")


def tasks():
    """Return what is measured: name -> a function that does it."""
    notebooks = [f"{name}.ipynb" for name in chapters()]
    one = max(notebooks, key=lambda name: (ROOT / name).stat().st_size)
    quick = [one, "tests/chapters", "tests/pages/test_pages.py"]
    return {
        "floor": lambda: floor(notebooks),
        "comparison": lambda: run(*PYTEST, "book"),
        "rules": lambda: run(*PYTEST, "-n0", "tests/chapters/test_rules.py"),
        "chapter": lambda: run(*PYTEST, *quick, "--only", one),
        "test": lambda: run(*PYTEST),
        "test of one": lambda: run(*PYTEST, "--only", one),
        "proof": lambda: run(*PYTEST, "tests/proof"),
        "site": site,
    }


def main(rounds):
    meters = {name: [] for name in tasks()}
    for _ in range(rounds):
        for name, task in tasks().items():
            with Meter() as meter:
                task()
            meters[name].append(meter)

    cpu = {name: median(m.cpu for m in meters[name]) for name in meters}
    wall = {name: median(m.wall for m in meters[name]) for name in meters}
    count = len(chapters())
    print(f"{count} chapters, {len(contents())} pages, rounds: {rounds}")
    print("             CPU s  x floor  wall s  allowed  peak MB")
    too_much = []
    for name in meters:
        times, allowed = cpu[name] / cpu["floor"], ""
        if limit := TIMES_FLOOR.get(name):
            allowed = f"{limit} x"
            too_much += [name] if times > limit else []
        if limit := SECONDS.get(name):
            allowed = f"{limit} s"
            too_much += [name] if wall[name] > limit else []
        memory = median(m.memory for m in meters[name])
        print(
            f"{name:11}{cpu[name]:7.1f}{times:9.2f}{wall[name]:8.1f}"
            f"{allowed:>9}{memory:9.0f}"
        )
    a_chapter = (cpu["test"] - cpu["test of one"]) / (count - 1)
    fixed = cpu["test"] - count * a_chapter
    print(f"test: {fixed:.0f} CPU s, and {a_chapter:.0f} a chapter")
    print(f"site: {wall['site'] / len(contents()):.1f} s a page")
    slow = lighthouse.main(rounds)
    if too_much or slow:
        sys.exit(f"Worse than allowed: {'; '.join(too_much + slow)}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1)
