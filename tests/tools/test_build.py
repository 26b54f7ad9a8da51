"""What the book's own extensions refuse, in a build of one small page."""

import io
import re

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

SETTINGS = {
    "extensions": ["myst_nb", "book._ext.native_math"],
    "html_math_renderer": "native",
    "html_theme": "sphinx_book_theme",
    "myst_enable_extensions": ["dollarmath"],
}


def test_tex_that_cannot_be_set_is_named(tmp_path):
    words = "# A\n\n$x$, $\\worng{x}$ and $\\sqrt{\\frac{x}{2}}$\n"
    (tmp_path / "index.md").write_text(words)
    places = tmp_path, None, tmp_path / "out", tmp_path / "trees"
    said = io.StringIO()
    with docutils_namespace():
        Sphinx(*places, "html", SETTINGS, None, said).build()
    wrong, high = re.findall("WARNING: (.*)", said.getvalue())
    assert r"\worng{x}" in wrong and "Correct it" in wrong
    assert r"\sqrt{\frac{x}{2}}" in high and "x^{1/2}" in high
    assert "<mi>x</mi>" in (tmp_path / "out/index.html").read_text("utf-8")
