"""Show PyTorch and TensorFlow twins as one set of tabs.

Adjacent code cells tagged `pytorch`, followed at once by as many tagged
`tensorflow`, become a tab set of sphinx-design. Its script keeps the choice
over the whole book and reads it from the address: `?framework=tensorflow`.
"""

from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx_design.shared import create_component

LABELS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow"}
logger = logging.getLogger(__name__)


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
        cells = list(filter(framework, self.document.findall()))
        source = Path(self.env.doc2path(self.env.docname))
        if not cells and '"pytorch"' in source.read_text("utf-8"):
            logger.warning(
                "no cell tagged 'pytorch' is found, and there are some: "
                "MyST-NB now marks cells in another way. Mend framework_tabs.",
                location=self.env.docname,
            )
        for parent in dict.fromkeys(cell.parent for cell in cells):
            parent[:] = self.paired(parent.children)

    def paired(self, siblings):
        """Return the siblings with each pair of runs in a tab set."""
        runs = [
            (name, list(run)) for name, run in groupby(siblings, framework)
        ]
        result = []
        while runs:
            name, cells = runs.pop(0)
            after, twins = runs[0] if runs else (None, [])
            is_pair = (name, after) == ("pytorch", "tensorflow")
            if is_pair and len(cells) == len(twins):
                del runs[0]
                tab_set = create_component("tab-set", ["sd-tab-set"])
                tab_set += [tab_item(name, cells), tab_item(after, twins)]
                cells = [tab_set]
            elif name:
                self.warn(name, cells[0])
            result += cells
        return result

    def warn(self, name, cell):
        needed = {
            "pytorch": "followed directly by as many tagged 'tensorflow'",
            "tensorflow": "preceded directly by as many tagged 'pytorch'",
        }
        logger.warning(
            "cell %d (%s): a cell tagged '%s' must be %s.",
            cell["cell_index"] + 1,
            cell.astext().strip().partition("\n")[0],
            name,
            needed[name],
            location=self.env.docname,
        )


def setup(app):
    app.add_transform(FrameworkTabs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
