"""Planted bugs, and the correct models that get them.

Each bug is a piece of a function's source and what replaces it, with the check
that sees it. The files beside this module hold them; `pytorch` and `keras`
have small correct models, and the chapter *Testing a Transformer* plants bugs
in the book's own.

    bug = read_bugs("decoder")["position_ids are taken, and not used"]
    with bug.planted(vars(pytorch)):
        report = check_model(**pytorch.case("decoder"))
    assert bug.check in report.failed
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Bug:
    """A piece of a function's source, and what replaces it.

    Parameters
    ----------
    name
        What is wrong.
    check
        A check that sees it; "nothing" if none does.
    place
        The function, as an expression.
    old, new
        The piece, and what stands in its place.
    """

    name: str
    check: str
    place: str
    old: str
    new: str

    def planted(self, space: Mapping[str, Any]) -> AbstractContextManager:
        """Plant the bug while a block runs; space has the function."""
        return planted(eval(self.place, dict(space)), self.old, self.new)


def read_bugs(model: str) -> dict[str, Bug]:
    """Return the bugs of a model, by name."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("*.txt")):
        for block in file.read_text("utf-8").strip().split("\n\n")[1:]:
            head, *places = re.split(r"(?m)^(\S+) @ (.*)\n", block)
            name, check = head.strip().split(" = ")
            for i in range(0, len(places), 3):
                of, place, change = places[i : i + 3]
                lines = change.splitlines()
                old, new = (
                    "\n".join(x[2:] for x in lines if x.startswith(sign))
                    for sign in "-+"
                )
                if of == model:
                    found[name] = Bug(name, check, place, old, new)
    return found


@contextmanager
def planted(function: Callable, old: str, new: str) -> Iterator[None]:
    """Change a piece of a function's source while a block runs.

    Raises ValueError unless the piece is there exactly once.
    """
    # A function that has a bug already has the source of that bug.
    source = getattr(function, "source", None)
    source = source or textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(f"{old!r} is there {source.count(old)} times")
    name, space = function.__name__, {}
    # A method that calls super() looks for its class around it.
    body = textwrap.indent(source.replace(old, new), "    ")
    text = f"def outer(__class__):\n{body}\n    return {name}"
    exec(text, function.__globals__, space)
    own_code = function.__code__
    function.__code__ = space["outer"](None).__code__
    function.source = source.replace(old, new)
    try:
        yield
    finally:
        function.__code__, function.source = own_code, source


def rows(seed: int, *lengths: int) -> np.ndarray:
    """Return rows of 13 ids, with pads after the lengths."""
    rng = np.random.default_rng(seed)
    found = np.stack([rng.permutation(45)[:13] + 3 for _ in lengths])
    found[np.arange(13) >= np.array(lengths)[:, None]] = 0
    return found


IDS = rows(0, 13, 11, 9)[:, :-1]
NEXT = rows(0, 13, 11, 9)[:, 1:]
SOURCE = rows(1, 10, 12, 9)[:, :-1]
PADS = {"pad_id": 0}
BOTH_WAYS = {"pad_id": 0, "causal": False}
