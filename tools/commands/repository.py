"""The repository's address: it stands in _config.yml and nowhere else.

`make repository SLUG=owner/name` sets it, and with it, in each notebook, the
link that opens it in Colab and the address that the package comes from.
"""

import re
import sys

from tools.notebooks import paths
from tools.settings import ADDRESS, CONFIG, slug

# What GitHub allows: an owner of letters, digits and single hyphens.
SLUG = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/(?!\.\.?$)[\w.-]+", re.ASCII)

# Where a chapter's first cell brings the package from.
PACKAGE = re.compile(r"(REPOSITORY = ...?https://github\.com/)[\w./-]+")


def rename(new):
    """Write a new 'owner/name' to _config.yml and to the notebooks."""
    changes = {CONFIG: ADDRESS.sub(rf"\g<1>{new}", CONFIG.read_text("utf-8"))}
    for path in paths():
        # As text, so that nothing else in the file can change.
        own_link = (
            r"(https://colab\.research\.google\.com/github/)[^/\s]+/[^/\s]+"
            rf"(/blob/[^/\s]+/book/{re.escape(path.name)})"
        )
        text = path.read_text("utf-8")
        text = re.sub(own_link, rf"\g<1>{new}\g<2>", text)
        changes[path] = PACKAGE.sub(rf"\g<1>{new}", text)
    for path, text in changes.items():
        path.write_text(text, "utf-8", newline="\n")


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
