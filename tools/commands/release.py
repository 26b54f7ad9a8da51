"""Make the files of an edition: `make release VERSION=2026.1 OUT=folder`.

What is committed is built in a work tree of its own, where links to Colab and
to the package lead to the edition's tag; this is a commit behind the last
one, and the one to be tagged. The book's own files stay as they are.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.settings import ROOT, chapters, edition, slug

NAME = "transformers-cell-by-cell"
PYTHON = ".venv/bin/python"


def run(tree, *command):
    """Run a command in a work tree, without what make was told here."""
    ours = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
    env = {k: v for k, v in os.environ.items() if k not in ours}
    subprocess.run(command, cwd=tree, env=env, check=True)


def git(*arguments, folder=ROOT):
    """Return what git says."""
    command = ["git", *arguments]
    return subprocess.check_output(command, cwd=folder, text=True).strip()


def link_to_tag(tree, version):
    """Let a work tree's links lead to a tag; return the commit to tag."""
    rename = "from tools.commands.repository import rename; rename"
    run(tree, PYTHON, "-c", f"{rename}({slug()!r}, {version!r})")
    if git("diff", "--name-only", folder=tree):
        name, mail = git("log", "-1", "--format=%an\n%ae").split("\n")
        who = "-c", f"user.name={name}", "-c", f"user.email={mail}"
        message = f"--message=edition {version}: links lead to its tag"
        git(*who, "commit", "--quiet", "--all", message, folder=tree)
    return git("rev-parse", "HEAD", folder=tree)


def build(tree, made):
    """Build an edition's files; their names begin with `made`."""
    make = ["make", "--old-file=.venv/installed"]
    run(tree, *make, "site", "pdf")
    for chapter in chapters():
        run(tree, *make, "sheet", f"NB={chapter}.ipynb")
    made.parent.mkdir(parents=True, exist_ok=True)
    shutil.make_archive(str(made) + "-site", "zip", tree / "_build/html")
    shutil.make_archive(str(made) + "-sheets", "zip", tree / "build/sheets")
    shutil.copy(tree / "_build/book.pdf", f"{made}.pdf")
    pip = [PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(tree, *pip, "--no-build-isolation", f"--wheel-dir={made.parent}", ".")


def main(version="", out=""):
    """Make an edition's files in a folder, and say how to publish it."""
    if version != edition()[0] or not out:
        sys.exit(
            f"The newest edition in CHANGELOG.md is {edition()[0]}; run: "
            f"make release VERSION={edition()[0]} OUT=folder"
        )
    if git("status", "--porcelain"):
        sys.exit("An edition is made of what is committed: commit.")
    with TemporaryDirectory() as folder:
        tree = Path(folder, NAME)
        git("worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
        try:
            (tree / ".venv").symlink_to(ROOT / ".venv")
            commit = link_to_tag(tree, version)
            build(tree, Path(out).resolve() / f"{NAME}-{version}")
        finally:
            git("worktree", "remove", "--force", str(tree))
    print(f"Edition {version} is in {out}:")
    for path in sorted(Path(out).iterdir()):
        print(f"    {path.name}, {path.stat().st_size / 1e6:.1f} MB")
    print(
        f"To publish it, run: git tag {version} {commit[:12]} && "
        f"git push origin {version}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
