"""Build the book with Sphinx alone, and compare the site with `make site`.

`python -m tools.commands.plain_sphinx PYTHON`; PYTHON has the Sphinx to use.
Jupyter Book 1.x has no later release and holds Sphinx back. This shows that
the book can leave it: the settings are those that `jupyter-book config sphinx`
writes, without the two extensions of Jupyter Book.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bs4 import BeautifulSoup

from tools.settings import CITATION, CONFIG, CONTENTS, HTML, ROOT

SETTINGS = """
import sys

sys.path.insert(0, "book/_ext")
for name in ("jupyter_book", "sphinx_multitoc_numbering"):
    extensions.remove(name)
"""
STRICT = ["-W", "-n", "--keep-going", "-q"]
# What a reader sees besides the text. Sphinx's releases wrap code differently.
PARTS = ["a", "details", "h1", "h2", "h3", "img", "input", "math", "table"]


def build(python, folder):
    """Build a copy of the sources in a folder; return where the pages are."""
    for name in ("book", "cellbycell"):
        shutil.copytree(ROOT / name, folder / name)
    for path in (CONFIG, CONTENTS, CITATION):
        shutil.copy(path, folder)
    if (ROOT / ".git").exists():  # where the address may stand
        (folder / ".git").symlink_to(ROOT / ".git")
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    subprocess.run(
        [jupyter_book, "config", "sphinx", "."], cwd=folder, check=True
    )
    with (folder / "conf.py").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    command = [python, "-m", "sphinx", *STRICT, ".", "html"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "html"


def pages(site):
    """Return the pages of a site, by their names in it."""
    found = sorted(site.rglob("*.html"))
    return {
        str(path.relative_to(site)): path
        for path in found
        if "_static" not in path.parts
    }


def article(path):
    """Return the words of a page's article, and how many parts it has."""
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    found = soup.find("article")
    if found is None:  # the search, and a page that leads to the first
        return [], {}
    parts = Counter(part.name for part in found.find_all(PARTS))
    return found.get_text().split(), dict(parts)


def differences(ours, other):
    """Yield in words how the pages of two sites differ."""
    a, b = pages(ours), pages(other)
    for name in sorted(a.keys() ^ b.keys()):
        yield f"{name}: is in one of the sites only"
    for name in sorted(a.keys() & b.keys()):
        words, parts = article(a[name])
        other_words, other_parts = article(b[name])
        place = len(os.path.commonprefix([words, other_words]))
        if words != other_words:
            was, now = words[place:][:8], other_words[place:][:8]
            yield f"{name}: {' '.join(was)!r} became {' '.join(now)!r}"
        if parts != other_parts:
            yield f"{name}: {parts} became {other_parts}"


def main(python):
    if not pages(HTML):
        sys.exit("The site is not built; run: make site")
    with tempfile.TemporaryDirectory() as folder:
        found = list(differences(HTML, build(python, Path(folder))))
    if found:
        sys.exit("\n".join(["Sphinx alone builds another site:", *found]))
    print(f"Sphinx alone builds the same {len(pages(HTML))} pages.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
