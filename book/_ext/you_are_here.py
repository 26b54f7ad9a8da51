"""Show where a chapter's model of names stands on the line of all of them.

Where a chapter whose model is a point of the line trains it, it gets the line,
its point marked; and the five names that this model writes, if it has no table
of them.
"""

from pathlib import Path

from docutils import nodes

from cellbycell.ribbon import points, ribbon

NAMES = (
    '<p class="five">From <em>b, k, m, n, s</em>, after {steps} steps: '
    "<em>{names}</em>.</p>\n"
)


def put_line(app, doctree):
    chapter = Path(app.env.docname).name
    mine = [p for p in points() if p["chapter"] == chapter and p["steps"]]
    for section in doctree.findall(nodes.section):
        has_table = "in-the-two-models" in section["ids"]
        if mine and (has_table or "what-it-learns" in section["ids"]):
            html = ribbon(chapter)
            for point in () if has_table else mine:
                names = ", ".join(point["names"])
                html += NAMES.format(steps=point["steps"], names=names)
            section.insert(1, nodes.raw("", html, format="html"))


def setup(app):
    app.connect("doctree-read", put_line)
