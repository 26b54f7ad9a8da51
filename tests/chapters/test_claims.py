"""Numbers, shape comments, tables and calls of every chapter."""

import pytest

from tools.notebooks import Notebook, paths
from tools.run.calls import check_calls
from tools.run.tables import check_tables
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
chapters = pytest.mark.parametrize("name", [path.stem for path in paths()])


def fail_with(messages):
    """Fail with the messages alone, if there are any."""
    if messages:
        pytest.fail("\n".join(messages), pytrace=False)


@chapters
def test_shape_comments_and_numbers_in_prose_hold(chapter_run, name):
    fail_with(chapter_run(name).messages)


@chapters
def test_tables_and_calls_hold(chapter_run, name):
    notebook = Notebook.read(BOOK / f"{name}.ipynb")
    namespace = chapter_run(name).namespace
    calls = [
        f"{notebook.name(cell)}: {message}"
        for cell in notebook.markdown
        for message in check_calls(cell.source, namespace)
    ]
    fail_with(check_tables(notebook, namespace) + calls)
