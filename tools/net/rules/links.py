"""Links: one that has the name of a heading leads to it.

The name may be in lower case, or words of it: [masks] leads to a heading
about a mask.
"""

import re
from functools import cache, lru_cache
from itertools import combinations

from tools.net.rules.common import LINK, SIDE_ROAD, outside_fences, rule
from tools.net.rules.text import anchor, words_of
from tools.settings import BOOK

SMALL = {"a", "an", "is", "the"}  # with these begins what is no name


@rule
def links_lead_where_they_say(notebook):
    page = notebook.path.name
    words = "\n".join(cell.source for cell in notebook.markdown)
    named = titles(page, words)
    for cell in notebook.markdown:
        for message in misnamed(cell.source, page, named):
            yield f"{notebook.name(cell)}: {message}"


def misnamed(words, page, named):
    """Yield a message for each link of a text with another heading's name.

    page: the file that it stands in; named: what `titles` returns.
    """
    for text, target in LINK.findall(outside_fences(words)):
        file, _, heading = target.partition("#")
        place, chapter = (file or page, heading), (file or page, "")
        there = named.get(text) or named.get(loosely(text), {place})
        # A chapter's name may lead to any of its sections.
        if ":" not in target and not {place, chapter} & there:
            titled = sorted("#".join(p).strip("#") for p in there)[:3]
            yield (
                f"the link [{text}] leads to {target}, but {text!r} is the "
                f"heading of {' or '.join(titled)}. Lead it there, or let "
                f"it say what is at {target}."
            )


def titles(page, words):
    """Map each heading of the book to its places: (file, anchor).

    words: what stands on the page of that name, wherever it lies. The anchor
    of a page's title is empty.
    """
    return named_in(*(texts() | {page: words}).items())


@lru_cache(maxsize=3)  # the same for all pages as they are stored
def named_in(*pages):
    named = {}
    for file, text in pages:
        for title, heading in headings_on(text):
            named.setdefault(title, set()).add((file, heading))
    return named


@cache
def texts():
    """Return a dict: file -> Markdown of the pages of the book."""
    paths = [*BOOK.glob("*.ipynb"), *BOOK.glob("*.md")]
    return {path.name: words_of(path) for path in paths}


@lru_cache(maxsize=20)
def headings_on(text):
    """Return (title, anchor) of each heading of a page.

    A side road has the name behind the colon, too; and each title stands
    there once more as `loosely` says it, and so do its longer words, and
    those that stand in a row.
    """
    found = re.findall(r"(?m)^(#+) (.+)$", outside_fences(text))
    whole = [(t, "" if marks == "#" else anchor(t)) for marks, t in found]
    whole += [(t.removeprefix(SIDE_ROAD), a) for t, a in whole]
    parts = [(part, a) for t, a in whole for part in (t, *parts_of(t))]
    return whole + [(loosely(words), a) for words, a in parts]


def parts_of(title):
    """Return the longer words of a title, and its words in a row."""
    words = re.findall(r"\w+", title)
    ends = combinations(range(len(words) + 1), 2)
    rows = (words[first:end] for first, end in ends)
    return [
        " ".join(row)
        for row in rows
        if len(row[0]) > 3 or (row[1:] and row[0].lower() not in SMALL)
    ]


def loosely(text):
    """Return a text without capitals, at its end a singular."""
    return text.lower().removesuffix("s")
