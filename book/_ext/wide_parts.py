"""Let equations and outputs that are wider than the page scroll.

The theme gives every part of the class below a scrollbar and, while it is too
wide for the page, a stop of the Tab key.

Each line of code is a part of its own, and so is a comment at its end, which
is often a shape: on a phone custom.css breaks the line, and puts the comment
above it. A table of text, which begins with a long space, is left to scroll.
"""

import re

from docutils import nodes

SCROLLS = "pst-scrollable-table-container"
PRE = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.S)
COLUMNS = 12  # spaces before the heads of a table
MARK = re.compile(r"<span[^>]*>|</span>")
COMMENTED = re.compile(r"(.*?)(<span class=\"c1\">#.*</span>)$")


def is_wide(node):
    return isinstance(node, nodes.math_block) or (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code_output"
    )


def let_scroll(app, doctree):
    for node in doctree.findall(is_wide):
        node["classes"].append(SCROLLS)


def part_lines(app, name, template, context, doctree):
    if "body" in context:
        context["body"] = PRE.sub(
            lambda code: "\n".join(lines(code[0])), context["body"]
        )


def lines(code):
    """Yield each line of code as a part, also of a text of several lines."""
    text = MARK.sub("", code)
    if len(text) - len(text.lstrip(" ")) >= COLUMNS:
        yield f'<span class="columns"></span>{code.rstrip()}'
        return
    begun = []  # the marks that a line above has begun
    for line in code.rstrip().split("\n"):
        whole = "".join(begun) + line
        for mark in MARK.findall(line):
            begun = begun[:-1] if mark == "</span>" else [*begun, mark]
        yield parted(whole + "</span>" * len(begun))


def parted(line):
    """Return a line of code, its comment apart where something precedes it."""
    text = MARK.sub("", line)
    indent = len(text) - len(text.lstrip(" "))
    style = f' style="--indent: {indent}ch"' if indent else ""
    if found := COMMENTED.fullmatch(line):
        code, comment = found.groups()
        if MARK.sub("", code).strip():
            line = f"<span>{code}</span>{comment}"
    return f'<span class="line"{style}>{line}</span>' if text else ""


def setup(app):
    app.connect("doctree-read", let_scroll)
    # Behind lean_pages.py, which leaves out the marks of spaces.
    app.connect("html-page-context", part_lines, priority=950)
