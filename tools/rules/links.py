"""Links: they resolve, and bibliography.md lists what leaves the book."""

import json
import re
from functools import cache

from tools.markdown import anchor, headings, links
from tools.rules.common import rule
from tools.settings import BOOK, colab_link, slug

BIBLIOGRAPHY = BOOK / "bibliography.md"


@rule
def links_resolve(notebook):
    listed = {target for _, target in links(words_of(BIBLIOGRAPHY))}
    listed.add(colab_link(notebook.path))
    own = "\n\n".join(cell.source for cell in notebook.markdown)
    for cell in notebook.markdown:
        for text, target in links(cell.source):
            if re.match(r"https?://", target):
                if target not in listed:
                    yield (
                        f"{notebook.name(cell)}: the link [{text}] leads to "
                        f"{target}, which book/bibliography.md does not list. "
                        "List it there, or correct the link."
                    )
                continue
            file, _, heading = target.partition("#")
            path = notebook.path.parent / file if file else notebook.path
            if not path.is_file():
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"{file}, which does not exist beside the notebook."
                )
                continue
            text_there = own if path == notebook.path else words_of(path)
            if heading and heading not in anchors(text_there):
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"#{heading}, which is no heading of {path.name}."
                )


@cache
def words_of(path):
    """Return the Markdown of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    # Not by Notebook.read: to check the format once more takes long.
    cells = json.loads(text)["cells"]
    return "\n\n".join(
        "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "markdown"
    )


@cache
def anchors(text):
    """Return the anchors that the headings of a page give."""
    return {anchor(title) for _, title in headings(text)}


@rule
def colab_link_is_the_repository_s(notebook):
    link = colab_link(notebook.path)
    if f"[Open in Colab]({link})" not in notebook.cells[0].source:
        yield (
            f"{notebook.name(notebook.cells[0])}: does not link [Open in "
            f"Colab]({link}). Run: make repository SLUG={slug()}"
        )
