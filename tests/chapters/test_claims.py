"""Numbers, shape comments, tables and calls of every chapter."""

import pytest

from tools.notebooks import Notebook, paths
from tools.run import claims
from tools.run.calls import check_calls
from tools.run.tables import check_tables
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
chapters = pytest.mark.parametrize("name", [path.stem for path in paths()])


def fail_with(messages):
    """Fail with the messages alone, if there are any."""
    if text := "\n".join(messages):
        pytest.fail(text, pytrace=False)


@chapters
def test_shape_comments_and_numbers_in_prose_hold(chapter_run, name):
    fail_with(chapter_run(name).messages)


@chapters
def test_no_number_in_prose_holds_with_another_last_digit(chapter_run, name):
    def holds(said, expression, at):
        return not claims.check_claims(f"{said}<!--= {expression} -->", at)

    fail_with(
        f"{cell}: {was} and {other} both pass for {expression}: compute what "
        "the sentence says."
        for cell, text, at in chapter_run(name).claims
        for was, expression in claims.find(text)
        if was[-1].isdigit() and holds(was, expression, at)
        if holds(
            other := f"{was[:-1]}{(int(was[-1]) + 1) % 10}", expression, at
        )
    )


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
