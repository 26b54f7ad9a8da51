"""Links and citations: they resolve, and bibliography.md bears them out."""

import json
import re
from functools import cache, lru_cache

from tools.markdown import anchor, headings, links
from tools.rules.common import SIDE_ROAD, rule
from tools.settings import BOOK, colab_link, slug

BIBLIOGRAPHY = BOOK / "bibliography.md"
YEAR = r"\b(?:19|20)\d\d\b"
NAME = r"[^\W\d_a-z][\w-]+"
# A citation in words, by the first author's name.
CITED = re.compile(rf"({NAME})(?: et al\.?| and {NAME})?,? \(?({YEAR})")
# First author, year and address of an entry of the bibliography.
ENTRY = re.compile(
    rf"(?m)^- (?:({NAME}), .*)?\((\d{{4}})\)\. \[.+?\]\((\S+)\)"
)
CORRECT = "Correct it, or the entry in book/bibliography.md."


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


@lru_cache(maxsize=20)
def anchors(text):
    """Return the anchors that the headings of a page give."""
    return {anchor(title) for _, title in headings(text)}


@rule
def links_with_the_name_of_a_heading_lead_to_it(notebook):
    for cell in notebook.markdown:
        for text, target in links(cell.source):
            file, _, heading = target.partition("#")
            there = places().get(text, ()) if ":" not in target else ()
            # A chapter's name may lead to any of its sections.
            right = anchor(text), anchor(SIDE_ROAD + text)
            if there and file not in there and heading not in right:
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"{target}, but this is the heading of "
                    f"{' or '.join(sorted(there))}. Lead it there, or let it "
                    "say what is at its address."
                )


@cache
def places():
    """Map each heading of the book to its places, as "masks.ipynb#setup"."""
    found = {}
    for path in [*BOOK.glob("*.ipynb"), *BOOK.glob("*.md")]:
        for level, title in headings(words_of(path)):
            place = f"{path.name}#{anchor(title)}" if level > 1 else path.name
            found.setdefault(title, set()).add(place)
            found.setdefault(title.removeprefix(SIDE_ROAD), set()).add(place)
    return found


@rule
def colab_link_is_the_repository_s(notebook):
    link = colab_link(notebook.path)
    if f"[Open in Colab]({link})" not in notebook.cells[0].source:
        yield (
            f"{notebook.name(notebook.cells[0])}: does not link [Open in "
            f"Colab]({link}). Run: make repository SLUG={slug()}"
        )


@cache
def dated():
    """Return what ENTRY finds in the book's bibliography."""
    return ENTRY.findall(words_of(BIBLIOGRAPHY))


@rule
def years_are_those_of_the_bibliography(notebook):
    for cell in notebook.cells:
        for name, year in CITED.findall(cell.source):
            years = {y for author, y, _ in dated() if author == name}
            if years and year not in years:
                yield (
                    f"{notebook.name(cell)}: cites {name} {year}; listed is "
                    f"{', '.join(sorted(years))}. {CORRECT}"
                )
    sources = {address: year for _, year, address in dated()}
    for cell in notebook.markdown:
        for text, target in links(cell.source):
            for year in re.findall(YEAR, text):
                if sources.get(target, year) != year:
                    yield (
                        f"{notebook.name(cell)}: the link [{text}] leads to "
                        f"{target} of {sources[target]}. {CORRECT}"
                    )
