"""Let the search, and the index, put the place first that defines a term.

A term stands in bold where a chapter explains it. Bold text that ends like a
sentence, such as "Note.", is no term.
"""

import pickle
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import ENV_PICKLE_FILENAME
from sphinx.transforms import SphinxTransform


class IndexDefinitions(SphinxTransform):
    # Late in the reading phase, yet before Sphinx collects the index.
    default_priority = 500

    def apply(self):
        path = self.env.doc2path(self.env.docname)
        if not path.endswith((".ipynb", "notation.md")):
            return
        for bold in list(self.document.findall(nodes.strong)):
            term, paragraph = bold.astext(), bold.parent
            anchor = nodes.make_id(f"term-{term}")
            if (
                not term.endswith(".")
                and isinstance(paragraph, nodes.paragraph)
                and anchor not in self.document.ids
            ):
                self.document.ids[anchor] = paragraph
                paragraph["ids"].append(anchor)
                entry = ("single", term, anchor, "main", None)
                paragraph.insert(0, addnodes.index(entries=[entry]))


def keep_index(app, exception):
    """Store the environment once more, now that the search index is in it.

    Sphinx stores it before it writes pages. A build of one changed page would
    forget the definitions of all others.
    """
    if not exception:
        path = Path(app.doctreedir) / ENV_PICKLE_FILENAME
        path.write_bytes(pickle.dumps(app.env, pickle.HIGHEST_PROTOCOL))


def setup(app):
    app.add_transform(IndexDefinitions)
    app.connect("build-finished", keep_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
