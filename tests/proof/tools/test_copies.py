"""`make copies` writes what several chapters carry from the first of them."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools.commands import copies
from tools.net.rules.book import one_name_one_body
from tools.notebooks import Notebook

FIRST = 'SCRIPT = """\nnew();\n"""\n\n\ndef f(x):\n    return x + 1  # ()'
LATER = 'def f(x):\n    return x\n\n\nSCRIPT = """\nold();\n"""\ny = f(2)'


@pytest.fixture
def books(tmp_path):
    """Two chapters; the second one's copies are not those of the first."""
    return [
        Notebook(
            tmp_path / f"{name}.ipynb",
            new_notebook(cells=[new_code_cell(source)]),
        )
        for name, source in [("first", FIRST), ("later", LATER)]
    ]


def test_the_first_chapter_is_the_source(books):
    assert len(list(one_name_one_body(books))) == 2
    changed = [notebook.path.stem for notebook, _, _ in copies.renew(books)]
    assert set(changed) == {"later"}
    assert books[0].code[0].source == FIRST
    assert books[1].code[0].source == (
        "def f(x):\n    return x + 1  # ()\n\n\n"
        'SCRIPT = """\nnew();\n"""\ny = f(2)'
    )
    assert not list(one_name_one_body(books))
    assert not list(copies.renew(books))


def test_what_is_written_over_is_shown(books, monkeypatch, capsys):
    monkeypatch.setattr(copies, "chapters", lambda: ["first", "later"])
    monkeypatch.setattr(copies, "ROOT", books[0].path.parent)
    for book in books:
        book.path.touch()
        copies.write(book)
    copies.main()
    said = capsys.readouterr().out
    assert "-old();" in said and "+new();" in said
    assert "make outputs NB=" in said and "later.ipynb" in said
    assert "new();" in Notebook.read(books[1].path).code[0].source
    copies.main()
    assert "as the first chapter has them" in capsys.readouterr().out
