"""Serve MathJax from the site itself.

The package sphinx-mathjax-offline carries all of MathJax 3. A page needs one
script, its fonts and, for rarer commands such as \\cancel, the TeX extensions.
"""

import shutil
from importlib.metadata import distribution
from pathlib import Path

from docutils import nodes

NEEDED = [
    "tex-chtml.js",
    "input/tex/extensions",
    "output/chtml/fonts/woff-v2",
]


def copy_mathjax(app):
    if app.builder.format != "html":
        return
    package = distribution("sphinx-mathjax-offline")
    source = Path(package.locate_file("sphinx-mathjax-offline/static/mathjax"))
    target = Path(app.outdir, "_static/mathjax")
    for name in NEEDED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target)


def keep_equations_whole(app, doctree):
    """Stop Sphinx from splitting equations with a line break.

    It would put them, be it the break of a matrix, into an environment where
    \\tag is an error.
    """
    for equation in doctree.findall(nodes.math_block):
        if not equation["nowrap"]:
            equation["nowrap"] = True
            equation[:] = [nodes.Text(rf"\[{equation.astext()}\]")]


def setup(app):
    # Before any page is written: Sphinx puts the script's checksum into it.
    app.connect("builder-inited", copy_mathjax)
    app.connect("doctree-read", keep_equations_whole)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
