"""Say on the reference page which section builds each name of the package.

That is the section with the cell, tagged `export`, that defines the name.
sphinx-autoapi writes the page's entries from the docstrings.
"""

import ast
import re

from docutils import nodes
from sphinx import addnodes

PAGE = "book/reference"
# What a docstring says on lines of its own.
LINES = re.compile(r"\n(?=Raises |Sources?: )")


def skip(app, what, name, member, is_skipped, options):
    """Leave out attributes, which have no docstrings."""
    return is_skipped or member.type == "attribute"


def read_anew(app, env, *changes):
    """Read the page in each build: the package or a chapter may be new."""
    return [PAGE] if PAGE in env.found_docs else []


def add(app, doctree, docname):
    """Add to each entry the link to the section."""
    if docname != PAGE:
        return
    built = {}
    for name in app.env.collect_relations():
        built |= places(name, app.env.get_doctree(name))
    for entry in doctree.findall(addnodes.desc):
        said = [n for n in entry[-1] if isinstance(n, nodes.paragraph)]
        for paragraph in said:
            lines = LINES.split(paragraph.astext())
            if len(lines) > 1:
                paragraph.replace_self([nodes.paragraph("", x) for x in lines])
        if place := built.get(entry[0]["fullname"]):
            line = nodes.paragraph("", "Built in ", classes=["built-in"])
            line += [link(app, *place), nodes.Text(".")]
            below = entry[-1].first_child_matching_class(addnodes.index)
            entry[-1].insert(len(entry[-1]) if below is None else below, line)


def places(page, doctree):
    """Map each name that a page's cells export to where it is built."""
    found = {}
    for cell in doctree.findall(nodes.container):
        if "tag_export" in cell["classes"]:
            section = cell.parent
            while not isinstance(section, nodes.section):
                section = section.parent
            # Several, where side_roads.py has joined cells.
            code = "\n".join(block.astext() for block in cell[0].children)
            for node in ast.parse(code).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    found[node.name] = page, section["ids"][0], title(section)
    return found


def title(section):
    return section.next_node(nodes.title).astext()


def link(app, page, anchor, name):
    """Return a link from the reference page to a section."""
    address = app.builder.get_relative_uri(PAGE, page)
    chapter = app.env.titles[page].astext()
    return nodes.reference(
        "",
        f"{chapter}: {name}",
        internal=True,
        refuri=f"{address}#{anchor}",
    )


def setup(app):
    app.connect("autodoc-skip-member", skip)
    app.connect("env-get-outdated", read_anew)
    app.connect("doctree-resolved", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
