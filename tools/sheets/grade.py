"""Grade a folder of sheets: which mistake is in whose answer.

A sheet's helpers and checks run once. Each answer then gets a process of its
own, in which the book's check calls the student's function, and ten seconds;
a verdict comes back as text. This is no sandbox: what students wrote runs with
your rights, and may patch the check that calls it. book/operate.md says how to
grade in a container.
"""

import ast
import json
import linecache
import multiprocessing
import os
import re
from contextlib import suppress

from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell

from tools.sheets.cells import names, needed
from tools.sheets.exercises import exercises, sheet
from tools.sheets.source import NAMES

SECONDS = 10  # for an answer
NOT_ATTEMPTED = "not attempted"
NOT_FOUND = "no function {} was found"
# Magics that run what stands below them.
RUNS = re.compile(r"\A(%%(time|capture|prun)\b.*\s*)+")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def grade(path, submissions):
    """Return {student: {exercise's number and name: verdict}}.

    submissions: {student: the text of a notebook}. A verdict is "correct",
    "not attempted", or a sentence that says what is wrong.
    """
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
    grades = {}
    for student, text in submissions.items():
        cells = code_cells(text)
        grades[student] = {
            f"{e.number} {e.name}": verdict(e, book, cells, known)
            for e in every
        }
    return grades


def code_cells(text):
    """Return the sources of a notebook's code cells; None if it is none."""
    try:
        cells = json.loads(text)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]).strip() for cell in code]
        return [RUNS.sub("", source, count=1) for source in sources]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def verdict(exercise, book, cells, known):
    """Return what the check of an exercise says of a student's cells."""
    if cells is None:
        return "the file is no notebook"
    name, own, error = exercise.name, [], None
    stub = re.compile(rf"\bdef {name}\b")
    for source in cells:
        if source not in known:
            try:
                own.append(new_code_cell(parsed(source)))
            except UNREADABLE as found:
                error = found if stub.search(source) else error
    asked = [cell for cell in own if name in names(cell.source)[0]][-1:]
    if error and not asked:
        return said(f"it does not parse: {error}")
    if not asked:
        is_there = any(map(stub.search, cells))
        return NOT_ATTEMPTED if is_there else NOT_FOUND.format(name)
    others = [cell for cell in own if cell is not asked[0]]

    def judged():
        space = {**book, "__name__": "answer"}
        for cell in [*needed(others, asked), *asked]:
            for node in ast.parse(cell.source).body:
                with suppress(Exception):  # of what was tried out beside it
                    part = ast.Module([node], [])
                    exec(compile(part, "<answer>", "exec"), space)
        return book[exercise.checker](space[name])

    return in_child(judged)


def parsed(source):
    """Return the source of a cell that parses, without magics."""
    try:
        ast.parse(source)
    except SyntaxError:
        plain = TransformerManager().transform_cell(source)
        try:
            ast.parse(plain)
        except SyntaxError:
            plain = ""
        if not plain:
            raise
        return plain
    return source


def said(words):
    """Return a verdict without its number and full stop, in one line."""
    words = " ".join(str(words)[:300].split())
    words = re.sub(r"^Exercise \d+: |<unknown>, |\.$", "", words)
    return words.replace("not attempted yet", NOT_ATTEMPTED)


def in_child(work):
    """Return what work() says in a process of its own, or why nothing came."""
    fork = multiprocessing.get_context("fork")
    receives, sends = fork.Pipe(duplex=False)

    def run():
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        try:
            words = work()
        except BaseException as error:
            words = f"it ends with {type(error).__name__}: {error}"
        sends.send_bytes(said(str(words).rstrip(": ")).encode())

    child = fork.Process(target=run, daemon=True)
    child.start()
    sends.close()
    try:
        if receives.poll(SECONDS):
            return receives.recv_bytes(10_000).decode(errors="replace")
        return f"it does not end within {SECONDS} seconds"
    except (EOFError, OSError):
        return "it ends the process"
    finally:
        child.kill()
        child.join()
