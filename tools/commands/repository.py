"""The repository's address: it stands in _config.yml and nowhere else.

`make repository SLUG=owner/name` sets it, and with it, in each notebook, the
link that opens it in Colab and the address that the package comes from, in
CITATION.cff where the book is, and the links that the package index shows. A
tagged edition has its tag in these links in place of the branch:
tools/commands/release.py sets it.
"""

import re
import sys

from tools.notebooks import paths
from tools.settings import ADDRESS, BOOK, BRANCH, CONFIG, ROOT, slug

# What GitHub allows: an owner of letters, digits and single hyphens.
SLUG = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/(?!\.\.?$)[\w.-]+", re.ASCII)

# Where a chapter's first cell brings the package from.
PACKAGE = re.compile(r"(REPOSITORY = ...?https://github\.com/)[\w./-]+")
ARCHIVE = re.compile(r"(\{REPOSITORY\}/archive/)[\w.-]+(\.zip)")

# What the package index shows. Only a link to the book's own pages leads to
# the tag of an edition: what is new stands in the newest changelog.
SHOWN = [ROOT / "pyproject.toml", ROOT / "cellbycell" / "README.md"]


def rename(new, branch="main"):
    """Let all links lead to 'owner/name' and a branch, or a tag, of it."""
    settings = ADDRESS.sub(rf"\g<1>{new}", CONFIG.read_text("utf-8"))
    changes = {CONFIG: BRANCH.sub(rf"\g<1>{branch}", settings)}
    old = re.escape(slug())
    own_links = re.compile(
        rf"(https://colab\.research\.google\.com/github/){old}/blob/[^/\s]+"
    )
    for path in [*paths(), BOOK / "index.md"]:
        # As text, so that nothing else in the file can change.
        text = path.read_text("utf-8")
        text = own_links.sub(rf"\g<1>{new}/blob/{branch}", text)
        text = PACKAGE.sub(rf"\g<1>{new}", text)
        changes[path] = ARCHIVE.sub(rf"\g<1>{branch}\g<2>", text)
    for path in SHOWN:
        text = re.sub(
            rf"(?<=https://github\.com/){old}(?![\w.-])",
            new,
            path.read_text("utf-8"),
        )
        changes[path] = re.sub(r"(?<=/blob/)[^/\s]+(?=/book/)", branch, text)
    citation = ROOT / "CITATION.cff"
    changes[citation] = cited(citation.read_text("utf-8"), new)
    for path, text in changes.items():
        path.write_text(text, "utf-8", newline="\n")


def cited(text, slug):
    """Return CITATION.cff's text with where the book is, if that is known."""
    owner, name = slug.split("/")
    lines = [
        f'url: "https://{owner.lower()}.github.io/{name}/"\n',
        f'repository-code: "https://github.com/{slug}"\n',
    ]
    lines = lines if owner != "OWNER" else []
    return re.sub(
        r"(?m)^( *)title: .*\n",
        lambda m: m[0] + "".join(m[1] + line for line in lines),
        re.sub(r"(?m)^ *(?:url|repository-code): .*\n", "", text),
    )


def main(arguments):
    new = " ".join(arguments)
    if not SLUG.fullmatch(new):
        sys.exit(
            f"{new!r} is not the address of a repository; "
            "run: make repository SLUG=owner/name"
        )
    rename(new)
    print(f"The repository is now {slug()}.")


if __name__ == "__main__":
    main(sys.argv[1:])
