"""An edition is made of what is committed, and its links lead to its tag.

A copy of the book stands in a repository of its own; its Makefile makes a
file where the book's takes minutes.
"""

import shutil
import subprocess
import sys
import zipfile

import pytest
import yaml

import cellbycell
from tools.settings import ROOT, chapters, edition

VERSION, DATE = edition()
MAKEFILE = """
site:
	mkdir -p _build/html && cp book/masks.ipynb _build/html/index.html
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
def copy(tmp_path):
    """Return a copy of the book, committed, in a folder with a space."""
    folder = tmp_path / "a copy"
    for name in ("book", "tools", "cellbycell"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("CHANGELOG.md", "CITATION.cff", "_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, folder)
    for name in ("pyproject.toml", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / ".venv").symlink_to(sys.prefix)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=a book")
    return folder


def release(folder, *given):
    command = [sys.executable, "-m", "tools.commands.release", *given]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_an_edition_has_its_files_and_its_links_lead_to_the_tag(
    copy, tmp_path
):
    out, before = tmp_path / "out", git(copy, "rev-parse", "HEAD")
    done = release(copy, VERSION, str(out))
    assert done.returncode == 0, done.stderr
    name = f"transformers-cell-by-cell-{VERSION}"
    site, sheets = f"{name}-site.zip", f"{name}-sheets.zip"
    [wheel] = out.glob("*.whl")
    files = {site, sheets, f"{name}.pdf", wheel.name}
    assert {path.name for path in out.iterdir()} == files
    assert len(zipfile.ZipFile(out / sheets).namelist()) == len(chapters())
    page = zipfile.ZipFile(out / site).read("index.html").decode()
    assert f"/blob/{VERSION}/book/masks" in page
    assert f"{{REPOSITORY}}/archive/{VERSION}.zip" in page
    assert "/main" not in page
    metadata = zipfile.ZipFile(wheel).read(
        f"cellbycell-{VERSION}.dist-info/METADATA"
    )
    assert f"/blob/{VERSION}/book/symptoms.md" in metadata.decode()

    # The copy is as it was; what is to be tagged is told.
    assert git(copy, "rev-parse", "HEAD") == before
    assert git(copy, "status", "--porcelain") == ""
    assert git(copy, "worktree", "list").count("\n") == 0
    told = done.stdout.split(f"git tag {VERSION} ")[1].split()[0]
    assert git(copy, "rev-parse", f"{told}^") == before


def test_what_stops_an_edition_is_said(copy, tmp_path):
    for given in ([], [VERSION], ["2099.1", "out"]):
        assert (
            f"make release VERSION={VERSION}" in release(copy, *given).stderr
        )
    (copy / "LICENSE").write_text("Another.")
    said = release(copy, VERSION, str(tmp_path / "out")).stderr
    assert said == "An edition is made of what is committed: commit.\n"


def test_every_file_says_the_edition_of_the_changelog():
    assert cellbycell.__version__ == VERSION
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    for part in (citation, citation["preferred-citation"]):
        assert (part["version"], part["date-released"]) == (VERSION, DATE)
