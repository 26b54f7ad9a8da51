"""Keep published addresses working when a heading gets another name.

A line of moved.txt says where a place is now: `book/masks#old new`. The place
gets the old anchor as well, so that a link to it leads there without scripts.
"""

from pathlib import Path

from sphinx.util import logging

TABLE = Path(__file__).with_name("moved.txt")
logger = logging.getLogger(__name__)


def moves():
    """Yield (page, old anchor, new anchor) of each line of the table."""
    for line in TABLE.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("# "):
            address, new = line.split()
            page, _, old = address.partition("#")
            yield page, old, new


def check_pages(app, env, names):
    for page, old, _ in moves():
        if page not in env.found_docs:
            logger.warning("moved.txt: there is no page %s (#%s).", page, old)


def add_anchors(app, doctree):
    page = app.env.docname
    for place, old, new in moves():
        if place == page:
            found = [n for n in doctree.findall() if new in ids(n)]
            if not found or any(old in ids(n) for n in doctree.findall()):
                fault = f"already has #{old}" if found else f"has no #{new}"
                logger.warning("moved.txt: %s %s.", page, fault, location=page)
            else:
                found[0]["ids"].append(old)


def ids(node):
    return getattr(node, "attributes", {}).get("ids", [])


def setup(app):
    app.connect("env-before-read-docs", check_pages)
    # Before side_roads.py folds what the places stand in.
    app.connect("doctree-read", add_anchors, priority=850)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
