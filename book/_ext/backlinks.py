"""Say where the book has what two kinds of pages list.

On those of the package: the section that builds a name, which is the one with
the cell, tagged `export`, that defines it. In the bibliography: the sections
that link to a source; the list at a chapter's end is named, by the chapter, if
no other has the link.
"""

import ast
import re

from docutils import nodes
from sphinx import addnodes

REFERENCE, BIBLIOGRAPHY = "book/reference", "book/bibliography"
READING = "Further reading"
# What a docstring says on lines of its own.
LINES = re.compile(r"\n(?=Raises |Sources?: )")


def read_anew(app, env, *changes):
    """Read these pages in each build: what they lead to may be new."""
    return {
        p for p in env.found_docs if p.startswith((REFERENCE, BIBLIOGRAPHY))
    }


def add(app, doctree, page):
    if page.startswith(REFERENCE):
        add_builders(app, doctree, page)
    elif page == BIBLIOGRAPHY:
        add_uses(app, doctree)


def pages(app):
    """Yield (name, doctree) of the book's pages, in its order."""
    for name in app.env.collect_relations():
        yield name, app.env.get_doctree(name)


def section_of(node):
    while node and not isinstance(node, nodes.section):
        node = node.parent
    return node


def title(node):
    return node.next_node(nodes.title).astext()


def link(app, here, page, section, text):
    """Return a link from a page to a section of another."""
    address = app.builder.get_relative_uri(here, page)
    address = f"{address}#{section['ids'][0]}"
    return nodes.reference("", text, internal=True, refuri=address)


# The reference


def skip(app, what, name, member, is_skipped, options):
    """Leave out attributes, which have no docstrings."""
    return is_skipped or member.type == "attribute"


def add_builders(app, doctree, here):
    built = {}
    for page, tree in pages(app):
        for cell in tree.findall(nodes.container):
            if "tag_export" in cell["classes"]:
                for node in ast.parse(cell[0].astext()).body:
                    if isinstance(node, ast.FunctionDef | ast.ClassDef):
                        built[node.name] = page, title(tree), section_of(cell)
    for entry in doctree.findall(addnodes.desc):
        said = [n for n in entry[-1] if isinstance(n, nodes.paragraph)]
        for paragraph in said:
            lines = LINES.split(paragraph.astext())
            if len(lines) > 1:
                paragraph.replace_self([nodes.paragraph("", x) for x in lines])
        if place := built.get(entry[0]["fullname"]):
            page, chapter, section = place
            text = f"{chapter}: {title(section)}"
            line = nodes.paragraph("", "Built in ", classes=["built-in"])
            line += [
                link(app, here, page, section, text),
                nodes.Text("."),
            ]
            below = entry[-1].first_child_matching_class(addnodes.index)
            entry[-1].insert(len(entry[-1]) if below is None else below, line)


# The bibliography


def add_uses(app, doctree):
    uses = {}  # address -> anchor -> (is it further reading, its link)
    for page, tree in pages(app):
        for source in tree.findall(nodes.reference):
            address, section = source.get("refuri", ""), section_of(source)
            if page != BIBLIOGRAPHY and address.startswith("http") and section:
                name = title(section)
                text = title(tree) if name == READING else name
                place = link(app, BIBLIOGRAPHY, page, section, text)
                found = uses.setdefault(address, {})
                found[place["refuri"]] = name == READING, place
    for entry in doctree.findall(nodes.list_item):
        source = next(entry.findall(nodes.reference), None)
        places = [*uses.get(source and source["refuri"], {}).values()]
        others = [place for is_reading, place in places if not is_reading]
        links = others or [place for _, place in places]
        if links:
            line = nodes.inline("", "Used in ", classes=["used-in"])
            for place in links:
                line += [place, nodes.Text(", ")]
            line[-1] = nodes.Text(".")
            entry[0] += [nodes.Text("\n"), line]


def setup(app):
    app.connect("autodoc-skip-member", skip)
    app.connect("env-get-outdated", read_anew)
    app.connect("doctree-resolved", add)
