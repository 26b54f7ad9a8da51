"""Let equations and outputs that are wider than the page scroll.

The theme gives every part of the class below a scrollbar and, while it is too
wide for the page, a stop of the Tab key. Names in the code of a table may
break between their words.
"""

import re

from docutils import nodes

SCROLLS = "pst-scrollable-table-container"

CELL = re.compile("<td.*?</td>", re.S)
CODE = re.compile('(?<=<span class="pre">)[^<]+')
BETWEEN_WORDS = re.compile(r"(?<=\w[._(=])(?=[A-Za-z_])|(?<=[a-z])(?=[A-Z])")


def is_wide(node):
    return isinstance(node, nodes.math_block) or (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code_output"
    )


def let_scroll(app, doctree):
    for node in doctree.findall(is_wide):
        node["classes"].append(SCROLLS)


def let_break(app, name, template, context, doctree):
    if "body" in context:
        context["body"] = CELL.sub(
            lambda cell: CODE.sub(
                lambda code: BETWEEN_WORDS.sub("<wbr/>", code[0]), cell[0]
            ),
            context["body"],
        )


def setup(app):
    app.connect("html-page-context", let_break)
    app.connect("doctree-read", let_scroll)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
