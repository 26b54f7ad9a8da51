"""What the job does that makes what is published, and what Colab then does.

The job's own commands run in a copy of the book, where no package is but those
of .ci/site.txt. They are links to ours; weekly, with `--all-sheets`, the job's
commands install them, and build the site, which takes minutes.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tools.server import serving
from tools.settings import ROOT, slug

SLUG, GITHUB = "some-body/a.book_2", "https://github.com/"
WORKFLOW = ROOT / ".github/workflows/book.yml"
JOB = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["build"]
# Without what an outer make, pytest or conftest.py has set.
OURS = re.compile("MAKE|MFLAGS|PYTEST|PYTHON|PIP_NO_")
ENV = {name: x for name, x in os.environ.items() if not OURS.match(name)}


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


def environment(folder, wanted):
    """Make an environment of those of our packages whose names are wanted."""
    venv.create(folder, symlinks=True)
    ours = Path(sysconfig.get_path("purelib"))
    theirs = Path(sysconfig.get_path("purelib", vars={"base": folder}))
    for package in metadata.distributions(path=[str(ours)]):
        if wanted(re.sub("[-_.]+", "-", package.name).lower()):
            for part in {file.parts[0] for file in package.files} - {".."}:
                if not (theirs / part).exists():
                    (theirs / part).symlink_to(ours / part)
    return folder / "bin/python"


@pytest.fixture(scope="module")
def job(tmp_path_factory, pytestconfig):
    """Return a copy of the book, whose last commit is what the job changes."""
    folder = tmp_path_factory.mktemp("job") / "book"
    others = shutil.ignore_patterns(".git", ".venv", ".nox", "_build", "build")
    shutil.copytree(ROOT, folder, ignore=others)
    git(folder, "init", "--quiet")
    commit(folder)
    commands = [step["run"] for step in JOB["steps"] if "run" in step]
    if not pytestconfig.getoption("all_sheets"):
        pins = (folder / JOB["env"]["REQUIREMENTS"]).read_text("utf-8")
        pins = re.findall("(?m)^([^# ]+)==", pins)
        environment(folder / ".venv", pins.__contains__)
        (folder / ".venv/installed").touch()
        commands = [c for c in commands if "make site" not in c]
    env = ENV | JOB["env"] | {"GITHUB_REPOSITORY": SLUG}
    env["PATH"] = f"{sys.prefix}/bin:{env['PATH']}"  # with a `python`
    for command in commands:
        done = run(folder, "bash", "-e", "-c", command, env=env)
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
            site = "https://some-body.github.io/a.book_2/"
            assert said == [site, f"{GITHUB}{SLUG}"] * 2
            old, new = (cited.sub("", text) for text in (old, new))
        assert new == old.replace(slug(), SLUG), name
    run(job, ".venv/bin/python", "-m", "tools.commands.repository", slug())
    assert git(job, "diff", "HEAD~") == ""
    git(job, "checkout", "--quiet", ".")
    if (job / "_build/html").exists():
        page = (job / "_build/html/book/masks.html").read_text("utf-8")
        assert f"{GITHUB}{SLUG}/blob/main/book/masks.ipynb" in page


def test_the_package_is_written_whole_or_stays(job):
    """The job's packages have no ruff, which lays out the code."""
    done = run(job, ".venv/bin/python", "-m", "tools.commands.package")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No module named ruff" in done.stderr
    assert git(job, "status", "--porcelain") == ""


def test_a_site_that_was_built_elsewhere_is_not_built_again(job):
    """Once it is put there, as where the job's site is tested."""
    (job / "_build").mkdir(exist_ok=True)
    (job / "_build/site").touch()
    assert run(job, "make", "--question", "_build/site").returncode == 0
    (job / "book/masks.ipynb").touch()
    assert run(job, "make", "--question", "_build/site").returncode == 1


def test_an_edition_brings_the_package_from_the_archive(job, tmp_path):
    """Where Colab's packages are, which are ours, and not the book's."""
    colab = environment(tmp_path / "colab", "cellbycell".__ne__)
    archive = tmp_path / SLUG / "archive/main.zip"
    archive.parent.mkdir(parents=True)
    git(job, "archive", "--prefix=book/", f"--output={archive}", "HEAD")
    edition = (job / "build/editions/pytorch/attention.ipynb").read_text(
        "utf-8"
    )
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
    assert "Installing http://127.0.0.1" in done.stdout
