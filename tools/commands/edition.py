"""An edition's version and date: CHANGELOG.md says them, and nothing else.

`make edition` writes those of its newest entry into CITATION.cff, the package
and the page on editions, and adds the addresses of the built site to those
that are kept.
"""

import re

from bs4 import BeautifulSoup

from tools.settings import (
    BOOK,
    CITATION,
    HTML,
    ROOT,
    contents,
    edition,
    site,
    slug,
)

PACKAGE = ROOT / "cellbycell" / "__init__.py"
PAGE = BOOK / "operate.md"
ANCHORS = ROOT / "tests" / "site" / "anchors.txt"


def facts():
    """Return what CITATION.cff says of the edition, in both of its parts."""
    version, date = edition()
    found = {"version": version, "date-released": date}
    found |= {"url": "", "repository-code": ""}
    if address := site():
        found["url"] = address
        found["repository-code"] = f"https://github.com/{slug()}"
    return found


def cited(text):
    """Return the text of CITATION.cff with the facts of the edition."""
    keys = "|".join(facts())
    lines = [f'{key}: "{value}"\n' for key, value in facts().items() if value]
    text = re.sub(rf"(?m)^ *(?:{keys}): .*\n", "", text)
    text = re.sub(
        r"(?m)^( *)title: .*\n",
        lambda m: m[0] + "".join(m[1] + line for line in lines),
        text,
    )
    return re.sub(r"(?m)^  year: .*", f"  year: {edition()[1][:4]}", text)


def versioned(text):
    """Return the package's first module with the edition's version."""
    line = f'__version__ = "{edition()[0]}"'
    return re.sub(r'(?m)^__version__ = ".*"$', line, text)


def taught(text):
    """Return the page on editions with the edition in its commands."""
    return re.sub(r"\b20\d\d\.[1-9]\d*\b", edition()[0], text)


def texts():
    """Yield each file that says the edition, its text, and what it should."""
    files = (CITATION, cited), (PACKAGE, versioned), (PAGE, taught)
    for path, say in files:
        text = path.read_text("utf-8")
        yield path, text, say(text)


def stale():
    """Return the files that do not say what the changelog says."""
    return [path.name for path, text, new in texts() if text != new]


def write():
    """Write version and date where they stand."""
    for path, _, text in texts():
        path.write_text(text, "utf-8", newline="\n")


def anchors():
    """Return the addresses that the built site has: page#anchor.

    Those of sections, terms and names of the package, old ones too.
    """
    found = set()
    for page in contents():
        text = (HTML / f"{page}.html").read_text("utf-8")
        article = BeautifulSoup(text, "html.parser").find("article")
        for place in article.find_all(id=True):
            is_old = place.name == "span" and not place.contents
            is_term = place["id"].startswith("term-")
            if place.name in ("section", "dt") or is_old or is_term:
                found.add(f"{page}#{place['id']}")
    return found


def unlisted():
    """Return the addresses of the built site that are not kept so far."""
    return anchors() - {*ANCHORS.read_text("utf-8").split()}


def main():
    write()
    new = unlisted()
    kept = sorted({*ANCHORS.read_text("utf-8").split(), *new})
    ANCHORS.write_text("\n".join(kept) + "\n", "utf-8", newline="\n")
    version, date = edition()
    print(f"This is edition {version} of {date}, with {len(new)} new anchors.")


if __name__ == "__main__":
    main()
