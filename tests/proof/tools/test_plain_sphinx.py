"""What tells two sites apart, so that the way out of Jupyter Book holds."""

import pytest

from tools.commands import plain_sphinx
from tools.commands.plain_sphinx import differences

PAGE = (
    "<nav>{}</nav><article><h1>One</h1> two <a href='#'>three</a>{}</article>"
)


@pytest.fixture
def sites(tmp_path):
    """Return two folders that hold the same page in another frame."""
    for name in ("ours", "other"):
        (tmp_path / name).mkdir()
        page = tmp_path / name / "page.html"
        page.write_text(PAGE.format(name, ""))
    return tmp_path / "ours", tmp_path / "other"


def test_the_same_articles_agree_whatever_is_around_them(sites):
    assert list(differences(*sites)) == []


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("page.html", PAGE.format("", " four"), "'' became 'four'"),
        ("page.html", PAGE.format("", "<input>"), "'input': 1}"),
        ("page.html", PAGE.replace("three", "3"), "'three' became '3{}'"),
        ("page.html", "<nav></nav>", "'One two three' became ''"),
        ("new.html", "", "new.html: is in one of the sites only"),
    ],
)
def test_a_difference_is_told(sites, file, text, says):
    (sites[1] / file).write_text(text)
    (found, *_) = differences(*sites)
    assert says in found


def test_a_difference_fails_the_session(sites, monkeypatch):
    monkeypatch.setattr(plain_sphinx, "HTML", sites[0])
    monkeypatch.setattr(plain_sphinx, "build", lambda *_: sites[1])
    plain_sphinx.main("python")
    (sites[1] / "page.html").unlink()
    with pytest.raises(SystemExit, match="builds another site"):
        plain_sphinx.main("python")
    (sites[0] / "page.html").unlink()
    with pytest.raises(SystemExit, match="run: make site"):
        plain_sphinx.main("python")
