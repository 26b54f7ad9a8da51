"""Give a folded cell the title that it has in Colab.

A cell tagged `hide-input` whose first line is `# @title Solution` unfolds at
a click on "Solution" rather than on "Show code cell source".
"""

from docutils import nodes

MARK = "# @title "


def is_folded(node):
    return isinstance(node, nodes.container) and "hide_mode" in node


def name_folds(app, doctree):
    for cell in doctree.findall(is_folded):
        first_line = cell.astext().strip().partition("\n")[0]
        if first_line.startswith(MARK):
            title = first_line.removeprefix(MARK)
            cell["prompt_show"] = cell["prompt_hide"] = title


def setup(app):
    app.connect("doctree-read", name_folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
