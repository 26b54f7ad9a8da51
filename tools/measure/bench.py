"""Measure what the notebooks, the tests and the pages cost.

`make bench ROUNDS=3`. The floor is one kernel per notebook that imports the
frameworks and does nothing else. ALLOWED says how many times the floor's CPU
time may go into comparing the notebooks, into the tests that need no browser,
and into those of the net, which put mistakes into the book; more than that
exits with 1. With several rounds the medians count. At the end the pages are
judged: see lighthouse.py.
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
from tools.settings import ROOT

ALLOWED = {"comparison": 1.5, "tests": 1.5, "net": 7.0}
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
    """Do what no comparison of a notebook can do without."""
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


def main(rounds):
    notebooks = sorted(ROOT.glob("book/*.ipynb"))
    pages = [*notebooks, *ROOT.glob("book/*.md")]
    tasks = {
        "floor": lambda: floor(notebooks),
        "comparison": lambda: run(*PYTEST, "book"),
        "tests": lambda: run(*PYTEST, "tests/chapters", "tests/pages"),
        "net": lambda: run(*PYTEST, "tests/proof"),
        "site": site,
    }
    meters = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            with Meter() as meter:
                task()
            meters[name].append(meter)

    cpu = {name: median(m.cpu for m in meters[name]) for name in tasks}
    print(f"{len(notebooks)} notebooks, {len(pages)} pages, rounds: {rounds}")
    print("            CPU s  x floor  allowed  wall s  peak MB")
    too_much = []
    for name in tasks:
        ratio, allowed = cpu[name] / cpu["floor"], ALLOWED.get(name, "")
        too_much += [name] if ratio > (allowed or ratio) else []
        wall = median(m.wall for m in meters[name])
        memory = median(m.memory for m in meters[name])
        print(
            f"{name:10}{cpu[name]:7.2f}{ratio:9.2f}{allowed:>9}"
            f"{wall:8.1f}{memory:9.0f}"
        )
    print(f"site, per page: {wall / len(pages):.1f} s")
    slow = lighthouse.main(rounds)
    if too_much or slow:
        sys.exit(f"Worse than allowed: {'; '.join(too_much + slow)}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1)
