"""Let equations and outputs that are wider than the page scroll.

The theme gives every part of the class below a scrollbar and, while it is too
wide for the page, a stop of the Tab key.

A comment at the end of a line of code, which is often a shape, and the line
are parts of their own: custom.css puts the comment above the line on a phone.
"""

import re

from docutils import nodes

SCROLLS = "pst-scrollable-table-container"
PRE = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.S)
COMMENTED = re.compile(r'(?m)^( *)(\S.*)(<span class="c1">#.*</span>)$')


def is_wide(node):
    return isinstance(node, nodes.math_block) or (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code_output"
    )


def let_scroll(app, doctree):
    for node in doctree.findall(is_wide):
        node["classes"].append(SCROLLS)


def part_comments(app, name, template, context, doctree):
    if "body" in context:
        context["body"] = PRE.sub(
            lambda code: COMMENTED.sub(parted, code[0]), context["body"]
        )


def parted(line):
    """Return a line of code and its comment as two parts of one."""
    indent, code, comment = line.groups()
    if code.count("<span") != code.count("</span>"):
        return line[0]  # it ends what began on a line above
    style = f' style="--indent: {len(indent)}ch"' if indent else ""
    code = f"<span>{indent}{code}</span>"
    return f'<span class="line"{style}>{code}{comment}</span>'


def setup(app):
    app.connect("doctree-read", let_scroll)
    # Behind lean_pages.py, which leaves out the marks of spaces.
    app.connect("html-page-context", part_comments, priority=950)
