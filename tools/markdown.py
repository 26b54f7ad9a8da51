"""Parts of Markdown: code, mathematics, links, headings and sections."""

import re
from functools import cache

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)")
HEADING = re.compile(r"(?m)^(#+) (.+)$")
FENCE = re.compile(r"(?ms)^(`{3,}).*?^\1`*\s*$")
COMMENT = re.compile(r"(?s)<!--.*?-->")


@cache
def outside_fences(text):
    """Return a text without code fences and comments."""
    return COMMENT.sub("", FENCE.sub("", text))


@cache
def outside_code(text):
    """Return a text without fences and comments, a dot for inline code."""
    return re.sub(r"`[^`\n]*`", "·", outside_fences(text))


@cache
def outside_maths(text):
    """Return a text without code and mathematics."""
    text = re.sub(r"(?s)\$\$.*?\$\$", "", outside_code(text))
    return re.sub(r"\$[^$\n]+\$", "", text)


@cache
def links(text):
    """Return (text, target) of each link outside of code."""
    return LINK.findall(outside_code(text))


def headings(text):
    """Return (level, title) of each heading."""
    found = HEADING.findall(outside_fences(text))
    return [(len(marks), title.strip()) for marks, title in found]


def anchor(title):
    """Return a heading's anchor, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def sections(cells):
    """Yield (titles, cell, text) for each code cell and each section's text.

    titles: of the headings that it stands under, the page's title first;
    text: the source of a code cell, or a section's own Markdown in a cell,
    which begins with the heading if that stands there.
    """
    titles = ()
    for cell in cells:
        if cell.cell_type == "code":
            yield titles, cell, cell.source
            continue
        text = outside_fences(cell.source)
        for part in re.split(r"(?m)^(?=#+ .)", text):
            if heading := HEADING.match(part):
                level, title = len(heading[1]), heading[2].strip()
                titles = (*titles[: level - 1], title)
            yield titles, cell, part
