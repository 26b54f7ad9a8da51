"""Leave in an alt text what is read, without the claims behind its numbers.

`4<!--= d_model -->` is checked when the book is tested; in a paragraph the
comment is not shown, in an attribute it would be read aloud.
"""

import re

from docutils import nodes


def read_aloud(app, doctree):
    for image in doctree.findall(nodes.image):
        image["alt"] = re.sub(r"<!--.*?-->", "", image.get("alt", ""))


def setup(app):
    app.connect("doctree-read", read_aloud)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
