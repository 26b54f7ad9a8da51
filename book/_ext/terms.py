"""Give the terms of the page *Topics* to the search.

The first column of its tables has terms, with commas, semicolons and brackets
between them; the first link of the second column says where they are
explained. _static/terms.js has both, for search.js, and whether they stand in
the first table, which has the field's terms.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup

PAGE = "book/topics"
BETWEEN = re.compile(r"[,;()]|\band\b|\bor\b")


def collect(app, name, template, context, doctree):
    if name != PAGE:
        return
    found = []
    body = BeautifulSoup(context["body"], "html.parser")
    for place, table in enumerate(body.select("table")):
        for row in table.select("tr:has(td)"):
            terms = BETWEEN.split(row.td.get_text(" ", strip=True))
            link = row.select_one("td:nth-child(2) a")["href"]
            page, _, anchor = link.partition("#")
            page = f"book/{page.removesuffix('.html')}"
            terms = [term.strip() for term in terms]
            found.append([terms, page, anchor, place == 0])
    file = Path(app.outdir) / "_static" / "terms.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"const TERMS = {json.dumps(found)};\n", "utf-8")


def setup(app):
    app.connect("html-page-context", collect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
