"""`make copies` writes what several chapters carry from the first of them."""

from nbformat.v4 import new_code_cell, new_notebook

from tools.commands import copies
from tools.notebooks import Notebook

FIRST = 'SCRIPT = """\nnew();\n"""\n\n\ndef f(x):\n    return x + 1  # ()'
LATER = 'def f(x):\n    return x\n\n\nSCRIPT = """\nold();\n"""\ny = f(2)'


def test_the_first_chapter_is_the_source(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(copies, "chapters", lambda: ["first", "later"])
    monkeypatch.setattr(copies, "ROOT", tmp_path)
    paths = [tmp_path / "first.ipynb", tmp_path / "later.ipynb"]
    for path, source in zip(paths, (FIRST, LATER), strict=True):
        path.touch()
        cells = [new_code_cell(source)]
        copies.write(Notebook(path, new_notebook(cells=cells)))
    copies.main()
    said = capsys.readouterr().out
    assert "-old();" in said and "+new();" in said
    assert "make outputs NB=" in said and "later.ipynb" in said
    first, later = (Notebook.read(path).code[0].source for path in paths)
    assert first == FIRST
    assert later == (
        "def f(x):\n    return x + 1  # ()\n\n\n"
        'SCRIPT = """\nnew();\n"""\ny = f(2)'
    )
    copies.main()
    assert "as the first chapter has them" in capsys.readouterr().out
