"""Where a sheet comes from: the chapter's address, the licences, its links."""

from pathlib import Path

from tools.net.markdown import COMMENT, LINK
from tools.notebooks import Notebook
from tools.settings import slug

CC_BY = "https://creativecommons.org/licenses/by/4.0/"
MIT = "https://opensource.org/license/mit"


class TeachError(Exception):
    """Nothing can be made of this; the message says what to do."""


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


def plain(text, path):
    """Return Markdown without comments, its links leading to the site.

    Where the site has no address, a link into the book is its words alone.
    """

    def whole(link):
        words, target = link.groups()
        if ":" in target:
            return link[0]
        target = address(path, target)
        return f"[{words}]({target})" if target else words

    return LINK.sub(whole, COMMENT.sub("", text))


def attribution(path, what):
    """Return the lines that whoever passes a sheet on has to keep.

    what: what of the chapter is here.
    """
    title = Notebook.read(path).cells[0].source.split("\n")[0].strip("# ")
    where = address(path)
    chapter = f"[*{title}*]({where})" if where else f"*{title}*"
    return (
        f"From the chapter {chapter} of the book *Transformers, Cell by "
        f"Cell*, by its authors (2026): {what}.\n"
        f"Text and figures are under [CC BY 4.0]({CC_BY}), the code is under "
        f"the [MIT licence]({MIT}); keep these lines."
    )
