"""The text: what every reader's program shows, links, words, anatomy."""

import json
import re
from functools import cache, lru_cache

from tools.net.rules.common import (
    LINK,
    headings,
    outside_code,
    outside_fences,
    outside_maths,
    prose_lines,
    rule,
)
from tools.settings import BOOK, colab_link, slug

MAX_QUESTION_WORDS = 80
MAX_READING = 5
BIBLIOGRAPHY = BOOK / "bibliography.md"
SECTIONS = [
    "What you will be able to do",
    "Notation",
    "Setup",
    "Against the libraries",
    "Wrong on purpose",
    "Summary",
    "Exercises",
    "Further reading",
]
# Shown raw, or lost, by Colab, JupyterLab or GitHub.
RAW = {
    r"^\s*:{3,}": "a colon fence",
    r"^\s*(`{3,}|~{3,})\{": "a directive",
    r"\{[a-z][\w:-]*\}`": "a role",
    r"^\([\w-]+\)=\s*$": "a target label",
    r"\$\$[ \t]*\([\w-]+\)": "a labelled equation (use \\tag)",
    r"\{\{.*?\}\}": "a substitution",
    r"\[\^[^\]]+\]": "a footnote",
    r"\[\]\(": "a link without text",
    r"^%": "a MyST comment",
    r"^\+{3}": "a block break",
    r"\\(begin|end)\{(align|equation)\*?\}": "an environment outside $$",
}
RAW_IN_MATHS = {r"\\(begin|end)\{(align|equation)\*?\}"}


@rule
def nothing_shows_raw(notebook):
    for cell in notebook.markdown:
        code_free, maths_free = (
            outside_code(cell.source),
            outside_maths(cell.source),
        )
        for pattern, what in RAW.items():
            text = maths_free if pattern in RAW_IN_MATHS else code_free
            source = cell.source if "`" in pattern else text
            if match := re.search(pattern, source, re.MULTILINE):
                yield (
                    f"{notebook.name(cell)}: {match.group()!r} is {what}, "
                    "which Colab, JupyterLab or GitHub show raw. Use what "
                    "renders in all of them (CONTRIBUTING.md lists it)."
                )


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
                        f"{target}, which book/bibliography.md does not "
                        "list. List it there, or correct the link."
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


@lru_cache(maxsize=2000)
def links(text):
    """Return (text, target) of each link outside of code."""
    return LINK.findall(outside_code(text))


@cache
def words_of(path):
    """Return the Markdown of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    # Whoever asks has read the notebooks; to hold them to the format of
    # notebooks once more takes long.
    cells = json.loads(text)["cells"]
    return "\n".join(
        "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "markdown"
    )


def words(path, notebook):
    """Return the Markdown of a page, or of the notebook that has its path."""
    if path == notebook.path:
        return "\n".join(cell.source for cell in notebook.markdown)
    return words_of(path)


@lru_cache(maxsize=20)
def anchors(text):
    """Return the anchors that the headings of a page give."""
    found = re.findall(r"(?m)^#+ (.+)$", outside_fences(text))
    return set(map(anchor, found))


def anchor(title):
    """Return a heading's anchor, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


@rule
def colab_link_is_the_repository_s(notebook):
    link = colab_link(notebook.path)
    if f"[Open in Colab]({link})" not in notebook.cells[0].source:
        yield (
            f"{notebook.name(notebook.cells[0])}: does not link "
            f"[Open in Colab]({link}). Run: make repository SLUG={slug()}"
        )


@rule
def one_sentence_per_line(notebook):
    short = re.compile(r"\b(e\.g|i\.e|et al|vs|cf|sec|no)\.\s")
    for cell, line in prose_lines(notebook):
        plain = re.sub(r"\[[^\]]*\]\([^)]*\)", "", short.sub("", line))
        if re.search(r"[.!?][\"'”)*]* +[A-Z“\"]", plain):
            yield (
                f"{notebook.name(cell)}: one sentence per line, please: "
                f"{line.strip()[:60]!r}"
            )


@rule
def no_empty_words(notebook):
    for cell, line in prose_lines(notebook):
        if match := re.search(r"(?i)\b(simply|just|obviously)\b", line):
            yield (
                f"{notebook.name(cell)}: without {match.group()!r}, please: "
                f"{line.strip()[:60]!r}"
            )


@rule
def anatomy(notebook):
    first = notebook.cells[0]
    if first.cell_type != "markdown" or not first.source.startswith("# "):
        yield f"{notebook.name(first)}: the first cell begins with the title."
        return
    if len(list(headings(notebook, 1))) != 1:
        yield f"{notebook.path.name}: has not one title but several."
    question = [
        line
        for line in first.source.split("\n")[1:]
        if "[Open in Colab]" not in line
        and not line.startswith("On a first reading")
    ]
    words = len(outside_code("\n".join(question)).split())
    if not 0 < words <= MAX_QUESTION_WORDS:
        yield (
            f"{notebook.name(first)}: its question has {words} words; say in "
            f"at most {MAX_QUESTION_WORDS} what is missing and will stand."
        )
    titles = [title for _, title in headings(notebook, 2)]
    missing = [section for section in SECTIONS if section not in titles]
    order = [title for title in titles if title in SECTIONS]
    if missing:
        yield f"{notebook.path.name}: lacks the sections {missing}."
    elif order != SECTIONS:
        yield f"{notebook.path.name}: its sections should stand as {SECTIONS}."
    deep = [
        title for level in (4, 5, 6) for _, title in headings(notebook, level)
    ]
    if deep:
        yield f"{notebook.path.name}: {deep[0]!r} lies below the third level."
    reading = notebook.cells[-1].source if titles[-1:] == SECTIONS[-1:] else ""
    if len(re.findall(r"(?m)^[-*] ", reading)) > MAX_READING:
        yield f"{notebook.path.name}: over {MAX_READING} links to read on."


@rule
def headings_are_in_sentence_case(notebook):
    for level in (1, 2, 3):
        for cell, title in headings(notebook, level):
            title = re.sub(r"`[^`]*`", "", title).split(": ")[-1]
            words = re.findall(r"[A-Za-z]{4,}", title)[1:]
            capital = [w for w in words if w.istitle()]
            if len(words) > 1 and len(capital) > len(words) / 2:
                yield (
                    f"{notebook.name(cell)}: the heading {title!r} is in "
                    "title case; write it as a sentence."
                )


@rule
def terms_are_bold_once(notebook):
    seen = {}
    for cell, line in prose_lines(notebook):
        for term in re.findall(r"\*\*([^*]+)\*\*", line):
            if re.match(r"(Note|Try|Hint)\b", term):
                continue
            if term in seen:
                yield (
                    f"{notebook.name(cell)}: {term!r} is bold a second time; "
                    "a term is bold where it is defined, once."
                )
            seen[term] = cell
