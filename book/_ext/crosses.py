"""Show a printed table of crosses as cells that fit a phone.

Such a table says which check catches what: each row has a name, and each of
its cells is a cross (x) or a sign that there is none (. or -).
"""

import re
from html import escape

from docutils import nodes

ROW = re.compile(r"(.*?)((?:\s+[x.-])+)")


def table(text):
    """Return a printed table as HTML, or None if it is not one of crosses."""
    head, *lines = text.rstrip().split("\n")
    rows = [ROW.fullmatch(line.rstrip()) for line in lines]
    if not rows or not all(rows) or "x" not in "".join(r[2] for r in rows):
        return None
    # Each column ends where its crosses stand.
    ends = [at.end() for at in re.finditer(r"\S", rows[0][2])]
    ends = [len(rows[0][1]) + end for end in ends]
    starts = [len(rows[0][1]), *ends]
    heads = [head[a:b].strip() for a, b in zip(starts, ends, strict=False)]
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(map(row_of, rows))
    return (
        f'<table class="crosses"><thead><tr><td></td>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def row_of(row):
    cells = "".join(
        '<td class="cross">x</td>' if sign == "x" else f"<td>{sign}</td>"
        for sign in row[2].split()
    )
    return f'<tr><th scope="row">{escape(row[1].strip())}</th>{cells}</tr>'


def show(app, doctree):
    for block in list(doctree.findall(nodes.literal_block)):
        if "output" in block["classes"] and (found := table(block.astext())):
            block.replace_self(nodes.raw("", found, format="html"))


def setup(app):
    app.connect("doctree-read", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
