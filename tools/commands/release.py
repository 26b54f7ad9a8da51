"""Make the files of an edition: `make release VERSION=2026.1 OUT=folder`.

What is committed is tested and built in a work tree of its own, where links
to Colab and to the package lead to the edition's tag; this is a commit behind
the last one, and the one to be tagged. The book's own files stay as they are.
`UNTESTED=1` leaves the tests out, for a look at the files.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.commands.edition import stale
from tools.settings import BOOK, ROOT, chapters, edition, slug

NAME = "transformers-cell-by-cell"
PYTHON = ".venv/bin/python"
USAGE = "run: make release VERSION=2026.1 OUT=folder"


class ReleaseError(Exception):
    """The edition cannot be made; the message says what to do."""


def git(*arguments, folder=ROOT):
    """Return what git says; raises ReleaseError with git's reason."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def check(version, out):
    """Raise ReleaseError unless this edition can be made, into a folder."""
    if not re.fullmatch(r"20\d\d\.[1-9]\d*", version) or not out.name:
        raise ReleaseError(f"Say which version, and where; {USAGE}")
    if version != edition()[0]:
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
    if git("status", "--porcelain"):
        raise ReleaseError("An edition is made of what is committed: commit")
    if out.exists() and any(out.iterdir()):
        raise ReleaseError(f"{out} holds files: name a new folder")


@contextmanager
def work_tree(version):
    """Yield a work tree whose links lead to the tag, and its commit."""
    sys.path.insert(0, str(BOOK / "_ext"))
    from site_address import GITHUB, repository

    address = repository(f"{GITHUB}{slug()}", ROOT).removeprefix(GITHUB)
    with TemporaryDirectory() as folder:
        tree = Path(folder, NAME)
        git("worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
        try:
            (tree / ".venv").symlink_to(ROOT / ".venv")
            rename = "from tools.commands.repository import rename; rename"
            code = f"{rename}({address or slug()!r}, {version!r})"
            subprocess.run([PYTHON, "-c", code], cwd=tree, check=True)
            if git("diff", "--name-only", folder=tree):
                name, mail = git("log", "-1", "--format=%an\n%ae").split("\n")
                who = "-c", f"user.name={name}", "-c", f"user.email={mail}"
                message = f"--message=edition {version}: links lead to its tag"
                git(*who, "commit", "--quiet", "--all", message, folder=tree)
            yield tree, git("rev-parse", "HEAD", folder=tree)
        finally:
            git("worktree", "remove", "--force", str(tree))


def run(tree, *command):
    """Run a command in a work tree, without what make was told here."""
    ours = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
    env = {k: v for k, v in os.environ.items() if k not in ours}
    subprocess.run(command, cwd=tree, env=env, check=True)


def build(tree, made, tested):
    """Build an edition's files into the folder `made`."""
    make = ["make", "--old-file=.venv/installed"]
    run(tree, *make, "site", *(["test"] if tested else []), "pdf")
    for chapter in chapters():
        run(tree, *make, "sheet", f"NB={chapter}.ipynb")
    shutil.make_archive(str(made) + "-site", "zip", tree / "_build/html")
    shutil.make_archive(str(made) + "-sheets", "zip", tree / "build/sheets")
    shutil.copy(tree / "_build/book.pdf", f"{made}.pdf")
    pip = [PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(tree, *pip, "--no-build-isolation", f"--wheel-dir={made.parent}", ".")


def main(version="", out="", untested=""):
    """Make an edition's files in a folder, and say how to publish it."""
    out = Path(out).resolve() if out else Path()
    try:
        check(version, out)
        tag = git("tag", "--list", version)
        with work_tree(version) as (tree, commit):
            if tag and git("rev-parse", f"{version}^{{commit}}") != commit:
                raise ReleaseError(
                    f"The tag {version} is of another commit: run git switch "
                    f"--detach {version}, or write a new edition's entry"
                )
            out.mkdir(parents=True, exist_ok=True)
            build(tree, out / f"{NAME}-{version}", not untested)
    except ReleaseError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        sys.exit(f"{command} failed: it says above why. {out} is not whole.")
    print(f"Edition {version} is in {out}:")
    for path in sorted(out.iterdir()):
        print(f"    {path.name}, {path.stat().st_size / 1e6:.1f} MB")
    if not tag:
        print(
            f"To publish it, run: git tag {version} {commit[:12]} && "
            f"git push origin {version}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
