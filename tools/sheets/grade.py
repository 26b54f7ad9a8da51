"""Grade a folder of sheets: which mistake is in whose answer.

A sheet's helpers and checks run once. Each answer then gets a process of its
own, in which the book's check calls the student's function, made with what it
needs of the student's own code. What is called and returned is written down,
as plain values. An answer that seems right is judged once more, from this
record alone, in a process that runs none of the student's code.

This is no sandbox: what students wrote runs with your rights. An answer may
look up what is right, in the files or in the memory of its process.
"""

import ast
import ctypes
import json
import linecache
import os
import re
import resource
import select
import signal
import sys
import time
import types
from contextlib import suppress

import psutil
from IPython.core.inputtransformer2 import TransformerManager

from tools.sheets.exercises import code, exercises, sheet
from tools.sheets.plain import packed, unpacked
from tools.sheets.source import NAMES
from tools.sheets.statements import Statement, names_of, slice_of

SECONDS = 10  # for an answer
MEMORY, FILE = 2**32, 2**20  # bytes that it may take, and write to a file
LOG = 2**26  # bytes that it may return
NOT_ATTEMPTED = "not attempted"
NOT_FOUND = "no function {} was found"
# Magics that run what stands below them.
RUNS = re.compile(r"\A(%%(time|capture|prun)\b.*\s*)+")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def grade(path, submissions):
    """Return {student: {exercise's number and name: verdict}}.

    submissions: {student: the text of a notebook}. A verdict is "correct",
    "not attempted", or a sentence that says what is wrong. Every process that
    this one has begun, or that an answer has begun, is ended.
    """
    if sys.platform == "linux":  # a process whose parent ends becomes ours
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    book, every = {"__name__": "__main__"}, exercises(path)
    for cell in sheet(path).cells:
        if cell.cell_type == "code":
            file, lines = f"<{cell.id}>", cell.source.splitlines(True)
            linecache.cache[file] = len(cell.source), None, lines, file
            exec(compile(cell.source, file, "exec"), book)
    known = {
        cell.source.strip()
        for framework in (None, *NAMES)
        for graded in (False, True)
        for cell in sheet(path, framework, graded).cells
    }
    of_checks = {n for e in every for s in code(e.checks) for n in s.binds}
    helpers = {n: book[n] for n in book.keys() - of_checks}
    asked = {f"{e.number} {e.name}": e.name for e in every}
    grades = {}
    for student, text in submissions.items():
        cells = code_cells(text)
        grades[student] = {
            title: verdict(name, book[f"check_{name}"], helpers, cells, known)
            for title, name in asked.items()
            if f"check_{name}" in book
        }
    return grades


def code_cells(text):
    """Return the sources of a notebook's code cells; None if it is none."""
    try:
        cells = json.loads(text)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]).strip() for cell in code]
        return [RUNS.sub("", source, 1) for source in sources]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def verdict(name, check, helpers, cells, known):
    """Return what a check says of a student's function of this name."""
    if cells is None:
        return "the file is no notebook"
    own = [cell for cell in cells if cell not in known]

    def first():
        """Return the verdict, and the record of the calls."""
        space = {**helpers, "__name__": "answer"}
        try:
            source = needed(own, name)
        except UNREADABLE as error:
            return said(f"it does not parse: {error}"), []
        if not source:
            stub = re.compile(rf"\bdef {name}\b")
            is_there = any(map(stub.search, cells))
            return NOT_ATTEMPTED if is_there else NOT_FOUND.format(name), []
        exec(compile(source, "<answer>", "exec"), space)
        answer = Recorded(space[name])
        return said(check(answer)), answer.log

    found, log = in_child(first)
    if found != "correct":
        return found
    again, _ = in_child(lambda: (check(replay(json.loads(log))), []))
    return again if again == found else f"a second check says: {again}"


def needed(cells, name):
    """Return a function's source, and that of what it needs; "" without one.

    Raises one of UNREADABLE if the cell that should define it does not parse.
    """
    own, error = [], None
    for cell in cells:
        try:
            own += parsed(cell)
        except UNREADABLE as found:
            if re.search(rf"\bdef {name}\b", cell):
                error = found
    asked = [s for s in own if name in s.binds][-1:]
    if error and not asked:
        raise error
    others = [s for s in own if s not in asked]
    parts = [*slice_of(others, asked), *asked] if asked else []
    return "\n".join(statement.source for statement in parts)


def parsed(cell):
    """Return the statements of a cell, in which there may be magics."""
    try:
        nodes = ast.parse(cell).body
    except SyntaxError:
        nodes = ast.parse(TransformerManager().transform_cell(cell)).body
    sources = map(ast.unparse, nodes)
    return [
        Statement(cell, source, node, *names_of(source, node, None))
        for source, node in zip(sources, nodes, strict=True)
    ]


class Recorded:
    """A student's function that writes down how it is called.

    log: for each call, how it called the functions that it was given, and
    what came of it.
    """

    def __init__(self, function):
        self.function, self.log = function, []

    def __getattr__(self, name):
        return getattr(self.function, name)  # a check may read __code__

    def __call__(self, *given):
        calls = []

        def told(place, value):
            def run(*inner):
                calls.append((place, packed(inner)))
                return value(*inner)

            return run if callable(value) else value

        try:
            found = self.function(*map(told, range(len(given)), given))
            if isinstance(found, types.GeneratorType):
                found = list(found)
        except Exception as error:
            self.log.append((calls, packed(error)))
            raise
        self.log.append((calls, packed(found)))
        return found


def replay(log):
    """Return a function that does again what is written down."""
    left = iter(log)

    def answer(*given):
        calls, found = next(left)
        for place, inner in calls:
            with suppress(Exception):  # the student has dealt with it
                given[place](*unpacked(inner))
        found = unpacked(found)
        if isinstance(found, Exception):
            raise found
        return found

    return answer


def said(words):
    """Return a verdict without its number and full stop, in one line."""
    words = " ".join(str(words)[:300].split())
    words = re.sub(r"^Exercise \d+: |<unknown>, |\.$", "", words)
    return words.replace("not attempted yet", NOT_ATTEMPTED)


def in_child(work):
    """Return what work() gives in a process of its own: a verdict and a log.

    The log is a text. If nothing comes, the verdict says why.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            send(work, writes)
        finally:
            os._exit(0)
    os.close(writes)
    found, ends = b"", time.monotonic() + SECONDS
    while len(found) < LOG and not found.endswith(b"\n"):
        left = max(0, ends - time.monotonic())
        ready = select.select([reads], [], [], left)[0]
        part = os.read(reads, 2**20) if ready else b""
        if not part:
            break
        found += part
    is_late = time.monotonic() >= ends
    os.close(reads)
    end(child)
    words, mark, log = found.partition(b"\0")
    if mark and log.endswith(b"\n"):
        return said(words.decode(errors="replace")), log
    if is_late:
        return f"it does not end within {SECONDS} seconds", b""
    if len(found) >= LOG:
        return "it returns too much", b""
    says = "it tampers with the grader" if found else "it ends the process"
    return says, b""


def end(child):
    """End a process, and what it has begun."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with suppress(ChildProcessError):  # when none is left
        while True:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                for process in psutil.Process().children(recursive=True):
                    with suppress(psutil.Error):
                        process.kill()


def send(work, pipe):
    """Send what work() gives through a pipe; nothing else gets out."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(quiet, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    try:
        found, log = work()
    except BaseException as error:
        words = f"it ends with {type(error).__name__}: {error}"
        found, log = words.rstrip(": "), []
    with open(pipe, "wb") as file:
        file.write(said(found).encode(errors="replace").replace(b"\0", b""))
        file.write(b"\0" + json.dumps(log).encode() + b"\n")
