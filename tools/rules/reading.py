"""How a chapter reads: a short main road that needs no side road."""

import ast
import re
from collections import defaultdict

from tools.markdown import outside_maths, sections
from tools.notebooks import tags
from tools.rules.common import (
    OTHERS,
    SIDE_ROAD,
    folded,
    rule,
    trees,
    walk,
)

MAX_MINUTES = 50
WORDS_A_MINUTE, LINES_A_MINUTE = 120, 9


def part(titles):
    """Return "main", "side" or "exercises" for the headings above a text."""
    if any(t.startswith(SIDE_ROAD) or t == OTHERS for t in titles):
        return "side"
    return "exercises" if "Exercises" in titles else "main"


def minutes(notebook):
    """Return how long a first reading of the main road takes.

    What is folded does not count, nor do the exercises, which name their own
    time. The twin of a cell says the same and counts once.
    """
    words = lines = 0
    for titles, cell, text in sections(notebook.cells):
        is_code = cell.cell_type == "code"
        if part(titles) == "side" and text.startswith("#") and not is_code:
            # The heading of a side road and its first paragraph are in sight.
            titles = titles[:-1]
            text = "\n\n".join(text.split("\n\n")[:2])
        if part(titles) != "main" or "Setup" in titles:
            continue
        if not is_code:
            text = re.sub(r"(?s)<details>.*?</details>", "", text)
            words += len(outside_maths(text).lstrip("#").split())
        elif not folded(cell) and "tensorflow" not in tags(cell):
            lines += sum(bool(line.strip()) for line in text.split("\n"))
    return words / WORDS_A_MINUTE + lines / LINES_A_MINUTE


@rule
def first_reading_is_short(notebook):
    if (time := minutes(notebook)) > MAX_MINUTES:
        yield (
            f"{notebook.path.name}: its main road takes {time:.1f} minutes, "
            f"and {MAX_MINUTES} are the most. Shorten it, or head what a "
            f"first reading can leave out with '### {SIDE_ROAD}...'."
        )


@rule
def main_road_needs_no_side_road(notebook):
    parts = {id(c): part(t) for t, c, _ in sections(notebook.cells)}
    made, used = defaultdict(set), {}
    for cell, tree in trees(notebook):
        where = parts[id(cell)]
        made[where] |= names_made(tree)
        for node in walk(tree) if where != "side" else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                used.setdefault(node.id, cell)
    for name in sorted(made["side"] - made["main"] - made["exercises"]):
        if name in used:
            yield (
                f"{notebook.name(used[name])}: uses {name!r}, which only a "
                "side road defines. Move its definition to the main road, or "
                "what uses it to the side road."
            )


def names_made(tree):
    """Return the names that code defines, imports, assigns or takes."""
    made = set()
    for node in walk(tree):
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        if not is_read and not isinstance(node, ast.keyword):
            kinds = "id", "name", "asname", "arg"
            made |= {getattr(node, kind, None) for kind in kinds}
    return made - {None}
