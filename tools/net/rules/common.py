"""What the rules share: their register, and ways to read a chapter."""

import ast
import re
from functools import lru_cache

from tools.notebooks import tags

RULES = []
# How the heading of a side road begins.
SIDE_ROAD = "Side road: "
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
# What says nothing of a subject; the libraries are the subject everywhere.
COMMON = set(
    """about after again all and another any are ask asked because but can does
each first for found from has have here how into its keras many more most not
other out own pytorch question reader report reported same say says should
some such tensorflow than that the their them then they this those too two was
well what when where which who whole why will with without you your""".split()
)


def rule(function):
    """Add a function to those that every chapter is held to."""
    RULES.append(function)
    return function


@lru_cache(maxsize=4000)
def outside_fences(text):
    """Return a text without code fences and comments."""
    text = re.sub(r"(?ms)^(`{3,}).*?^\1`*\s*$", "", text)
    return re.sub(r"(?s)<!--.*?-->", "", text)


@lru_cache(maxsize=4000)
def outside_code(text):
    """Return a text without fences and comments, a dot for inline code."""
    return re.sub(r"`[^`\n]*`", "·", outside_fences(text))


@lru_cache(maxsize=4000)
def outside_maths(text):
    """Return a text without code and mathematics."""
    text = re.sub(r"(?s)\$\$.*?\$\$", "", outside_code(text))
    return re.sub(r"\$[^$\n]+\$", "", text)


def prose_lines(notebook):
    """Yield (cell, line) for each line that is prose, without code."""
    for cell in notebook.markdown:
        for line in outside_maths(cell.source).split("\n"):
            if line.strip() and not line.lstrip().startswith(("#", "|")):
                yield cell, line


def headings(notebook, level):
    """Yield (cell, text) for each heading of a level."""
    for cell in notebook.markdown:
        for line in outside_code(cell.source).split("\n"):
            if match := re.match(rf"#{{{level}}} (.+)", line):
                yield cell, match.group(1).strip()


def folded(cell):
    """Tell whether a cell is folded: a recap or a solution."""
    return "hide-input" in tags(cell)


@lru_cache(maxsize=2000)  # more than the book has cells
def parsed(source):
    """Return the syntax tree of a cell, which nobody may change."""
    return ast.parse(source)


@lru_cache(maxsize=20_000)
def walk(tree):
    """Return a tree's nodes, for a tree that nobody changes."""
    return tuple(ast.walk(tree))


def trees(notebook):
    """Yield (cell, syntax tree) for each code cell that can be parsed."""
    for cell in notebook.code:
        try:
            yield cell, parsed(cell.source)
        except SyntaxError:
            pass  # reported by cells_are_python


@lru_cache(maxsize=2000)
def subjects(text):
    """Return the words of a text that may be its subject, by their stems."""
    words = {*re.findall(r"[a-z]{3,}|\d[\d.]*\d", text.lower())} - COMMON
    words = {word.removesuffix("s") for word in words} - COMMON
    return {word[:5] for word in words}
