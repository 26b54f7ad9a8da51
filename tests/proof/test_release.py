"""An edition is made of what is committed, and its links lead to its tag.

A copy of the book stands in a repository of its own; its Makefile makes a
file where the book's takes minutes.
"""

import re
import shutil
import subprocess
import sys
import zipfile

import pytest
import yaml

from tools.settings import BOOK, ROOT, chapters, edition

VERSION, DATE = edition()
MAKEFILE = """
site:
	mkdir -p _build/html && cp book/masks.ipynb _build/html/index.html
test:
	echo tested >>$(TOLD)
pdf:
	echo A book >_build/book.pdf
sheet:
	mkdir -p build/sheets && cp $(NB) build/sheets
"""


def git(folder, *arguments):
    done = subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Return a copy of the book, committed, in a folder with a space."""
    folder = tmp_path / "a copy"
    for name in ("book", "tools", "cellbycell"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("CHANGELOG.md", "CITATION.cff", "_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, folder)
    for name in ("pyproject.toml", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / ".venv").symlink_to(sys.prefix)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=a book")


def release(folder, version, out, *more):
    command = ["-m", "tools.commands.release", version, str(out), *more]
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_an_edition_has_its_files_and_its_links_lead_to_the_tag(
    copy, tmp_path
):
    git(copy, "remote", "add", "origin", "git@github.com:Some-Body/a.book.git")
    out, before = tmp_path / "out", git(copy, "rev-parse", "HEAD")
    done = release(copy, VERSION, out)
    assert done.returncode == 0, done.stderr
    name = f"transformers-cell-by-cell-{VERSION}"
    assert {path.name for path in out.iterdir()} == {
        f"{name}-site.zip",
        f"{name}.pdf",
        f"{name}-sheets.zip",
        f"cellbycell-{VERSION}-py3-none-any.whl",
    }
    assert (tmp_path / "told").read_text() == "tested\n"
    with zipfile.ZipFile(out / f"{name}-sheets.zip") as sheets:
        assert len(sheets.namelist()) == len(chapters())
    with zipfile.ZipFile(out / f"{name}-site.zip") as site:
        page = site.read("index.html").decode()
    assert f"github/Some-Body/a.book/blob/{VERSION}/book/masks" in page
    assert f"{{REPOSITORY}}/archive/{VERSION}.zip" in page
    assert "/main" not in page

    # The copy is as it was; what is to be tagged is told, and is one commit.
    assert git(copy, "rev-parse", "HEAD") == before
    assert git(copy, "status", "--porcelain") == ""
    assert git(copy, "worktree", "list").count("\n") == 0
    told = re.search(rf"git tag {VERSION} (\w+)", done.stdout)[1]
    assert git(copy, "rev-parse", f"{told}^") == before
    again = release(copy, VERSION, "../again", "untested")
    assert len([*(tmp_path / "again").iterdir()]) == 4
    lines = again.stdout.splitlines()
    assert f"git tag {VERSION} {told} " in lines[-1]
    assert lines[-2] == f"Edition {VERSION} is in {tmp_path / 'again'}."
    assert "tests: left out" in lines and len(lines) < 16
    assert "cp book" not in again.stdout + again.stderr
    assert (tmp_path / "told").read_text() == "tested\n"

    # A tag on the copy's own commit would lead to main.
    git(copy, "tag", VERSION)
    said = sentence(release(copy, VERSION, tmp_path / "second"))
    assert f"run: git tag --force {VERSION} {told}" in said

    # Where the tag is checked out, as in the workflow, it is that edition.
    git(copy, "tag", "--force", VERSION, told)
    git(copy, "switch", "--quiet", "--detach", VERSION)
    third = release(copy, VERSION, tmp_path / "third")
    assert third.returncode == 0 and "git tag" not in third.stdout
    git(copy, "switch", "--quiet", "main")
    (copy / "LICENSE").write_text("Another.")
    commit(copy)
    assert f"git switch --detach {VERSION}" in sentence(
        release(copy, VERSION, tmp_path / "fourth")
    )


def sentence(done):
    """Return the one line by which a command says why it stopped."""
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_what_stops_an_edition_is_said_and_nothing_is_made(copy, tmp_path):
    out = tmp_path / "out"

    def stopped(version=VERSION, out=out):
        said = sentence(release(copy, version, out))
        assert not (tmp_path / "out").exists()
        assert git(copy, "worktree", "list").count("\n") == 0
        return said

    for version in ("", "one", "2026", "2026.01", f"{VERSION}; echo"):
        assert "run: make release VERSION=" in stopped(version)
    assert "run: make release VERSION=" in stopped(out="")
    assert "write it, headed as in ## 2" in stopped("2099.1")
    assert "holds files" in stopped(out=ROOT)
    assert "among the book's files" in stopped(out=copy / "new")
    (copy / "LICENSE").write_text("Another.")
    assert "LICENSE has changes" in stopped()
    changelog = (copy / "CHANGELOG.md").read_text("utf-8")
    (copy / "CHANGELOG.md").write_text("# Changes\n", "utf-8")
    assert "headed as in" in stopped()
    entry = changelog.replace(f"## {VERSION}, ", "## 2099.1, ", 1)
    (copy / "CHANGELOG.md").write_text(entry, "utf-8")
    said = stopped("2099.1")
    assert "CITATION.cff and __init__.py and teach.md say another" in said
    assert "run: make edition" in said
    git(copy, "checkout", "--quiet", ".")
    broken = MAKEFILE.replace("echo tested >>", "false ")
    (copy / "Makefile").write_text(broken)
    commit(copy)
    done = release(copy, VERSION, out)
    assert done.stderr.endswith("installed test\n")
    assert "The edition was not made" in done.stderr
    assert "false " in done.stderr and "made" not in done.stdout
    assert done.returncode == 1 and not out.exists()


def test_every_file_says_the_edition_of_the_changelog(monkeypatch):
    from tools.commands.edition import stale

    assert not stale(), "Run: make edition"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    for part in (citation, citation["preferred-citation"]):
        assert (part["version"], part["date-released"]) == (VERSION, DATE)
    monkeypatch.syspath_prepend(BOOK / "_ext")
    from edition import words

    ours = "https://github.com/a/b"
    assert f">Edition {VERSION}, {DATE}.<" in words(citation, VERSION, "")
    latest = f">Latest text, which may differ from edition {VERSION}, {DATE}.<"
    assert latest in words(citation, "main", "")
    assert f'href="{ours}/blob/main/CHANGELOG.md"' in words(
        citation, "main", ours
    )
