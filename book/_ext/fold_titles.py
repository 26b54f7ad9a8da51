"""Give a folded cell the title that it has in Colab.

A cell tagged `hide-input` whose first line is `# @title Solution` unfolds at
a click on "Solution" rather than on "Show code cell source". A check of the
book, outside of the exercises, is a small mark at what it proves.
"""

import re

from docutils import nodes

MARK = "# @title "
CHECK = "Check: "
TWIN = re.compile(r" \((PyTorch|TensorFlow)\)$")  # the tab says so


def is_folded(node):
    return isinstance(node, nodes.container) and "hide_mode" in node


def is_exercise(node):
    while node := node.parent:
        if "exercises" in node.get("ids", []):
            return True
    return False


def name_folds(app, doctree):
    for cell in doctree.findall(is_folded):
        first_line = cell.astext().strip().partition("\n")[0]
        if first_line.startswith(MARK):
            title = TWIN.sub("", first_line.removeprefix(MARK))
            if title.startswith(CHECK) and not is_exercise(cell):
                title = f"✓ checked: {title.removeprefix(CHECK)}"
                cell["classes"].append("checked")
            cell["prompt_show"] = cell["prompt_hide"] = title


def setup(app):
    app.connect("doctree-read", name_folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
