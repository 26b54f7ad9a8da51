"""Authors, years and sections, as book/bibliography.md lists them."""

import re
from calendar import month_name
from functools import cache
from typing import NamedTuple

from tools.net.rules.common import LINK, outside_fences, rule, subjects
from tools.net.rules.text import BIBLIOGRAPHY, words_of

MEETS = {  # a venue -> the month, about; no paper is on arXiv long before
    **{"EACL": 4, "ICLR": 5, "NAACL": 6, "ICML": 8},
    **{"ACL": 8, "EMNLP": 12, "NeurIPS": 12},
}
CORRECT = "Correct it, or the entry in book/bibliography.md."
NAME = r"[^\W\d_a-z][\w-]+"
YEAR = r"\b(?:19|20)\d\d\b"
DATE = rf"(?:(?:{'|'.join(month_name[1:])}) )?{YEAR}"
# "sections 3.5 and 5.4"
PARTS = r"[Ss]ections? (\d[\d.]*\d(?:(?:, | and )\d[\d.]*\d)*)"
CITED = re.compile(
    rf"({NAME})(?: (et al)\.?| and ({NAME}))?,? ?\(?({YEAR})?\)?"
    rf"(?:, {PARTS})?"
)


class Entry(NamedTuple):
    """A source: its authors' surnames, its year and venue, if any, the rest.

    note: what the book says of it, with the sections that it uses.
    """

    authors: list
    year: str
    title: str
    link: str
    venue: str
    note: str


def read(bibliography):
    """Return the entries of a bibliography."""
    entries = []
    for head, title, link, venue, note in re.findall(
        r"(?m)^- (.*?)\[(.+?)\]\((\S+)\)\. ?(.*)\n  (.*)", bibliography
    ):
        authors, _, rest = head.partition(" (")
        surnames = re.findall(rf"({NAME}), [^\W\d_]\.", authors)
        entries.append(Entry(surnames, rest[:4], title, link, venue, note))
    return entries


@cache
def listed():
    """Return the entries of the book's bibliography."""
    return read(words_of(BIBLIOGRAPHY))


@rule
def citations_are_those_of_the_bibliography(notebook):
    for cell in notebook.cells:
        found = [*miscited(cell.source, listed())]
        if cell.cell_type == "markdown":
            found += mislinked(cell.source, listed())
        for message in found:
            yield f"{notebook.name(cell)}: {message}"


@rule
def links_lead_to_what_is_spoken_of(notebook):
    for cell in notebook.markdown:
        for message in beside_the_point(cell.source, listed()):
            yield f"{notebook.name(cell)}: {message}"


def miscited(text, entries):
    """Yield a message for each citation of a text that no entry bears out.

    Such as "Press and Wolf 2017", "Dao et al.", and the sections behind them,
    in a sentence or in a docstring.
    """
    if not re.search(rf"et al|{YEAR}", text):
        return
    surnames = {name for entry in entries for name in entry.authors}
    for match in CITED.finditer(text):
        first, others, second, year, parts = match.groups()
        if not others and not (year and {first, second} & surnames):
            continue
        near = [e for e in entries if first in e.authors]
        fit = [
            entry
            for entry in near
            if entry.authors[0] == first
            and (len(entry.authors) > 2 if others else True)
            and (entry.authors[1:] == [second] if second else True)
            and year in (None, entry.year)
        ]
        said = match.group().strip(" (,")
        if not fit:
            have = "; ".join(", ".join([*e.authors, e.year]) for e in near)
            yield f"cites {said!r}; listed: {have or 'nobody'}. {CORRECT}"
        elif parts:
            yield from unlisted(said, parts, fit[0])


def mislinked(markdown, entries):
    """Yield a message for each link to a source that says another's.

    Its text may say authors, a year, sections, or the title; of a title, what
    stands before the colon is enough. Where the source has no year, what the
    book says of it has the date.
    """
    if not (found := LINK.findall(outside_fences(markdown))):
        return
    surnames = {name for entry in entries for name in entry.authors}
    sources = {entry.link: entry for entry in entries}
    titled = {
        title: entry.link
        for entry in entries
        for title in (entry.title.partition(": ")[0], entry.title)
    }
    for said, target in found:
        title = re.split(", (?:section|chapter)", said)[0]
        if ":" in target and titled.get(title, target) != target:
            yield (
                f"the link [{said}] leads to {target}, but this is the title "
                f"of {titled[title]}. {CORRECT}"
            )
        elif target in sources and sources[target].year:
            yield from mislabelled(said, sources[target], surnames)
        elif target in sources:
            yield from undated(said, sources[target])


def beside_the_point(markdown, entries):
    """Yield a message for each link to a source of something else.

    What its line says shares no word with what the bibliography says of it.
    """
    sources = {entry.link: entry for entry in entries}
    for line in outside_fences(markdown).split("\n"):
        for said, target in LINK.findall(line) if "](http" in line else ():
            if not (entry := sources.get(target)):
                continue
            listed = *entry.authors, entry.title, entry.note
            if not subjects(LINK.sub(r"\1", line)) & subjects(str(listed)):
                yield (
                    f"the link [{said}] leads to {target}, whose entry shares "
                    "no word with this line. Correct the link, or let the "
                    "note in book/bibliography.md say what it is about."
                )


def mislabelled(said, entry, surnames):
    """Yield a message if a link says what its source is not."""
    names = surnames & set(re.findall(NAME, said))
    years = re.findall(YEAR, said)
    if years not in ([], [entry.year]) or names - set(entry.authors):
        yield (
            f"the link [{said}] leads to {entry.link}, listed as "
            f"{', '.join([*entry.authors, entry.year])}. {CORRECT}"
        )
    if parts := re.search(PARTS, said):
        yield from unlisted(said, parts[1], entry)


def undated(said, entry):
    """Yield a message if a link says a date that its entry's note lacks."""
    if missing := [d for d in re.findall(DATE, said) if d not in entry.note]:
        yield (
            f"the link [{said}] leads to {entry.link}, of which the note does "
            f"not say {missing[0]}. {CORRECT}"
        )


def unlisted(said, parts, entry):
    """Yield a message if an entry's note lacks one of the sections cited."""
    noted = re.findall(r"\d[\d.]*\d", entry.note)
    if missing := [p for p in re.split(", | and ", parts) if p not in noted]:
        yield (
            f"{said!r}: what book/bibliography.md says of {entry.link} does "
            f"not name {', '.join(missing)}. Name it there, or correct it."
        )


def misdated(entries):
    """Yield a message for each entry whose year its address belies.

    arXiv's numbers begin with year and month; a venue meets within a year.
    """
    for entry in entries:
        arxiv = re.search(r"arxiv\.org/abs/(\d\d)(\d\d)\.", entry.link)
        path = re.search(r"/(20\d\d)/", entry.link)
        if entry.year and (arxiv or path):
            year = int(f"20{arxiv[1]}" if arxiv else path[1])
            months = 12 * (int(entry.year) - year)
            if arxiv and (name := re.match(r"\w+", entry.venue)):
                posted = int(arxiv[2])
                months += MEETS.get(name[0], posted) - posted
            if not 0 <= months <= 12 * bool(arxiv and entry.venue):
                yield (
                    f"book/bibliography.md: [{entry.title}] is of "
                    f"{entry.year}, and {entry.link} of {year}. Correct the "
                    "year: it is that of the address, or of the venue within "
                    "twelve months."
                )
