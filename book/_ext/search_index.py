"""Write what the search searches: each section, with its words.

`_static/sections.js` has the pages, and a line for each section and each entry
of the reference: the number of its page, anchor, title, terms, text, names in
its code. It is a script, as a page that was opened as a file may read no data.
To keep it small, pages about the book have their headings alone, as have each
chapter's setup, notation and exercises, and an entry has its first paragraph.

The terms are those of the page *Topics*, whose second column leads to where
they are explained, above all by its first link, and the lines that begin
*Symptoms*.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from .backlinks import pages, title

TOPICS, SYMPTOMS = "book/topics", "book/symptoms"
ABOUT = {
    f"book/{n}" for n in "bibliography index operate teach versions".split()
}
USUAL = re.compile("Setup$|Notation$|Exercise ")  # of a chapter
ROW = re.compile(r"(?m)^\| (.*?) \| (.*) \|$")
SEEN = re.compile(r"(?m)^ *- \[(.*?)\]\(#([\w-]+)\)$")
LINK = re.compile(r"\]\((\w+)\.(?:ipynb|md)#?([\w-]*)\)")
# Of code: what is called or set, not the variables.
NAME = re.compile(r"(?<=\.)[A-Za-z]\w{2,}|\b[a-z]\w{3,}(?==)")
# Sections of their own, and what nobody searches for.
LEFT_OUT = nodes.section, addnodes.desc, nodes.title, nodes.raw, nodes.comment
LEFT_OUT += nodes.math, nodes.math_block
SILENT = {"cell_output", "sd-tab-label"}


def all_terms(app):
    """Return (page, anchor) -> the terms explained there, and touched on."""
    found = {}

    def add(page, anchor, text, kind):
        found.setdefault((page, anchor), ([], []))[kind].append(text)

    for said, places in ROW.findall(source(app, TOPICS).replace("`", "")):
        for n, (page, anchor) in enumerate(LINK.findall(places)):
            add(f"book/{page}", anchor, said, n > 0)
    for said, anchor in SEEN.findall(source(app, SYMPTOMS)):
        add(SYMPTOMS, anchor, said, 0)
    return found


def source(app, page):
    is_there = page in app.env.found_docs
    return Path(app.env.doc2path(page)).read_text("utf-8") if is_there else ""


def read(node, code):
    """Return the text of a node, and add the names in its code to a dict."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, LEFT_OUT) or SILENT & {*node.get("classes", [])}:
        return ""
    if isinstance(node, nodes.literal_block):
        code.update(dict.fromkeys(NAME.findall(node.astext())))
        return ""
    end = "" if isinstance(node, nodes.Inline) else " "
    return "".join(read(child, code) for child in node.children) + end


def line(page, anchor, name, terms, parts):
    code = {}
    text = " ".join("".join(read(part, code) for part in parts).split())
    names = [name for name in code if name not in text]
    first, others = ("; ".join(some) for some in terms)
    return [page, anchor, name, first, others, text, " ".join(names)]


def write(app, error):
    if error or app.builder.format != "html":
        return
    terms, titles, lines = all_terms(app), [], []
    for number, (page, tree) in enumerate(pages(app)):
        titles.append([page, title(tree)])
        for section in tree.findall(nodes.section):
            if page == TOPICS and section.parent is not tree:
                continue
            is_page = section.parent is tree
            anchor = "" if is_page else section["ids"][0]
            slug = "" if is_page else section.get("slug", anchor)
            here = terms.get((page, slug), ([], []))
            is_list = page in ABOUT or (is_page and page == SYMPTOMS)
            is_list = is_list or USUAL.match(title(section))
            parts = [] if is_list else section.children
            lines.append(line(number, anchor, title(section), here, parts))
        for entry in tree.findall(addnodes.desc):
            if ids := entry[0]["ids"]:
                name, parts = entry[0]["fullname"], entry[-1].children[:1]
                lines.append(line(number, ids[0], name, ([], []), parts))
    text = f"const PAGES = {dump(titles)};\nconst SECTIONS = {dump(lines)};\n"
    path = Path(app.outdir) / "_static" / "sections.js"
    path.write_text(text, "utf-8")


def dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def setup(app):
    app.connect("build-finished", write)
