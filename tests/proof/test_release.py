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

from tools.commands.edition import stale
from tools.settings import ROOT, chapters, edition

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

    # The package says on the index where the edition's pages are.
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        [metadata] = (n for n in names if n.endswith("/METADATA"))
        metadata = wheel.read(metadata).decode()
    assert "cellbycell/checks/symptoms.md" in names
    assert "\nDescription-Content-Type: text/markdown\n" in metadata
    assert "\n\n# cellbycell\n" in metadata and "OWNER" not in metadata
    address = "https://github.com/Some-Body/a.book"
    assert f"\nProject-URL: Homepage, {address}\n" in metadata
    assert f"{address}/blob/{VERSION}/book/symptoms.md" in metadata
    assert f"{address}/blob/main/cellbycell/CHANGELOG.md" in metadata

    # The copy is as it was; what is to be tagged is told.
    assert git(copy, "rev-parse", "HEAD") == before
    assert git(copy, "status", "--porcelain") == ""
    assert git(copy, "worktree", "list").count("\n") == 0
    told = re.search(rf"git tag {VERSION} (\w+)", done.stdout)[1]
    assert git(copy, "rev-parse", f"{told}^") == before

    # Where the tag is checked out, as in the workflow, it is that edition.
    git(copy, "tag", VERSION, told)
    git(copy, "switch", "--quiet", "--detach", VERSION)
    again = release(copy, VERSION, tmp_path / "again", "untested")
    assert again.returncode == 0 and "git tag" not in again.stdout
    assert (tmp_path / "told").read_text() == "tested\n"
    git(copy, "switch", "--quiet", "main")
    said = release(copy, VERSION, tmp_path / "third").stderr
    assert f"git switch --detach {VERSION}" in said


def test_what_stops_an_edition_is_said_and_nothing_is_made(copy, tmp_path):
    out = tmp_path / "out"

    def stopped(version=VERSION, out=out):
        done = release(copy, version, out)
        assert done.returncode == 1 and not (tmp_path / "out").exists()
        assert git(copy, "worktree", "list").count("\n") == 0
        return done.stderr

    for version in ("", "one", "2026", f"{VERSION}; echo"):
        assert "run: make release VERSION=" in stopped(version)
    assert "run: make release VERSION=" in stopped(out="")
    assert "write it, headed as in ## 2" in stopped("2099.1")
    assert "holds files" in stopped(out=ROOT)
    (copy / "LICENSE").write_text("Another.")
    assert "made of what is committed" in stopped()
    entry = (copy / "CHANGELOG.md").read_text("utf-8")
    entry = entry.replace(f"## {VERSION}, ", "## 2099.1, ", 1)
    (copy / "CHANGELOG.md").write_text(entry, "utf-8")
    assert "run: make edition" in stopped("2099.1")


def test_every_file_says_the_edition_of_the_changelog():
    assert not stale(), "Run: make edition"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    for part in (citation, citation["preferred-citation"]):
        assert (part["version"], part["date-released"]) == (VERSION, DATE)
