"""What the job does that makes what is published, and what Colab then does.

The job's own commands run in a copy of the book, whose .venv has the packages
of .ci/site.txt and no other. The site, which takes minutes, is built weekly,
with `--all-sheets`; on the server each change builds it.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv

import pytest
import yaml

from tools.server import serving
from tools.settings import ROOT, slug

SLUG, GITHUB = "an/other", "https://github.com/"
WORKFLOW = ROOT / ".github/workflows/book.yml"
JOB = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["build"]
# Without what an outer make, pytest or conftest.py has set.
OURS = re.compile("MAKE|MFLAGS|PYTEST|PYTHON|PIP_NO_")
ENV = {name: x for name, x in os.environ.items() if not OURS.match(name)}
PACKAGE = "from cellbycell import common, kit, pytorch, show, tensorflow"


def run(folder, *command, **more):
    """Run a command in a folder; return it, with all that it says."""
    told = {"capture_output": True, "text": True, "env": ENV}
    return subprocess.run(command, cwd=folder, **told | more)


def git(folder, *arguments):
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    done = run(folder, "git", *who, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=a book")


@pytest.fixture(scope="module")
def job(tmp_path_factory, pytestconfig):
    """Return a copy of the book, after the job; its last commit is what the
    job has changed."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the job has Python 3.11")
    folder = tmp_path_factory.mktemp("job") / "book"
    others = shutil.ignore_patterns(".git", ".venv", ".nox", "_build", "build")
    shutil.copytree(ROOT, folder, ignore=others)
    git(folder, "init", "--quiet")
    commit(folder)
    given = {"PATH": f"{sys.prefix}/bin:{ENV['PATH']}"}
    env = ENV | JOB["env"] | given | {"GITHUB_REPOSITORY": SLUG}
    for command in (step["run"] for step in JOB["steps"] if "run" in step):
        if "make site" in command and not pytestconfig.getoption("all_sheets"):
            continue
        done = run(folder, "bash", "-e", "-c", command, env=env)
        if "index cannot be reached" in done.stderr and "CI" not in env:
            pytest.skip(done.stderr)
        assert done.returncode == 0, f"{command}\n{done.stderr[-4000:]}"
    commit(folder)
    return folder


def test_the_job_changes_addresses_and_nothing_else(job):
    changed = {*git(job, "diff", "--name-only", "HEAD~").split()}
    pages = {f"book/{path.name}" for path in job.glob("book/*.ipynb")}
    pages |= {"book/index.md", "cellbycell/README.md"}
    assert changed == pages | {"_config.yml", "pyproject.toml", "CITATION.cff"}
    cited = re.compile(r"(?m)^ *(?:url|repository-code): .*\n")
    for name in changed:
        old, new = (git(job, "show", f"HEAD{x}:{name}") for x in ("~", ""))
        if name == "CITATION.cff":
            said = [line.split('"')[1] for line in cited.findall(new)]
            site = "https://an.github.io/other/"
            assert said == [site, f"{GITHUB}{SLUG}"] * 2
            old, new = (cited.sub("", text) for text in (old, new))
        assert new == old.replace(slug(), SLUG), name
    if (job / "_build/html").exists():
        page = (job / "_build/html/book/masks.html").read_text("utf-8")
        assert f"{GITHUB}{SLUG}/blob/main/book/masks.ipynb" in page


def test_the_package_is_written_whole_or_stays(job):
    """The job's packages have no ruff, which lays out the code."""
    done = run(job, ".venv/bin/python", "-m", "tools.commands.package")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No module named ruff" in done.stderr
    assert git(job, "status", "--porcelain") == ""


@pytest.fixture
def colab(tmp_path):
    """Return a Python that has all packages of this one but the book's."""
    venv.create(tmp_path / "colab", symlinks=True)
    ours = sysconfig.get_path("purelib")
    theirs = sysconfig.get_path("purelib", vars={"base": tmp_path / "colab"})
    for name in os.listdir(ours):
        if "cellbycell" not in name:
            os.symlink(f"{ours}/{name}", f"{theirs}/{name}")
    return tmp_path / "colab/bin/python"


def test_an_edition_brings_the_package_from_the_archive(job, colab, tmp_path):
    archive = tmp_path / SLUG / "archive/main.zip"
    archive.parent.mkdir(parents=True)
    git(job, "archive", "--prefix=book/", f"--output={archive}", "HEAD")
    edition = (job / "build/editions/pytorch/masks.ipynb").read_text("utf-8")
    # pip asks no index; 0 is what says that it isolates no build.
    env = ENV | {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    execute = [colab, "-m", "nbconvert", "--execute", "--to=notebook"]
    execute += ["--stdin", "--stdout"]

    nowhere = edition.replace(SLUG, "OWNER/book")
    done = run(tmp_path, *execute, input=nowhere, env=env)
    assert done.returncode == 1 and "pip install ." in done.stderr
    with serving(tmp_path) as address:
        here = edition.replace(f"{GITHUB}{SLUG}", f"{address}{SLUG}")
        done = run(tmp_path, *execute, input=here, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Installing cellbycell from http://127.0.0.1" in done.stdout
    done = run(tmp_path, colab, "-c", PACKAGE)
    assert done.returncode == 0, done.stderr
