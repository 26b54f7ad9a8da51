"""What tells two sites apart, so that the book can leave Jupyter Book."""

import pytest

from tools.commands import plain_sphinx

PAGE = (
    "<nav>{}</nav><article><h1>One</h1> two <a href='#'>three</a>{}</article>"
)


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """Return two folders that hold the same page in another frame."""
    for name in ("ours", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.html").write_text(PAGE.format(name, ""))
    monkeypatch.setattr(plain_sphinx, "HTML", tmp_path / "ours")
    monkeypatch.setattr(plain_sphinx, "build", lambda *_: tmp_path / "other")
    return tmp_path


def test_the_same_articles_agree_whatever_is_around_them(sites, capsys):
    plain_sphinx.main("python")
    assert "the same 1 pages" in capsys.readouterr().out
    (sites / "ours/page.html").unlink()
    with pytest.raises(SystemExit, match="run: make site"):
        plain_sphinx.main("python")


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("page.html", PAGE.format("", " four"), "'' became 'four'"),
        ("page.html", PAGE.format("", "<input>"), "'input': 1}"),
        ("page.html", "<nav></nav>", "'One two three' became ''"),
        ("new.html", "", "new.html: is in one of the sites only"),
    ],
)
def test_a_difference_fails_the_session(sites, file, text, says):
    (sites / "other" / file).write_text(text)
    with pytest.raises(SystemExit, match="builds another site") as stopped:
        plain_sphinx.main("python")
    assert says in str(stopped.value)
