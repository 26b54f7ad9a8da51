"""Several machines in one computer: threads that talk, and processes.

*One model, several machines* runs its functions on them. Whatever a machine
does, the others end, with a sentence that names it. Threads hand tensors over
in memory and count the bytes that a network would carry; processes send them.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Board", "Machine", "run_on", "run_processes", "run_threads"]


class Board:
    """Where machines say what they want to do, before they do it together.

    A machine whose partner never answers would wait for ever; one that waits
    here in vain raises an error.

    Parameters
    ----------
    size
        How many machines there are.
    seconds
        The longest that one waits for another.
    """

    def __init__(self, size: int, seconds: float):
        self.size, self.seconds, self.notes = size, seconds, {}
        self.turns, self.changed = [0] * size, threading.Condition()

    def write(self, rank: int, what: str, given: Any = None) -> int:
        """Leave a note of a machine for its next turn; return its number."""
        with self.changed:
            self.turns[rank] += 1
            self.notes[rank, self.turns[rank]] = what, given
            self.changed.notify_all()
            return self.turns[rank]

    def agree(self, rank: int, what: str, given: Any = None) -> list[Any]:
        """Return what all machines give, once all have said the same.

        Raises RuntimeError if one says something else, or nothing.
        """
        turn, found = self.write(rank, what, given), []
        for other in range(self.size):
            place, silent = (other, turn), f"is silent for {self.seconds} s"
            with self.changed:
                self.changed.wait_for(
                    lambda p=place: p in self.notes, self.seconds
                )
                said, theirs = self.notes.get(place, (silent, None))
            if said != what:
                raise RuntimeError(f"it {what}, and machine {other} {said}")
            found.append(theirs)
        return found


def run_threads(work: Callable[[int], Any], board: Board) -> list[Any]:
    """Return what a function returns in a thread for each machine.

    Parameters
    ----------
    work
        A function of the machine's number.
    board
        Where the machines agree.

    Returns
    -------
    list
        In the machines' order.

    Raises
    ------
    RuntimeError
        A machine stopped, or is at work for twice the board's seconds. The
        message says which one, and why.
    """
    found, errors = {}, []

    def run(rank):
        try:
            found[rank] = work(rank)
        except BaseException as error:  # whatever ends a thread
            errors.append((rank, error))
        board.write(rank, "has left")

    threads = [
        threading.Thread(target=run, args=(rank,), daemon=True)
        for rank in range(board.size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * board.seconds)
    for rank in set(range(board.size)) - {*found} - {r for r, _ in errors}:
        board.write(rank, "has left")
        errors.append((rank, TimeoutError("it is still at work")))
    for rank, error in errors:  # the first one
        why = str(error) or type(error).__name__
        raise RuntimeError(f"machine {rank} stopped: {why}") from error
    return [found[rank] for rank in range(board.size)]


class Machine:
    """One of several machines: its rank, their size, and the bytes it sent.

    All machines call the same methods in the same order, with arrays of
    NumPy, PyTorch or TensorFlow, of one shape. What they get is theirs alone,
    and no gradient flows through a message.

    Parameters
    ----------
    board
        Where the machines agree.
    rank
        The number of this one.
    """

    def __init__(self, board: Board, rank: int):
        self.board, self.rank, self.size = board, rank, board.size
        self.sent = 0

    def _agree(self, what: str, x: Any, times: float) -> list[Any]:
        """Return what all machines give; this one sends its x so often."""
        x = _copied(x)
        name = getattr(x.dtype, "name", x.dtype)
        what = f"{what} of {name} {tuple(x.shape)}"
        self.sent += round(times * _bytes(x))
        return self.board.agree(self.rank, what, x)

    def all_reduce(self, x: Any) -> Any:
        """Return the sum of all machines' x."""
        times = 2 * (self.size - 1) / self.size
        parts = self._agree("sends an all-reduce", x, times)
        return sum(parts[1:], parts[0])

    def reduce_scatter(self, x: Any) -> Any:
        """Return this machine's piece, along the first axis, of the sum.

        Raises ValueError if the axis cannot be cut into equal pieces.
        """
        if x.shape[0] % self.size:
            raise ValueError(f"{x.shape[0]} rows on {self.size} machines")
        times = (self.size - 1) / self.size
        parts = self._agree("sends a reduce-scatter", x, times)
        count = x.shape[0] // self.size
        start = self.rank * count
        pieces = [part[start : start + count] for part in parts]
        return sum(pieces[1:], pieces[0])

    def gather(self, x: Any) -> Any:
        """Return all machines' x, stacked along a new first axis."""
        parts = self._agree("sends a gather", x, self.size - 1)
        return _library(x).stack(parts)

    def pass_on(self, x: Any) -> Any:
        """Send x to the next machine; return what the one before it sends."""
        return self._agree("passes on", x, self.size > 1)[self.rank - 1]

    def all_to_all(self, parts: Sequence[Any]) -> list[Any]:
        """Send a part to each machine; return the part that each sends here.

        The parts may differ in length; one's own is not counted.
        """
        given = [_copied(part) for part in parts]
        others = [x for m, x in enumerate(given) if m != self.rank]
        self.sent += sum(map(_bytes, others))
        rows = self.board.agree(self.rank, "sends an all-to-all", given)
        return [row[self.rank] for row in rows]


def _library(x):
    """Return the library of an array."""
    for name in ("torch", "tensorflow"):
        if type(x).__module__.startswith(name):
            return sys.modules[name]
    return np


def _copied(x):
    """Return an array without its gradient, which nobody else has."""
    library = _library(x)
    if library.__name__ == "torch":
        return x.detach().clone()
    if library.__name__ == "tensorflow":
        return library.stop_gradient(x)
    return np.array(x)


def _bytes(x):
    """Return the bytes of an array."""
    return x.nbytes if hasattr(x, "nbytes") else x.numpy().nbytes


def run_on(size: int, work: Callable, *args: Any, seconds: float = 20):
    """Return what work(machine, ...) returns on each of several machines.

    Parameters
    ----------
    size
        How many machines there are.
    work
        A function of a Machine, and of the arguments.
    args
        The arguments, the same for all.
    seconds
        The longest that one waits for another; work that takes twice as long
        is ended, too.

    Returns
    -------
    list
        In the machines' order.

    Raises
    ------
    RuntimeError
        A machine stopped. The message says which one, and why.
    """
    board = Board(size, seconds)
    return run_threads(lambda rank: work(Machine(board, rank), *args), board)


_PROCESS = """import copy, json, sys
import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from cellbycell.common import count_letters
from cellbycell.figures.names_model import stored_config, stored_weights
from cellbycell.names import encode_names
from cellbycell.pytorch import Llama, llama_weights, name_loss

SOURCES
rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
meet = f"file://{folder}/meet"
dist.init_process_group("gloo", meet, rank=rank, world_size=size)
whole = Llama(stored_config())
for name, w in llama_weights(whole).items():
    w.data = torch.tensor(stored_weights()[name])
rows = torch.tensor(encode_names(NAMES))
name_loss(whole, rows).backward()
found = {work.__name__: work(whole, rows, rank, size) for work in WORKS}
with open(f"{folder}/found-{rank}", "w") as file:
    json.dump(found, file)
dist.destroy_process_group()
"""


def run_processes(
    size: int,
    works: Sequence[Callable],
    names: Sequence[str],
    seconds: float = 120,
) -> list[dict[str, Any]]:
    """Return what functions of the stored Llama return in several processes.

    Parameters
    ----------
    size
        How many processes there are; they meet by gloo.
    works
        Functions called by_..., of a Llama with the gradients of all rows, the
        rows (B, T), rank and size; and the functions that they use.
    names
        What the rows spell.
    seconds
        The longest that they may take.

    Returns
    -------
    list of dict
        {name of a function: its result} of each process.

    Raises
    ------
    RuntimeError
        A process fails, or time is over. The message says which one, and why.
    """
    called = [work.__name__ for work in works if work.__name__[:3] == "by_"]
    text = _PROCESS.replace("WORKS", f"[{', '.join(called)}]")
    text = text.replace("NAMES", repr(names))
    text = text.replace("SOURCES", "\n".join(map(inspect.getsource, works)))
    paths = os.pathsep.join(path for path in sys.path if path)
    settings = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        home, running, codes = Path(folder), [], [None]
        (home / "work.py").write_text(text)
        end = time.monotonic() + seconds
        try:
            for rank in range(size):
                words = sys.executable, home / "work.py", str(rank), str(size)
                with open(home / f"said-{rank}", "w") as said:
                    out = {"stdout": said, "stderr": said, "env": settings}
                    running.append(subprocess.Popen([*words, folder], **out))
            while None in codes and not any(codes) and time.monotonic() < end:
                time.sleep(0.02)
                codes = [process.poll() for process in running]
            time.sleep(0.2 * any(codes))  # another may have died first
            codes = [process.poll() for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        reasons = []
        for rank, code in enumerate(codes):
            if code == 0 and (home / f"found-{rank}").exists():
                continue
            lines = (home / f"said-{rank}").read_text().split("\n")
            errors = [x.split("]: ")[-1] for x in lines if "Error: " in x]
            late = f"it is at work for more than {seconds} s"
            why = late if code is None else [*errors, f"code {code}"][0]
            order = code is None, "Connection" in why  # what others caused
            reasons.append((order, f"process {rank} stopped: {why}"))
        if reasons:
            raise RuntimeError(min(reasons)[1])
        return [
            json.loads((home / f"found-{r}").read_text()) for r in range(size)
        ]
