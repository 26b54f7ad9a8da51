"""Numbers: computed, in digits or words, with their units, not typed."""

import re
from itertools import takewhile

from tools.net import claims
from tools.net.claims import NUMBERS
from tools.net.rules.common import outside_fences, outside_maths, rule
from tools.net.rules.text import BIBLIOGRAPHY, words_of
from tools.notebooks import alt_text

# What a chapter counts: from three on, it is computed or stands below.
COUNTED = """answers bases bits bytes candidates chapters checks customs
exercises heads keys layers lookups measures mistakes panels queries results
rows rules samples slips sums tests vocabularies ways widths wishes
words""".split()
WORDS = "|".join(sorted(NUMBERS, key=len, reverse=True))
NOUN = rf"(?: [a-z]+){{0,2}}? ({'|'.join(COUNTED)})\b"
# "Four thousand words" and "eight kinds of words" count something else.
COUNT = re.compile(
    rf"(?i)(?<![\w-])({WORDS})(?! (?:are|thousand|\w+ of) ){NOUN}"
)
TITLE = re.compile(r"\[[^\]]*\]\(http")
CLAIMED = re.compile(rf"(\d+|[A-Za-z-]+)\0{NOUN}")
# A power of ten as mathematics; a number in code quotes, or an argument's.
POWER = re.compile(r"\$(?:[\w\\{}]+ ?= ?)?-?10\^\{?(-?\d+)\}?\$")
QUOTED = re.compile(r"`((?:[A-Za-z_]\w*=)?-?\d[\d.e-]*)`")
# A paragraph, and the list or the table that follows at once.
LISTED = re.compile(
    r"(?m)^(\S.*(?:\n\S.*)*)\n\n((?:(?:[-*] |\d+\. |\|).*\n(?:  .*\n)*)+)"
)
ANNOUNCED = re.compile(rf"(?im)^({WORDS}) |\b({WORDS}) .*:\Z")
# Parts of "Wrong on purpose" that are no mistake themselves.
OVERVIEW = r"Which check|All of them"
OF = {"Wrong on purpose": "mistakes", "Exercises": "exercises"}


@rule
def numbers_in_prose_are_computed(notebook):
    for cell in notebook.cells:
        for message in claims.faults(prose_of(cell)):
            yield f"{notebook.name(cell)}: {message}"


def prose_of(cell):
    """Return what a cell says in words."""
    return alt_text(cell) if cell.cell_type == "code" else cell.source


@rule
def numbers_in_code_quotes_stand_in_the_code(notebook):
    sources = [cell.source for cell in notebook.code]
    known = "\n".join([*sources, words_of(BIBLIOGRAPHY)])  # which has versions
    for cell in notebook.markdown:
        text = POWER.sub(r"`1e\1`", outside_fences(cell.source))
        for number in QUOTED.findall(text):
            alone = rf"(?<![\w.]){re.escape(number)}(?!\w|\.\d)"
            if not re.search(alone, known):
                yield (
                    f"{notebook.name(cell)}: has `{number}`, which no code of "
                    "the chapter has. Correct it, or compute it: "
                    "16<!--= d_model -->."
                )


@rule
def matrices_are_printed(notebook):
    for cell in notebook.markdown:
        for table in re.findall(r"(?m)(?:^\|.*\n?)+", cell.source):
            rows = [row.split("|")[2:-1] for row in table.split("\n")[2:]]
            marks = [mark.strip() for row in rows for mark in row]
            marks = [mark for mark in marks if "<!--=" not in mark]
            again = [mark for mark in marks if marks.count(mark) > 1]
            if len(again) > max(len(marks) / 2, 5):
                yield (
                    f"{notebook.name(cell)}: a matrix that is typed, "
                    f"{len(again)} of its {len(marks)} marks more than once. "
                    "Print it in a cell, from what was computed."
                )


@rule
def counts_in_words_are_computed(notebook):
    known = counted(notebook)
    for cell in notebook.cells:
        for match in counts(prose_of(cell)):
            number, noun = NUMBERS[match[1].lower()], match[2].lower()
            have = sorted(n for n, what in known if what == noun)
            if number > 2 and number not in have:
                yield (
                    f"{notebook.name(cell)}: says {match.group()!r}; what "
                    f"stands here counts {have or 'no'} {noun}. Correct the "
                    f"number, or compute it: {match[1]}<!--= len(...) -->."
                )


def counts(text):
    """Return the matches of COUNT in a text, without code and titles."""
    if not any(noun in text for noun in COUNTED):  # most have none
        return []
    return list(COUNT.finditer(TITLE.sub("", outside_maths(text))))


def counted(notebook):
    """Return the (number, noun) that claims, headings or lists bear out."""
    words = "\n".join(w for w in map(prose_of, notebook.cells) if "-->" in w)
    known = {
        (NUMBERS.get(said.lower()) or int(said), noun)
        for said, noun in CLAIMED.findall(claims.CLAIM.sub("\\1\0", words))
        if said.isdigit() or said.lower() in NUMBERS
    }
    for title, parts, body in sections(notebook):
        if parts:
            known |= {(len(parts), match[2]) for match in counts(title)}
        for paragraph, items in LISTED.findall(f"{title}{body}"):
            known |= {
                (count(items), match[2])
                for match in counts(paragraph)
                if NUMBERS[match[1].lower()] == count(items)
            }
        if title in OF:
            shown = [p for p in parts if not re.match(OVERVIEW, p)]
            known.add((len(shown), OF[title]))
    return known


def sections(notebook):
    """Yield each heading's title, the titles just below, and its own text."""
    text = "\n\n".join(cell.source for cell in notebook.markdown)
    parts = re.split(r"(?m)^(#+) (.+)$", outside_fences(text))
    marks, titles, bodies = (parts[first::3] for first in (1, 2, 3))
    for place, (mark, title) in enumerate(zip(marks, titles, strict=True)):
        below = zip(marks[place + 1 :], titles[place + 1 :], strict=True)
        inside = takewhile(lambda heading, mark=mark: heading[0] > mark, below)
        children = [t for m, t in inside if len(m) == len(mark) + 1]
        yield title, children, f"{bodies[place]}\n"


@rule
def lists_are_as_long_as_announced(notebook):
    for cell in notebook.markdown:
        words = f"{outside_fences(cell.source)}\n"
        for paragraph, items in LISTED.findall(words):
            said = [a or b for a, b in ANNOUNCED.findall(paragraph)]
            numbers = [NUMBERS[word.lower()] for word in said]
            if max(numbers, default=0) > 1 and count(items) not in numbers:
                yield (
                    f"{notebook.name(cell)}: announces {' and '.join(said)}, "
                    f"and {count(items)} follow. Correct the number or the "
                    "list; what is of something else goes elsewhere."
                )


def count(items):
    """Return how many items a list has, or rows a table."""
    lines = re.findall(r"(?m)^(?:[-*] |\d+\. |\|)", items)
    return len(lines) - 2 * items.startswith("|")
