"""Count how many mutants of the book's code the regression net catches.

`make mutants`. `--definitions` leaves out what is in no function or class,
`--sample` all but a fixed sample.
The frameworks are imported once. Each chapter runs in a fork of that process,
and before each cell the chapter forks once for each mutant of the cell, which
goes on from there, compares each cell's outputs as the regression check does,
holds the shape comments and the numbers in prose, and at the end runs the
chapter's own tests. It stops where one does not hold.

Results are kept in _build/mutants/ as they come: an interrupted run goes on
where it stopped, and a chapter is judged anew when it or the net changes. At
the end survivors.txt, beside them, lists what nothing notices.
"""

import ast
import builtins
import gc
import hashlib
import io
import json
import linecache
import os
import signal
import sys
import tempfile
import time
import tomllib
import traceback
import zlib
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from nbformat import NotebookNode

from tools.measure.mutants import mutants
from tools.net import shapes
from tools.net.kernel import ENVIRONMENT as kernel_environment
from tools.net.prose import check_prose
from tools.notebooks import (
    Notebook,
    alt_text,
    label,
    paths,
    remedy,
)
from tools.settings import ROOT

TESTS = ROOT / "tests" / "chapters"
RESULTS = ROOT / "_build" / "mutants"
SURVIVORS = RESULTS / "survivors.txt"
EXPLAINED = Path(__file__).with_name("explained.toml")
WORKERS = os.cpu_count()
SECONDS = 40  # of CPU time for a mutant; or five times as long, waiting
# What decides, besides a chapter and its tests, whether a mutant is caught.
NET = [
    "chapters",
    "compare",
    "figures",
    "mutants",
    "mutation",
    "prose",
    "shapes",
    "strict_nbval",
]
SAMPLED = 300  # one mutant in so many is tried by `make test`
TARGET = 0.95  # of the mutants of definitions

# A fork has no other threads than its own, so nothing may have many.
ENVIRONMENT = kernel_environment | {
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


class Caught(Exception):
    """The net notices a mutant; by what, and what it says."""


class NotInFork(BaseException):
    """A compiled TensorFlow function waits for threads that a fork lacks."""


# What nbval leaves out of a comparison, unless told otherwise.
SKIPPED = (
    *("metadata", "traceback", "prompt_number", "output_type", "name"),
    *("execution_count", "image/png", "image/jpeg"),
)

# Running a notebook as a kernel would


class Kernel:
    """Run cells in this process and collect what a kernel would send."""

    def __init__(self, notebook):
        from IPython.core.displayhook import DisplayHook
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.interactiveshell import InteractiveShell
        from nbformat import v4
        from traitlets.config import Config

        kernel = self

        class Publisher(DisplayPublisher):
            def publish(self, data, *_, **__):
                kernel.outputs.append(v4.new_output("display_data", data))

        class Hook(DisplayHook):
            def __call__(self, value=None):
                if value is not None:
                    data, _ = self.compute_format_data(value)
                    out = v4.new_output("execute_result", data)
                    kernel.outputs.append(out)

        class Stream(io.StringIO):
            def write(self, text):
                out = v4.new_output("stream", name=self.name, text=text)
                last = kernel.outputs[-1:]
                if last and last[0].get("name") == self.name:
                    last[0].text += text
                elif text:
                    kernel.outputs.append(out)

        class Shell(InteractiveShell):
            display_pub_class = Publisher
            displayhook_class = Hook

            def enable_gui(self, gui=None):
                pass  # there is no window

        # display() asks InteractiveShell for its instance.
        self.shell = Shell.instance(
            config=Config(HistoryManager={"enabled": False})
        )
        self.shell.enable_matplotlib("inline")
        self.streams = {name: Stream() for name in ("stdout", "stderr")}
        for name, stream in self.streams.items():
            stream.name = name
        self.outputs = []
        words = "\n".join(cell.source for cell in notebook.markdown)
        self.toy = toy = shapes.notation(words)
        self.namespace = {
            "__name__": "__main__",
            "__builtins__": builtins,
            **shapes.hooks(toy, []),
        }

    def run(self, source, file):
        """Run a cell; return its outputs. What it raises is passed on."""
        self.outputs = []
        linecache.cache[file] = len(source), None, source.splitlines(1), file
        tree = shapes.rewrite(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with (
            redirect_stdout(self.streams["stdout"]),
            redirect_stderr(self.streams["stderr"]),
        ):
            try:
                exec(compile(tree, file, "exec"), self.namespace)
                if last is not None:
                    shown = ast.Interactive([last])
                    with patch("sys.displayhook", self.shell.displayhook):
                        exec(compile(shown, file, "single"), self.namespace)
            finally:
                self.shell.events.trigger("post_execute")  # shows figures
        return self.outputs


def same_outputs(computed, stored):
    """Tell whether the regression check accepts the outputs of a cell."""
    from nbval.plugin import coalesce_streams, nocolors

    from tools.net.strict_nbval import compare_outputs

    cell = SimpleNamespace(
        parent=SimpleNamespace(skip_compare=SKIPPED),
        colors=nocolors,
        sanitize=lambda value: value,
        format_output_compare=lambda *values: None,
    )
    return compare_outputs(
        cell, coalesce_streams(computed), coalesce_streams(stored)
    )


def run_cell(kernel, notebook, index):
    """Run one cell; raise Caught where it is not as stored."""
    cell = notebook.cells[index]
    text = cell.source
    if cell.cell_type == "code":
        text = alt_text(cell)
        try:
            outputs = kernel.run(
                cell.source, f"<{notebook.path.stem} {index}>"
            )
        except shapes.ShapeError as error:
            raise Caught("shape comment", error) from None
        except (Exception, SystemExit) as error:
            raise Caught("error", f"{type(error).__name__}: {error}") from None
        if not same_outputs(outputs, cell.outputs):
            raise Caught("output", notebook.name(cell))
    if messages := check_prose(text, kernel.namespace):
        raise Caught("number in prose", messages[0])


def run_tests(notebook, kernel, files):
    """Run a chapter's own tests on what a run of it left."""
    import pytest

    from tools.net import run as chapters

    kernel.toy.clear()  # as after chapters.run
    stem, path = notebook.path.stem, notebook.path.resolve()
    read, run = Notebook.read, chapters.run
    ran = chapters.Run(kernel.namespace, [], [], [])
    failed = []

    class Plugin:
        def pytest_collection_modifyitems(self, items):
            items[:] = [
                item
                for item in items
                if not hasattr(item, "callspec")
                or item.callspec.params.get("notebook", stem) == stem
            ]

        def pytest_runtest_logreport(self, report):
            if report.failed:
                failed.append(report.nodeid)

    def same(other):
        return Path(other).resolve() == path

    options = ["-qx", "-o", "addopts=", "-m", "not browser"]
    for plugin in ("cacheprovider", "xdist", "nbval", "hypothesispytest"):
        options += ["-p", f"no:{plugin}"]
    with (
        patch.object(
            Notebook, "read", lambda p: notebook if same(p) else read(p)
        ),
        patch.object(
            chapters,
            "run",
            lambda nb: ran if nb is notebook else run(nb),
        ),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        status = pytest.main([*options, *map(str, files)], [Plugin()])
    if refused:
        raise NotInFork
    if failed:
        raise Caught("test", failed[0])
    if status:
        raise RuntimeError(f"pytest ended with {status!r}")


# One mutant, one process


def judge(notebook, tests, mutant, kernel=None):
    """Return (what catches a mutant, what that says), or ("", "").

    With the kernel of a chapter that has run to before the mutant's cell, go
    on from there; without one, run the chapter from its beginning.
    """
    place = notebook.cells.index(notebook.code[mutant.cell - 1])
    cells = list(notebook.cells)
    cells[place] = NotebookNode(cells[place], source=mutant.mutated)
    mutated = Notebook(notebook.path, NotebookNode(cells=cells))
    first = place if kernel else 0
    kernel = kernel or Kernel(notebook)
    try:
        for index in range(first, len(cells)):
            run_cell(kernel, mutated, index)
        run_tests(mutated, kernel, tests)
    except Caught as caught:
        return [str(part) for part in caught.args]
    return "", ""


class Pool:
    """As many forks of this process at a time as there are cores."""

    def __init__(self, failed=lambda mutant, status: None):
        self.running = {}  # the number of a process -> its mutant
        self.failed = failed

    def start(self, mutant, task):
        """Do a task for a mutant in a fork, once there is room."""
        while len(self.running) >= WORKERS:
            self.wait()
        self.running[fork(task)] = mutant

    def wait(self):
        pid, status = os.wait()
        if pid in self.running:
            mutant = self.running.pop(pid)
            if status:
                self.failed(mutant, status)

    def finish(self):
        while self.running:
            self.wait()


def fork(task):
    """Do a task in a fork of this process; return the fork's number."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        task()
        status = 0
    except NotInFork:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def refuse(*arguments, **keywords):
    """Stand in for the call of a compiled function of TensorFlow."""
    refused.append(True)
    raise NotInFork


refused = []  # as a test may take the exception for its own failure


def digest(files):
    """Return what changes when one of the files does."""
    text = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(text).hexdigest()


class Chapter:
    """A chapter's mutants and what is known of them."""

    def __init__(self, path, results=RESULTS, tests=TESTS):
        self.notebook = Notebook.read(path)
        self.mutants = mutants(self.notebook)
        self.file = results / f"{path.stem}.jsonl"
        self.tests = [
            tests / f"test_{path.stem}.py",
            TESTS / "test_exercises.py",
        ]
        self.digests = [
            digest([path, *(TESTS / f"{name}.py" for name in NET)]),
            digest(self.tests),
        ]
        self.results = self.read()

    def read(self):
        """Return what is known: a mutant's id -> (by, why).

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
        return {name: (by, why) for name, by, why in found}

    def record(self, mutant, by, why):
        """Keep a result, in one write."""
        line = json.dumps([mutant.id, by, why[:200]])
        with self.file.open("a") as file:
            file.write(f"{line}\n")

    def known(self):
        """Return how many results the file holds."""
        return self.file.read_text().count("\n") - 1

    def judge(self, mutant, kernel=None):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(5 * SECONDS)
        self.record(mutant, *judge(self.notebook, self.tests, mutant, kernel))

    def chain(self, todo):
        """Run the chapter, and from before each cell its mutants."""

        def from_here(mutant):
            if "tensorflow" in sys.modules:
                from tensorflow.python.eager import polymorphic_function

                compiled = polymorphic_function.polymorphic_function
                compiled.Function.__call__ = refuse
            self.judge(mutant, kernel)

        kernel, pool = Kernel(self.notebook), Pool()
        of_cell = groupby(todo, lambda mutant: mutant.cell)
        waiting = {number: list(group) for number, group in of_cell}
        for index, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                number = cell.execution_count
                for mutant in waiting.get(number, ()):
                    pool.start(mutant, partial(from_here, mutant))
            run_cell(kernel, self.notebook, index)
        pool.finish()
        run_tests(self.notebook, kernel, self.tests)

    def run(self, chosen):
        """Find out what is not known yet of the chosen mutants.

        What did not end well in a fork of the running chapter runs again from
        the beginning: a compiled function cannot run there, for one.
        """
        todo = [m for m in chosen if m.id not in self.results]
        if todo:
            pool = Pool(self.broken)
            pool.start(None, partial(self.chain, todo))
            pool.finish()
            self.results = self.read()
            pool = Pool(self.stopped)
            for mutant in todo:
                if mutant.id not in self.results:
                    pool.start(mutant, partial(self.judge, mutant))
            pool.finish()
            self.results = self.read()

    def broken(self, _, status):
        """Stop where the chapter itself does not give what is stored."""
        path = self.notebook.path
        sys.exit(
            f"{label(path)}: does not run to its end as stored; see above. "
            f"Mend it, or store its outputs with: {remedy(path)}"
        )

    def stopped(self, mutant, status):
        """Note a mutant that did not end by itself."""
        number = os.waitstatus_to_exitcode(status)
        if number >= 0:
            raise RuntimeError(f"{mutant}\nended with the exit code {number}.")
        name = signal.Signals(-number).name
        self.record(mutant, "hang or crash", name)


def warm():
    """Import what the mutants need, and compute nothing with it yet."""
    os.environ.update(ENVIRONMENT)
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
    import matplotlib.mathtext
    import matplotlib.pyplot
    import nbval.plugin  # noqa: F401
    import PIL.Image
    import pytest  # noqa: F401
    import tensorflow
    import torch
    import torch._dynamo

    PIL.Image.init()  # imports its formats
    matplotlib.font_manager.findfont("DejaVu Sans")  # reads the font list

    torch.set_num_threads(1)
    threading = tensorflow.config.threading
    threading.set_intra_op_parallelism_threads(1)
    threading.set_inter_op_parallelism_threads(1)
    gc.freeze()  # so that no fork copies what only the collector looks at


def explanations():
    """Return (before, after) -> (whether equivalent, the reason)."""
    tables = tomllib.loads(EXPLAINED.read_text("utf-8"))
    return {
        (before, after): (kind == "equivalent", entry["reason"])
        for kind in ("equivalent", "survives")
        for entry in tables.get(kind, [])
        for before, after in entry["changes"]
    }


def watch(chapters, total, start):
    """Say now and then how much is done and how long the rest takes."""
    first = sum(map(Chapter.known, chapters))
    shown = sys.stderr.isatty()
    while True:
        time.sleep(1 if shown else 60)
        done = sum(map(Chapter.known, chapters))
        if done > first:
            pace = (time.time() - start) / (done - first)
            left = (total - done + first) * pace
            print(
                f"{done - first} of {total} mutants, "
                f"{left / 60:.0f} min left   ",
                end="\r" if shown else "\n",
                file=sys.stderr,
                flush=True,
            )


def table(title, groups):
    """Print the score of each group: name -> its outcomes."""
    print(f"{title:24}mutants  caught  equivalent  survive    score")
    for name, outcomes in groups.items():
        count = Counter(outcomes)
        print(
            f"{name:24}{len(outcomes):7}{count['caught']:8}"
            f"{count['equivalent']:12}{count['survives']:9}"
            f"{score(outcomes):8.1%}"
        )


def score(outcomes):
    """Return the share that is caught of what can be."""
    count = Counter(outcomes)
    return count["caught"] / max(1, len(outcomes) - count["equivalent"])


def report(chapters, explained):
    """Print the scores and what survives; return (faults, lines needed)."""
    outcomes, needed, new = {}, set(), []
    for chapter in chapters:
        for mutant in chapter.mutants:
            known = explained.get(mutant.lines)
            caught, _ = chapter.results[mutant.id]
            equivalent = known is not None and known[0]
            survives = "equivalent" if equivalent else "survives"
            outcomes[mutant] = "caught" if caught else survives
            if not caught and known:
                needed.add(mutant.lines)
            elif not caught and mutant.scope:
                new.append(mutant)

    def grouped(key, chosen=outcomes):
        groups = {}
        for mutant in chosen:
            groups.setdefault(key(mutant), []).append(outcomes[mutant])
        return groups

    inside = [mutant for mutant in outcomes if mutant.scope]
    for mutant in new:
        print("survives unexplained:", mutant)
    table("kind", grouped(lambda mutant: mutant.kind))
    table("chapter", grouped(lambda mutant: mutant.notebook))
    table("definitions of", grouped(lambda mutant: mutant.notebook, inside))
    table("", {"all": list(outcomes.values())})
    table("", definitions := grouped(lambda _: "all definitions", inside))
    caught = [by for c in chapters for by, _ in c.results.values() if by]
    print("caught by", *(f"{by}: {n}," for by, n in Counter(caught).items()))
    faults = []
    if score(sum(definitions.values(), [])) < TARGET:
        faults.append(f"Under {TARGET:.0%} of the definitions are caught.")
    return faults, needed


def sample(chosen):
    """Return the mutants of a fixed sample, spread over cells and kinds."""
    drawn = [
        mutant
        for mutant in chosen
        if zlib.crc32(mutant.id.encode()) % SAMPLED == 0
    ]
    return drawn or chosen[:1]


def main(arguments):
    """Judge the mutants of the chapters; return the exit code."""
    names = [name for name in arguments if not name.startswith("--")]
    chosen = [p for p in paths() if not names or p.stem in names]
    if missing := set(names) - {path.stem for path in chosen}:
        print(f"There is no chapter {missing}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        is_sample = "--sample" in arguments
        kept = Path(folder) if is_sample else RESULTS
        chapters = [Chapter(path, kept) for path in chosen]
        for chapter in chapters:
            if is_sample:
                chapter.mutants = sample(chapter.mutants)
            if "--definitions" in arguments:
                chapter.mutants = [m for m in chapter.mutants if m.scope]
        return judge_all(chapters, not names and not is_sample)


def judge_all(chapters, whole_book):
    """Judge and report all mutants of chapters; return the exit code."""
    warm()
    total = sum(
        mutant.id not in chapter.results
        for chapter in chapters
        for mutant in chapter.mutants
    )
    meter = fork(partial(watch, chapters, total, time.time()))
    try:
        for chapter in chapters:
            chapter.run(chapter.mutants)
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on here.", file=sys.stderr)
        return 130
    finally:
        os.kill(meter, signal.SIGKILL)
    explained = explanations()
    faults, needed = report(chapters, explained)
    if whole_book:
        left = [
            mutant
            for chapter in chapters
            for mutant in chapter.mutants
            if not chapter.results[mutant.id][0]
        ]
        SURVIVORS.write_text("".join(f"{mutant}\n" for mutant in left))
        print(f"What nothing notices is listed in {label(SURVIVORS)}.")
        faults += [
            f"{EXPLAINED.name}: is caught or gone, so remove it: {lines}"
            for lines in explained
            if lines not in needed
        ]
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
