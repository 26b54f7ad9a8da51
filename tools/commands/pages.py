"""Write what the pages say of the chapters: `make pages`.

Between `<!-- written: levels -->` and `<!-- end -->` stands what the function
of that name returns. What only a person knows stands in the mark, as which
exercises test an outcome, or in what was there, as the README's words about a
chapter.
"""

import re
from functools import cache
from pathlib import Path

from cellbycell.figures.hero import hero
from cellbycell.figures.legend import legend
from cellbycell.ribbon import ribbon
from tools.markdown import anchor, headings, sections
from tools.notebooks import Notebook, label
from tools.rules.exercises import EXERCISE
from tools.rules.reading import MAX_MINUTES, minutes
from tools.run.claims import NUMBERS
from tools.settings import BOOK, ROOT, chapters, table

PAGES = [ROOT / "README.md", BOOK / "index.md", BOOK / "teach.md"]
PAGES += [BOOK / "_static/cards.html"]
PAGES += [BOOK / "evening.py"]  # its comments have the marks
# What a function of the package draws for a page.
DRAWINGS = {
    BOOK / "_static/names.html": hero,
    BOOK / "_static/ribbon.html": ribbon,
    BOOK / "_static/legend.html": legend,
}
WRITTEN = re.compile(
    r"(?s)(<!-- written: (\w+)([\w, ]*) -->)(.*?)(<!-- end -->)"
)
WORDS = {value: word for word, value in NUMBERS.items()}
LINK = re.compile(r"\]\((?:book/)?(\w+)\.ipynb\)(.*)")
TOTAL = ["easy", "medium", "hard", "all"]


@cache
def read(stem):
    """Return a chapter as a Notebook."""
    return Notebook.read(BOOK / f"{stem}.ipynb")


def stems():
    """Return the chapters' names, in their order."""
    return [name.removeprefix("book/") for name in chapters()]


def title(stem):
    return headings(read(stem).cells[0].source)[0][1]


@cache
def exercises(stem):
    """Return (heading's anchor, title, level, minutes) of the exercises."""
    found = [h for cell in read(stem).markdown for h in headings(cell.source)]
    parts = [(EXERCISE.fullmatch(name), name) for _, name in found]
    return [
        (anchor(name), match["title"], match["level"], int(match["minutes"]))
        for match, name in parts
        if match
    ]


def count(given, old, line):
    """The number of chapters, in words."""
    return WORDS[len(stems())]


def longest(given, old, line):
    """The minutes that a first reading may take."""
    return str(MAX_MINUTES)


def hours(given, old, line):
    """The hours of the chapters that the line links, or of all."""
    linked = [stem for stem, _ in LINK.findall(line.replace(")", ")\n"))]
    times = [minutes(read(stem)) for stem in linked or stems()]
    return WORDS[round(sum(times) / 60)]


def part(given, old, line):
    """The number of a part's chapters, and their hours; given: its name."""
    (listed,) = (
        one["chapters"]
        for one in table()["parts"]
        if one["caption"] == given.strip()
    )
    names = [Path(one["file"]).name for one in listed]
    total = sum(minutes(read(stem)) for stem in names)
    if len(names) == 1:
        return f"1 chapter, {round(total)} minutes"
    return f"{len(names)} chapters, {round(total / 30) / 2:g} hours"


def contents(given, old, line):
    """A list of the chapters, each with the words that it has there."""
    said = dict(LINK.findall(old))
    return "\n" + "".join(
        f"{number}. [{title(stem)}](book/{stem}.ipynb){said.get(stem, '')}\n"
        for number, stem in enumerate(stems(), 1)
    )


def outcomes(given, old, line):
    """A table of what a chapter teaches, and the exercises that test it.

    given: `masks 1 2, , 4 5 3`, the exercises of each outcome by number.
    """
    stem, _, numbers = given.strip().partition(" ")
    lines = [
        re.sub(r"<!--.*?-->", "", line)
        for titles, cell, text in sections(read(stem).cells)
        if titles[-1:] == ("What you will be able to do",)
        for line in re.findall(r"(?m)^- (.*)", text)
        if cell.cell_type == "markdown"
    ]
    tested = [[int(n) for n in part.split()] for part in numbers.split(",")]
    there = [*range(1, len(exercises(stem)) + 1)]
    if len(lines) != len(tested) or sorted(sum(tested, [])) != there:
        raise SystemExit(
            f"book/teach.md: <!-- written: outcomes{given} --> should give "
            f"the exercises {there} to {len(lines)} outcomes, divided by "
            f"commas: {lines}"
        )
    rows = [
        f"| [{title(stem)}]({stem}.ipynb): students can then | exercises |",
        "|---|---|",
    ]
    for outcome, some in zip(lines, tested, strict=True):
        entries = [entry(stem, *exercises(stem)[n - 1]) for n in some]
        rows.append(f"| {outcome} | {'; '.join(entries) or 'in class'} |")
    return "\n" + "\n".join(rows) + "\n"


def entry(stem, place, name, level, time):
    return f"[{name}]({stem}.ipynb#{place}) ({level}, {time})"


def levels(given, old, line):
    """A table of the exercises of each level, and their time."""
    rows = [
        "| level | exercises | time of their headings | plan for students |",
        "|---|---|---|---|",
    ]
    every = [exercise for stem in stems() for exercise in exercises(stem)]
    for level in TOTAL:
        times = [m for *_, kind, m in every if level in (kind, "all")]
        total = sum(times)
        low, high = round(2 * total / 60), round(3 * total / 60)
        rows.append(
            f"| {level} | {len(times)} | {total // 60} h {total % 60} "
            f"| {low} to {high} h |"
        )
    return "\n" + "\n".join(rows) + "\n"


# The cells that make the listing of *One evening*.
LISTING = ["loss-def", "loop-def", "turn-def", "block-def", "model-def"]
LISTING += ["spell-def", "say-def"]


def listing(given, old, line):
    """The functions and classes of *One evening*, in PyTorch."""
    by_id = {cell.id: cell.source for cell in read("evening").code}
    return "\n\n\n".join(["", *map(by_id.get, LISTING), "# "])


WRITERS = [count, longest, hours, part, contents, outcomes, levels, listing]


def written(text):
    """Return a page's text, its marked places filled in."""
    by_name = {writer.__name__: writer for writer in WRITERS}

    def fill(match):
        begin, name, given, old, end = match.groups()
        line = text[text.rfind("\n", 0, match.start()) + 1 :].split("\n")[0]
        return begin + by_name[name](given, old, line) + end

    return WRITTEN.sub(fill, text)


def stale():
    """Return {path: its text as it should be} of pages that are not so."""
    texts = {path: path.read_text("utf-8") for path in PAGES}
    new = {path: written(text) for path, text in texts.items()}
    for path, drawn in DRAWINGS.items():
        texts[path], new[path] = path.read_text("utf-8"), drawn()
    return {path: new[path] for path in new if new[path] != texts[path]}


def main():
    for path, text in stale().items():
        path.write_text(text, "utf-8", newline="\n")
        print(f"{label(path)}: written")


if __name__ == "__main__":
    main()
