"""Links and citations: they resolve, and bibliography.md bears them out."""

import json
import re
from functools import cache, lru_cache

from tools.net.markdown import anchor, headings, links
from tools.net.rules.common import SIDE_ROAD, rule
from tools.settings import BOOK, colab_link, slug

BIBLIOGRAPHY = BOOK / "bibliography.md"
YEAR = r"\b(?:19|20)\d\d\b"
NAME = r"[^\W\d_a-z][\w-]+"
# A citation in words, by the first author's name.
CITED = re.compile(rf"({NAME})(?: et al\.?| and {NAME})?,? \(?({YEAR})")
# First author, year, address and venue of an entry of the bibliography.
ENTRY = re.compile(
    rf"(?m)^- (?:({NAME}), .*)?\((\d{{4}})\)\. \[.+?\]\((\S+)\)\. ?(.*)"
)
CORRECT = "Correct it, or the entry in book/bibliography.md."


@rule
def links_resolve(notebook):
    listed = {target for _, target in links(words_of(BIBLIOGRAPHY))}
    listed.add(colab_link(notebook.path))
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
            elif heading and heading not in anchors(words(path, notebook)):
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
    # Whoever asks has read the notebooks; to hold them to the format of
    # notebooks once more takes long.
    cells = json.loads(text)["cells"]
    return "\n\n".join(
        "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "markdown"
    )


def words(path, notebook):
    """Return the Markdown of a page, or of the notebook that has its path."""
    if path == notebook.path:
        return "\n\n".join(cell.source for cell in notebook.markdown)
    return words_of(path)


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
            if there and file not in there and not named(heading, text):
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"{target}, but this is the heading of "
                    f"{' or '.join(sorted(there))}. Lead it there, or let it "
                    "say what is at its address."
                )


def named(heading, text):
    """Tell whether an anchor is that of a heading with this text."""
    return heading in (anchor(text), anchor(SIDE_ROAD + text))


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
            years = {y for author, y, *_ in dated() if author == name}
            if years and year not in years:
                yield (
                    f"{notebook.name(cell)}: cites {name} {year}; listed is "
                    f"{', '.join(sorted(years))}. {CORRECT}"
                )
    sources = {address: year for _, year, address, _ in dated()}
    for cell in notebook.markdown:
        for text, target in links(cell.source):
            for year in re.findall(YEAR, text):
                if sources.get(target, year) != year:
                    yield (
                        f"{notebook.name(cell)}: the link [{text}] leads to "
                        f"{target} of {sources[target]}. {CORRECT}"
                    )


def misdated(entries):
    """Yield a message for each source whose year its address belies.

    entries: what ENTRY finds. arXiv's numbers begin with the year; a venue
    may follow in the next.
    """
    for _, year, address, venue in entries:
        arxiv = re.search(r"arxiv\.org/abs/(\d\d)\d\d\.", address)
        path = re.search(r"/(20\d\d)/", address)
        if arxiv or path:
            first = int(f"20{arxiv[1]}" if arxiv else path[1])
            if not first <= int(year) <= first + bool(arxiv and venue):
                yield (
                    f"book/bibliography.md: {address} is listed as of {year}, "
                    f"and its address is of {first}. Correct the year: it is "
                    "that of the address, or the next if there is a venue."
                )
