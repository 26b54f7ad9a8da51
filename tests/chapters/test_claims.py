"""Run every chapter with what it claims as checks, and check what it left."""

import pytest

from tools.net.calls import check_calls
from tools.net.formulas import check_formulas
from tools.net.tables import check_tables
from tools.notebooks import Notebook, paths
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
NAMES = [path.stem for path in paths()]
# How many sides of equations are compared; tools/net/tex.py reads no more.
SIDES = {
    "attention": 28,
    "decoder": 2,
    "encoder": 2,
    "masks": 8,
    "multi_head_attention": 6,
    "position_similarity": 48,
    "positional_encoding": 10,
    "training": 14,
}


@pytest.mark.parametrize("name", NAMES)
def test_shape_comments_and_numbers_in_prose_hold(chapter_run, name):
    messages = chapter_run(name).messages
    assert not messages, "\n" + "\n".join(messages)


@pytest.mark.parametrize("name", NAMES)
def test_formulas_hold(chapter_run, name):
    notebook = Notebook.read(BOOK / f"{name}.ipynb")
    read, messages = check_formulas(notebook, chapter_run(name).namespace)
    assert not messages, "\n" + "\n".join(messages)
    assert read >= SIDES.get(name, 0), (
        f"{name}: {read} sides of equations can be compared, and not "
        f"{SIDES[name]} as before. Write the one that changed as the others "
        "are, with its letters in the Notation table."
    )


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_calls_hold(chapter_run, name):
    notebook = Notebook.read(BOOK / f"{name}.ipynb")
    namespace = chapter_run(name).namespace
    messages = check_tables(notebook, namespace) + [
        f"{notebook.name(cell)}: {message}"
        for cell in notebook.markdown
        for message in check_calls(cell.source, namespace)
    ]
    assert not messages, "\n" + "\n".join(messages)
