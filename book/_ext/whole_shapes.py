"""Keep a shape such as (B, T, S) on one line, in code and in tables."""

import re

from docutils import nodes

SHAPE = re.compile(r"\((?:\.{3}|…|\w)(?:, (?:\.{3}|…|\w))+\)")
UNBROKEN = "shape"


def keep_whole(app, doctree):
    for literal in doctree.findall(nodes.literal):
        if SHAPE.fullmatch(literal.astext()):
            literal["classes"].append(UNBROKEN)
    for entry in doctree.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.literal | nodes.math):
                text.parent.replace(text, list(parts(text)))


def parts(text):
    """Yield the parts of a text; its shapes are elements of their own."""
    end = 0
    for match in SHAPE.finditer(text):
        yield nodes.Text(text[end : match.start()])
        yield nodes.inline("", match.group(), classes=[UNBROKEN])
        end = match.end()
    yield nodes.Text(text[end:])


def setup(app):
    app.connect("doctree-read", keep_whole)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
