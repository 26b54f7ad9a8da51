"""Say below each entry of the bibliography which sections link to it.

An entry is an item of a list on that page; its first link is its source. The
list at a chapter's end is named, by the chapter, if nothing else uses the
source.
"""

from docutils import nodes

PAGE = "book/bibliography"
READING = "Further reading"


def collect(app, doctree):
    """Note which sections of a page link to which addresses."""
    found = app.env.used_in.setdefault(app.env.docname, [])
    page = next(doctree.findall(nodes.title)).astext()
    for link in doctree.findall(nodes.reference):
        address = link.get("refuri", "")
        section = link.parent
        while section and not isinstance(section, nodes.section):
            section = section.parent
        if address.startswith("http") and section:
            title = section.next_node(nodes.title).astext()
            is_reading = title == READING
            place = section["ids"][0], page if is_reading else title
            found.append((address, is_reading, place))


def forget(app, env, docname):
    env.used_in.pop(docname, None)


def merge(app, env, docnames, other):
    env.used_in.update({name: other.used_in[name] for name in docnames})


def write_anew(app, env):
    return [PAGE] if PAGE in env.found_docs else []


def add(app, doctree, docname):
    """Add to each entry the links to the sections, in the book's order."""
    if docname != PAGE:
        return
    uses = {}
    for name in app.env.collect_relations():  # in the book's order
        for address, is_reading, place in app.env.used_in.get(name, ()):
            if name != PAGE:
                uses.setdefault(address, {})[name, *place] = is_reading
    for entry in doctree.findall(nodes.list_item):
        source = next(entry.findall(nodes.reference), None)
        places = uses.get(source["refuri"], {}) if source else {}
        others = [p for p, is_reading in places.items() if not is_reading]
        links = [link(app, *place) for place in others or places]
        if links:
            line = nodes.inline(classes=["used-in"])
            line += nodes.Text("Used in ")
            for separator, node in zip(
                ["", *[", "] * len(links)], links, strict=False
            ):
                line += [nodes.Text(separator), node]
            line += nodes.Text(".")
            entry[0] += [nodes.Text("\n"), line]


def link(app, name, anchor, title):
    """Return a link from the bibliography to a section."""
    address = app.builder.get_relative_uri(PAGE, name)
    return nodes.reference(
        "", title, internal=True, refuri=f"{address}#{anchor}"
    )


def prepare(app):
    if not hasattr(app.env, "used_in"):
        app.env.used_in = {}


def setup(app):
    app.connect("builder-inited", prepare)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", write_anew)
    app.connect("doctree-resolved", add)
    return {
        "parallel_read_safe": True,
        "parallel_write_safe": True,
        "env_version": 1,
    }
