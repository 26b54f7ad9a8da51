"""Let equations and outputs that are wider than the page scroll.

The theme gives every part of the class below a scrollbar and, while it is too
wide for the page, a stop of the Tab key.
"""

from docutils import nodes

SCROLLS = "pst-scrollable-table-container"


def is_wide(node):
    return isinstance(node, nodes.math_block) or (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code_output"
    )


def let_scroll(app, doctree):
    for node in doctree.findall(is_wide):
        node["classes"].append(SCROLLS)


def setup(app):
    app.connect("doctree-read", let_scroll)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
