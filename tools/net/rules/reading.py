"""How a chapter reads: a short main road that stands alone, plain words."""

import ast
import re

from tools.net.rules.common import (
    SIDE_ROAD,
    folded,
    outside_maths,
    prose_lines,
    rule,
    trees,
    walk,
)
from tools.net.tables import codes
from tools.notebooks import tags

MAX_MINUTES = 45
WORDS_A_MINUTE, LINES_A_MINUTE = 120, 9
CASES = "Wrong on purpose"
EXERCISES = "Exercises"
HEADING = re.compile(r"(?m)^(#{1,3}) (.+)$")
# What stops a reader, and what to write.
PHRASES = {
    r"\b(at the end|here|below|above|on the diagonal|upright\b.*) stands?\b": (
        "begin with the subject: what stands there"
    ),
    r"^(so )?who (?!is|are|was|has|does|can|will)\w+s\b": (
        "begin with 'If you ...' or 'Whoever ...'"
    ),
    r"\b(first draws?|drawn (?:with|from) the first)\b": "say: initialisation",
    r"\bgeometric rows?\b": "say: geometric progression",
    r"\bbroken numbers?\b": "say: fractions",
    r"\bnumbers? that (?:is|are) none\b": "say: NaN",
    r"\bchances\b": "say: probabilities",
    r"\bit is none\b": "name the noun",
    r"^and an? [\w -]+:$": "write a whole sentence",
    r"^[A-Z]\w+s?\.$": "write a whole sentence",
    r"\bthe paper\b(?!')": "name it: *Attention is all you need*",
}


def sections(notebook):
    """Yield (part, cell, text) for each piece of a chapter.

    part is "main", "side" (a side road, or a case of "Wrong on purpose") or
    "exercises"; text is the code of a cell, or the Markdown below a heading.
    """
    part, depth, above = "main", 0, ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            yield part, cell, cell.source
            continue
        before, *rest = HEADING.split(cell.source)
        yield part, cell, before
        for hashes, title, text in zip(*[iter(rest)] * 3, strict=True):
            level = len(hashes)
            if level < 3:
                above = title
            first, _, text = text.strip().partition("\n\n")
            opening = part
            if part == "main" or level <= depth:
                part, depth = kind(level, title, above), level
                # A side road's heading, and what it says first, are in sight.
                opening = "main" if part == "side" else part
            yield opening, cell, f"{title}\n{first}"
            yield part, cell, text


def kind(level, title, above):
    """Return the part of a chapter that a heading begins."""
    if title.startswith(SIDE_ROAD) or (level == 3 and above == CASES):
        return "side"
    return "exercises" if EXERCISES in (title, above) else "main"


def main_road(notebook):
    """Return the words, and the lines of one framework, of a first reading.

    What is folded does not count, nor do the exercises, which name their own
    time. The twin of a cell says the same and counts once.
    """
    words = lines = 0
    for part, cell, text in sections(notebook):
        if part != "main":
            continue
        if cell.cell_type == "code":
            if not folded(cell) and "tensorflow" not in tags(cell):
                lines += sum(bool(line.strip()) for line in text.split("\n"))
        else:
            text = re.sub(r"(?s)<details>.*?</details>", "", text)
            words += len(outside_maths(text).split())
    return words, lines


def minutes(words, lines):
    """Return how long a first reading takes, as the book estimates it."""
    return words / WORDS_A_MINUTE + lines / LINES_A_MINUTE


@rule
def first_reading_is_short(notebook):
    words, lines = main_road(notebook)
    if (time := minutes(words, lines)) > MAX_MINUTES:
        yield (
            f"{notebook.path.name}: its main road takes {time:.0f} minutes "
            f"({words} words / {WORDS_A_MINUTE} + {lines} lines of code / "
            f"{LINES_A_MINUTE}), and {MAX_MINUTES} are allowed. Shorten it, "
            f"or head what a first reading can leave out with "
            f"'### {SIDE_ROAD}...'."
        )


@rule
def main_road_needs_no_side_road(notebook):
    part_of = {id(cell): part for part, cell, _ in sections(notebook)}
    made = {"main": set(), "side": set(), "exercises": set()}
    used = []
    for cell, tree in trees(notebook):
        part = part_of[id(cell)]
        made[part] |= set(names_made(tree))
        if part != "side":
            where = notebook.name(cell)
            used += [(where, name) for name in names_read(tree)]
    defined = "\n".join(cell.source for cell in notebook.code)
    defined = {*re.findall(r"(?m)^(?:def|class) (\w+)", defined)}
    for part, cell, text in sections(notebook):
        if part == "main" and cell.cell_type == "markdown":
            # A link says where it is, and a summary may name what it sums up.
            text = re.sub(r"(?m)^\|.*|\[[^\]]*\]\(.*?\)", "", text)
            named = [name for name in codes(text) if name in defined]
            used += [(notebook.name(cell), name) for name in named]
    only_there = made["side"] - made["main"] - made["exercises"]
    for where, name in dict.fromkeys(used):
        if name in only_there:
            yield (
                f"{where}: uses {name!r}, which a side road defines, and a "
                "first reading skips. Move its definition to the main road, "
                "or what uses it to the side road."
            )


def names_made(tree):
    """Yield each name that code defines, imports, assigns or takes."""
    for node in walk(tree):
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.arg():
                yield node.arg
            case ast.alias():
                yield node.asname or node.name


def names_read(tree):
    """Yield each name that code reads."""
    for node in walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


@rule
def words_are_plain(notebook):
    for cell, line in prose_lines(notebook):
        for pattern, remedy in PHRASES.items():
            if match := re.search(f"(?i){pattern}", line.strip()):
                yield (
                    f"{notebook.name(cell)}: {match.group()!r} stops a "
                    f"reader; {remedy}: {line.strip()[:60]!r}"
                )
