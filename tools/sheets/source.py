"""Where a sheet comes from and goes to: address, licences, links, files."""

import re
from functools import cache
from pathlib import Path

import nbformat

from tools.markdown import COMMENT, LINK, anchor
from tools.notebooks import NAMES, Notebook
from tools.settings import BOOK, ROOT, chapters, slug

SHEETS = ROOT / "build" / "sheets"
COLAB = re.compile(r"\n*\[Open in Colab\]\(.*")  # the whole chapter's
CC_BY = "https://creativecommons.org/licenses/by/4.0/"
MIT = "https://opensource.org/license/mit"


class TeachError(Exception):
    """Nothing can be made of this; the message says what to do."""


def chosen(name, framework):
    """Return the path of a chapter and a framework or None, as were asked for.

    Raises TeachError if there is no such chapter or framework.
    """
    names = [Path(chapter).name for chapter in chapters()]
    path = BOOK / f"{Path(name).stem}.ipynb"
    if Path(name).resolve() != path or path.stem not in names:
        raise TeachError(
            f"{name!r} is no chapter; write NB=book/masks.ipynb, or another "
            f"of {', '.join(names)}."
        )
    if framework not in ("", *NAMES):
        raise TeachError(
            f"{framework!r} is no framework; write FRAMEWORK=pytorch or "
            "FRAMEWORK=tensorflow."
        )
    return path, framework or None


def write(notebook, *words):
    """Write a notebook to build/sheets/, its name made of words."""
    SHEETS.mkdir(parents=True, exist_ok=True)
    path = SHEETS / f"{'-'.join(filter(None, words))}.ipynb"
    path.write_text(nbformat.writes(notebook) + "\n", "utf-8")
    return path


def address(path, page=""):
    """Return the address of a chapter's page, or "" if nobody has set it.

    page: of another page of the book, "masks.ipynb#causal-masks", or of a
    part of this one, "#causal-masks".
    """
    owner, name = slug().split("/")
    if owner == "OWNER":
        return ""
    file, mark, anchor = page.partition("#")
    stem = Path(file or path).stem
    site = f"https://{owner.lower()}.github.io/{name}"
    return f"{site}/book/{stem}.html{mark}{anchor}"


def plain(text, path, places=None):
    """Return Markdown without comments, its links leading to the site.

    Where the site has no address, a link into the book is its words alone, and
    in an edition, which lies beside the other chapters', leads to that file.
    places: in an edition, the targets of links within it, by their anchors.
    """

    def whole(link):
        words, target = link.groups()
        if ":" in target:
            return link[0]
        if target[:1] == "#" and target[1:] in (places or {}):
            return f"[{words}]({places[target[1:]]})"
        file = target.partition("#")[0]
        is_beside = places and f"book/{Path(file).stem}" in chapters()
        target = address(path, target) or (file if is_beside else "")
        return f"[{words}]({target})" if target else words

    return LINK.sub(whole, COMMENT.sub("", text))


def leading(words, path, title=""):
    """Return words as a link to a chapter, or to its part of this title.

    They are no link where the site has no address.
    """
    where = address(path, f"#{anchor(title)}" if title else "")
    return f"[{words}]({where})" if where else words


@cache
def title_of(path):
    """Return the title of a chapter."""
    return Notebook.read(path).cells[0].source.split("\n")[0].strip("# ")


def attribution(path, what):
    """Return the lines that whoever passes a sheet on has to keep.

    what: what of the chapter is here.
    """
    chapter = leading(f"*{title_of(path)}*", path)
    return (
        f"From the chapter {chapter} of the book *Transformers, Cell by "
        f"Cell*, by its authors (2026): {what}.\n"
        f"Text and figures are under [CC BY 4.0]({CC_BY}), the code is under "
        f"the [MIT licence]({MIT}); keep these lines."
    )
