"""Make the files of an edition: `make release VERSION=2026.1 OUT=folder`.

What is committed is tested and built in a work tree of its own, where links
to Colab and to the package lead to the edition's tag; this is a commit behind
the last one, and the one to be tagged. The book's own files stay as they are.
`UNTESTED=1` leaves the tests out, for a look at the files. What the builders
say is in _build/release.log.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.commands.edition import stale
from tools.notebooks import label
from tools.settings import BOOK, ROOT, chapters, edition, slug

NAME = "transformers-cell-by-cell"
PYTHON = ".venv/bin/python"
LOG = ROOT / "_build" / "release.log"
LAST = 40  # lines of the log, for who has to mend something
USAGE = "run: make release VERSION=2026.1 OUT=folder"


class ReleaseError(Exception):
    """The edition cannot be made; the message says what to do."""


def git(*arguments, folder=ROOT, **more):
    """Return what git says, in one line or several."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | more,
    )
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def check(version, out):
    """Raise ReleaseError unless this edition can be made, into a folder."""
    newest, _ = edition()
    if not re.fullmatch(r"20\d\d\.[1-9]\d*", version):
        raise ReleaseError(f"{version!r} is no version of the book; {USAGE}")
    if version != newest:
        raise ReleaseError(
            f"The newest entry of CHANGELOG.md is not one of {version}: write "
            "it, headed as in ## 2026.1, 2026-11-23; or, for an edition that "
            f"has a tag, run: git switch --detach {version}"
        )
    if files := stale():
        raise ReleaseError(
            f"{' and '.join(files)} say another edition than CHANGELOG.md; "
            "run: make edition"
        )
    if changed := git("status", "--porcelain"):
        first = changed.splitlines()[0].split()[-1]
        raise ReleaseError(
            f"{first} has changes that are not committed: an edition is made "
            "of what is committed"
        )
    if not out.name:
        raise ReleaseError(f"Say where the files go; {USAGE}")
    if out.exists() and any(out.iterdir()):
        raise ReleaseError(f"{out} holds files: name a new folder")
    if out.is_relative_to(ROOT) and not out.is_relative_to(ROOT / "_build"):
        raise ReleaseError(
            f"{out} lies among the book's files: name a folder elsewhere"
        )


def address():
    """Return the repository as 'owner/name', by git's remote if need be."""
    sys.path.insert(0, str(BOOK / "_ext"))
    from site_address import GITHUB, repository

    found = repository(f"{GITHUB}{slug()}", ROOT)
    return found.removeprefix(GITHUB) or slug()


@contextmanager
def work_tree(version):
    """Yield a work tree of the edition, and its commit."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, NAME)
        git("worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
        try:
            yield tree, freeze(tree, version)
        finally:
            git("worktree", "remove", "--force", str(tree))


def freeze(tree, version):
    """Let a work tree's links lead to the tag; return the commit of that.

    Everybody who makes an edition of one commit gets the same commit of it.
    """
    (tree / ".venv").symlink_to(ROOT / ".venv")
    rename = "from tools.commands.repository import rename; rename"
    code = f"{rename}({address()!r}, {version!r})"
    subprocess.run([PYTHON, "-c", code], cwd=tree, check=True)
    if git("diff", "--name-only", folder=tree):
        who = git("log", "-1", "--format=%an%n%ae%n%cI", folder=tree)
        values = dict(
            zip(("NAME", "EMAIL", "DATE"), who.split("\n"), strict=True)
        )
        identity = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in values.items()
        }
        message = f"edition {version}: links lead to its tag"
        commit = ("commit", "--quiet", "--all", "--no-verify", "-m", message)
        git(*commit, folder=tree, **identity)
    return check_tag(version, git("rev-parse", "HEAD", folder=tree))


def check_tag(version, commit):
    """Return the commit of an edition, unless its tag is of another."""
    if git("tag", "--list", version):
        tagged = git("rev-parse", f"{version}^{{commit}}")
        if tagged == git("rev-parse", "HEAD") != commit:
            raise ReleaseError(
                f"The tag {version} is of a commit whose links lead to main; "
                f"run: git tag --force {version} {commit[:12]}"
            )
        if tagged != commit:
            raise ReleaseError(
                f"The tag {version} is of another commit: to make that "
                f"edition, run git switch --detach {version}; or write the "
                "entry of a new edition"
            )
    return commit


def run(tree, *command):
    """Run a command in a work tree, without what make was told here.

    What it says goes to the log.
    """
    ours = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
    env = {k: v for k, v in os.environ.items() if k not in ours}
    with LOG.open("a") as log:
        subprocess.run(
            command,
            cwd=tree,
            env=env,
            check=True,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def make(tree, *arguments):
    """Run make in a work tree, whose .venv is the one that is there."""
    run(tree, "make", "--old-file=.venv/installed", *arguments)


def pack(folder, name):
    shutil.make_archive(str(name), "zip", folder)


def zip_site(tree, name):
    make(tree, "site")
    pack(tree / "_build/html", f"{name}-site")


def test(tree, name):
    make(tree, "test")


def print_pdf(tree, name):
    make(tree, "pdf")
    shutil.copy(tree / "_build/book.pdf", f"{name}.pdf")


def zip_sheets(tree, name):
    for chapter in chapters():
        make(tree, "sheet", f"NB={chapter}.ipynb")
    pack(tree / "build/sheets", f"{name}-sheets")


def build_wheel(tree, name):
    pip = [PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(tree, *pip, "--no-build-isolation", f"--wheel-dir={name.parent}", ".")


STEPS = {
    "site": zip_site,
    "tests": test,
    "PDF": print_pdf,
    "sheets": zip_sheets,
    "wheel": build_wheel,
}


def release(version, out, tested=True):
    """Make an edition's files in a folder, and say what was made."""
    check(version, out)
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("")
    print(f"Edition {version}; what the builders say is in {label(LOG)}.")
    with work_tree(version) as (tree, commit):
        made = tree.parent / "made"
        made.mkdir()
        for name, step in STEPS.items():
            if name == "tests" and not tested:
                print("tests: left out")
                continue
            print(f"{name}: ", end="", flush=True)
            start, before = time.monotonic(), {*made.iterdir()}
            step(tree, made / f"{NAME}-{version}")
            print(f"{time.monotonic() - start:.0f} s", flush=True)
            for path in sorted({*made.iterdir()} - before):
                size = path.stat().st_size / 1e6
                print(f"    {path.name}, {size:.{int(size < 1)}f} MB")
        shutil.copytree(made, out, dirs_exist_ok=True)
    print(f"Edition {version} is in {out}.")
    if not git("tag", "--list", version):
        print(
            f"To publish it, run: git tag {version} {commit[:12]} && "
            f"git push origin {version}"
        )


def main(version="", out="", untested=""):
    try:
        release(version, Path(out).resolve() if out else Path(), not untested)
    except ReleaseError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        last = LOG.read_text("utf-8", errors="replace").splitlines()[-LAST:]
        sys.exit(
            "\n".join(["", *last, ""])
            + f"The edition was not made; {label(LOG)} says why, and its last "
            f"lines are above. This failed: {command}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
