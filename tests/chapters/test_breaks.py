"""What the chapters print of SmolLM2 with one line changed."""

import ast
import re

import pytest

from cellbycell.breaks import ask_smol
from tools.notebooks import Notebook
from tools.settings import BOOK, chapters, without_model

pytestmark = pytest.mark.xdist_group("frameworks")
CALLS = {"break_smol": "pytorch", "break_smol_tf": "tensorflow"}


def calls():
    """Yield each call in the chapters: the function, what it is given, prints.

    A cell has one call, or some that print one after the other.
    """
    for chapter in chapters():
        for cell in Notebook.read(BOOK.parent / f"{chapter}.ipynb").code:
            if "break_smol" not in cell.source:
                continue
            printed = "".join(out.get("text", "") for out in cell.outputs)
            rows = re.findall(r"(?m)^changed .*$", printed)
            nodes = [*ast.walk(ast.parse(cell.source))]
            given = {  # old = "x = x + found"
                ast.unparse(node.targets[0]): node.value
                for node in nodes
                if isinstance(node, ast.Assign)
            }
            found = [
                (name, [given.get(ast.unparse(a), a).value for a in node.args])
                for node in nodes
                if isinstance(node, ast.Call)
                and (name := ast.unparse(node.func)) in CALLS
            ]
            yield from (
                (chapter, *call, row)
                for call, row in zip(found, rows, strict=True)
            )


def test_both_frameworks_print_the_same():
    printed = {function: [] for function in CALLS}
    for chapter, function, _, row in calls():
        printed[function].append((chapter, row))
    assert printed["break_smol"] == printed["break_smol_tf"]


def test_another_processor_prints_the_same():
    """The margins between two tokens are far above the rounding."""
    if reason := without_model():
        pytest.skip(reason)
    for chapter, function, given, row in calls():
        if CALLS[function] == "pytorch":
            said = ask_smol(*given)
            where = f"{chapter}: {given}"
            assert not said.gap < 0.005, where  # it may be NaN
            assert f"{said.loss:6.2f}   {said.answer!r}" in row, where
