"""The pages around the chapters, held to what the chapters say."""

import re

from tools.net import shapes
from tools.net.rules import citations, links, numbers, reading, text
from tools.net.rules.common import LINK, outside_fences, subjects
from tools.net.rules.text import anchor
from tools.net.tables import codes, rows_with
from tools.notebooks import tags

# The rules of chapters that hold for every page.
PROSE = [
    citations.citations_are_those_of_the_bibliography,
    citations.links_lead_to_what_is_spoken_of,
    links.links_lead_where_they_say,
    numbers.counts_in_words_are_computed,
    numbers.lists_are_as_long_as_announced,
    reading.words_are_plain,
    text.no_empty_words,
    text.terms_are_bold_once,
]


def unknown_names(page, notebooks):
    """Yield a message for each name of the book that no chapter's code has."""
    cells = (cell for notebook in notebooks for cell in notebook.code)
    known = set(re.findall(r"\w+", "\n".join(cell.source for cell in cells)))
    known |= shapes.NAMES.keys()  # a size may be there for its letter alone
    for cell in page.markdown:
        for row in rows_with(cell.source, "in code", "in formulas"):
            for name in codes(row["in code"]):
                if name not in known:
                    yield (
                        f"{page.name(cell)}: has {name}, which no code of the "
                        "book has. Correct the name."
                    )


def checks_elsewhere(symptoms, notebooks):
    """Yield a message for each check that its symptom's links do not lead to.

    symptoms: the page's Markdown, where `- [...](masks.ipynb#section)` is
    followed by `Check:` and code that stands in one of the sections linked;
    in one that says *Check* itself, behind that, as code or as words.
    """
    files = {notebook.path.name: notebook for notebook in notebooks}
    _, _, text = symptoms.partition("\n## ")
    for entry in re.findall(r"(?m)^- .*(?:\n  .*)*", text):
        says, _, check = entry.partition("\n  Check: ")
        if not check:
            yield f"book/symptoms.md: say by 'Check: ...' what finds {says!r}."
        targets = [target for _, target in LINK.findall(entry)]
        there = "\n".join(
            re.sub(r"(?s)^.*?\*Check\*", "", section(files[file], heading))
            for file, _, heading in (t.partition("#") for t in targets)
            if file in files
        )
        for name in re.findall(r"`([^`]+)`", check):
            words = re.escape(name).replace("_", "[_ ]")
            if not re.search(rf"(?<!\w){words}(?!\w)", there):
                yield (
                    f"book/symptoms.md, {says[:50]!r}: the check `{name}` "
                    "does not stand, or not behind *Check*, in "
                    f"{' or '.join(targets)}. Name one that does, or make of "
                    "its name a link to the section where it stands."
                )


def same_place(symptoms):
    """Yield a message for each place that two symptoms of a section lead to.

    One of them has another mistake's address.
    """
    for part in re.split(r"(?m)^## ", outside_fences(symptoms))[1:]:
        found = re.findall(r"(?m)^- \[(.+?)\]\((\S+?)\)", part)
        seen = {}
        for said, target in found:
            if (other := seen.setdefault(target, said)) != said:
                yield (
                    f"book/symptoms.md, {part.split(chr(10))[0]!r}: [{other}] "
                    f"and [{said}] lead to {target}. Correct one address."
                )


def other_topics(topics):
    """Yield a message for each row of Topics that links something else.

    None of the headings that it links shares a word with what it describes.
    """
    for known, here in map(dict.values, rows_with(topics, "you know")):
        titles = " ".join(title for title, _ in LINK.findall(here))
        if not subjects(known) & subjects(titles):
            yield (
                f"book/topics.md: the row {known!r} shares no word with "
                f"{titles!r}. Correct the link, or name in the row what the "
                "section is called."
            )


def without_twins(symptoms, notebooks):
    """Yield a message for each section that the opening has wrong.

    It links the sections of symptoms, exercises apart, that have code and no
    twins: mistakes that are made in one framework.
    """
    opening, _, text = symptoms.partition("\n## ")
    named = {t for _, t in LINK.findall(opening) if ".ipynb#" in t}
    lines = "\n".join(re.findall(r"(?m)^- .*", text))
    led = {target for _, target in LINK.findall(lines)}
    code, twins = set(), set()
    for notebook in notebooks:
        for place, cell in places(notebook):
            if cell.cell_type == "code":
                (twins if "pytorch" in tags(cell) else code).add(place)
    alone = {p for p in led & code - twins if "#exercise-" not in p}
    for place in sorted(alone - named):
        yield (
            f"book/symptoms.md: {place} has no twins of PyTorch and "
            "TensorFlow. Say so in the opening."
        )
    for place in sorted(named - alone):
        yield (
            f"book/symptoms.md: the opening has {place}, which is no symptom "
            "without twins. Remove it there."
        )


def places(notebook):
    """Yield (address of the section, cell) for each cell of a chapter."""
    place = None
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            titles = re.findall(
                r"(?m)^#{2,3} (.+)$", outside_fences(cell.source)
            )
            if titles:
                place = f"{notebook.path.name}#{anchor(titles[-1])}"
        yield place, cell


def section(notebook, heading):
    """Return what stands below the heading with this anchor, up to the next.

    Its own parts belong to it. Without a heading, that is the whole chapter.
    """
    level, found = (0, []) if heading else (-1, [])
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and level >= 0:
            for marks, title in re.findall(
                r"(?m)^(#+) (.+)$", outside_fences(cell.source)
            ):
                if level == 0 or len(marks) <= level:
                    level = len(marks) * (anchor(title) == heading)
        if level:
            found.append(cell.source)
    return "\n".join(found)
