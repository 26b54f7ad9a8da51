"""Show PyTorch and TensorFlow twins as one set of tabs.

Adjacent code cells tagged `pytorch`, followed at once by as many tagged
`tensorflow`, become a tab set of sphinx-design. Its script keeps the choice
over the whole book and reads it from the address: `?framework=tensorflow`.
"""

from itertools import groupby

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx_design.shared import create_component

LABELS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow"}


def framework(node):
    """Return the framework that a node is a code cell of, or None."""
    if getattr(node, "attributes", {}).get("nb_element") != "cell_code":
        return None
    tags = node["cell_metadata"].get("tags", [])
    return next((name for name in LABELS if name in tags), None)


def tab_item(name, cells):
    label = nodes.rubric("", LABELS[name], classes=["sd-tab-label"])
    label["sync_group"], label["sync_id"] = "framework", name
    content = create_component("tab-content", ["sd-tab-content"])
    content.extend(cells)
    item = create_component("tab-item", ["sd-tab-item"])
    item.extend([label, content])
    return item


class FrameworkTabs(SphinxTransform):
    # Late in the reading phase: the cells are complete, and the transforms
    # that fold code and choose outputs come later and see them in the tabs.
    default_priority = 500

    def apply(self):
        cells = filter(framework, list(self.document.findall()))
        for parent in dict.fromkeys(cell.parent for cell in cells):
            parent[:] = paired(parent.children)


def paired(siblings):
    """Return the siblings with each pair of runs in a tab set."""
    result, before = [], (None, [])
    for name, run in groupby(siblings, framework):
        cells = list(run)
        if (before[0], name) == (*LABELS,) and len(before[1]) == len(cells):
            tab_set = create_component("tab-set", ["sd-tab-set"])
            tab_set += [tab_item(*before), tab_item(name, cells)]
            result[-len(cells) :] = [tab_set]
        else:
            result += cells
        before = name, cells
    return result


def setup(app):
    app.add_transform(FrameworkTabs)
