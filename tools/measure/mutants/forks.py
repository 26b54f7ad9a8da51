"""Try mutants in forks of one process, which has imported the frameworks.

A chapter runs in a fork; before each cell it forks once for each mutant of
the cell, which goes on from there.
"""

import gc
import os
import signal
import sys
import traceback
from functools import partial
from importlib import import_module
from itertools import groupby

from tools.measure.mutants.judge import hold_cell, hold_to_tests, judge
from tools.net.compare import ENVIRONMENT
from tools.net.run import Run
from tools.notebooks import label, remedy

WORKERS = os.cpu_count()
SECONDS = 40  # of CPU time for a mutant; or five times as long, waiting
# A fork has no other threads than its own, so nothing may have many.
ONE_THREAD = ENVIRONMENT | {
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}


def warm():
    """Import what the mutants need, and compute nothing with it yet."""
    os.environ.update(ONE_THREAD)
    import tensorflow
    import torch

    for name in ("matplotlib.pyplot", "torch._dynamo"):
        import_module(name)
    torch.set_num_threads(1)
    threading = tensorflow.config.threading
    threading.set_intra_op_parallelism_threads(1)
    threading.set_inter_op_parallelism_threads(1)
    gc.freeze()  # so that no fork copies what only the collector looks at


def fork(task):
    """Do a task in a fork of this process; return the fork's number."""
    if pid := os.fork():
        return pid
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = 1
    try:
        task()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class Pool:
    """As many forks of this process at a time as there are cores."""

    def __init__(self):
        self.running = {}  # the number of a process -> what to do if it fails

    def start(self, task, failed=lambda status: None):
        """Do a task in a fork, once there is room."""
        while len(self.running) >= WORKERS:
            self.wait()
        self.running[fork(task)] = failed

    def wait(self):
        pid, status = os.wait()
        failed = self.running.pop(pid)
        if os.waitstatus_to_exitcode(status) == -signal.SIGINT:
            raise KeyboardInterrupt  # which the fork was told first
        if status:
            failed(status)

    def finish(self):
        while self.running:
            self.wait()


def judge_all(chapter):
    """Find out what is not known yet of a chapter's mutants.

    What did not end well in a fork of the running chapter runs again from the
    beginning: a compiled function cannot run there, for one.
    """
    if todo := chapter.unknown():
        pool = Pool()
        running = partial(run_chapter, chapter, todo)
        pool.start(running, partial(broken, chapter))
        pool.finish()
        for mutant in chapter.unknown():
            anew = partial(judge_one, chapter, mutant)
            pool.start(anew, partial(stopped, chapter, mutant))
        pool.finish()


def run_chapter(chapter, mutants):
    """Run a chapter, and from before each cell its mutants."""
    run, pool = Run(chapter.notebook), Pool()
    of_cell = groupby(mutants, lambda mutant: mutant.cell)
    waiting = {number: list(group) for number, group in of_cell}
    for place, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "code":
            for mutant in waiting.get(cell.execution_count, ()):
                pool.start(partial(go_on, chapter, mutant, run))
        hold_cell(run, place)
    pool.finish()
    hold_to_tests(run, chapter.tests)


def go_on(chapter, mutant, run):
    """Judge a mutant in a fork of the running chapter."""
    if tensorflow := sys.modules.get("tensorflow"):
        compiled = type(tensorflow.function(lambda: None))
        # It would wait for threads that a fork lacks. Without a verdict the
        # mutant is judged from the chapter's beginning.
        compiled.__call__ = lambda *_, **__: os._exit(0)
    judge_one(chapter, mutant, run)


def judge_one(chapter, mutant, run=None):
    """Judge a mutant and keep the verdict, within its time."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(5 * SECONDS)
    chapter.record(mutant, *judge(chapter, mutant, run))


def broken(chapter, status):
    """Stop where the chapter itself does not give what is stored."""
    path = chapter.notebook.path
    sys.exit(
        f"{label(path)}: does not run to its end as stored; see above. "
        f"Mend it, or store its outputs with: {remedy(path)}"
    )


def stopped(chapter, mutant, status):
    """Note a mutant that did not end by itself."""
    chapter.record(mutant, "hang or crash", f"status {status}")
