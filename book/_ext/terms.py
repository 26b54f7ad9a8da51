"""Give the terms of the page *Topics* to the search.

The first column of its tables has terms, with commas, semicolons and brackets
between them; the first link of the second column says where they are
explained. search.html hands both to search.js.
"""

import re
from pathlib import Path

PAGE = "book/topics"
ROW = re.compile(r"(?m)^\| (.*?) \| .*?\]\((\w+)\.(?:ipynb|md)#?([\w-]*)\)")
BETWEEN = re.compile(r" *(?:[,;()]|\band\b|\bor\b) *")


def hand_over(app, name, template, context, doctree):
    if name == "search":
        has_page = PAGE in app.env.found_docs
        path = Path(app.env.doc2path(PAGE))
        text = path.read_text("utf-8") if has_page else ""
        context["terms"] = [
            [term, f"book/{page}", anchor]
            for cell, page, anchor in ROW.findall(text)
            for term in BETWEEN.split(cell.replace("`", ""))
            if term
        ]


def setup(app):
    app.connect("html-page-context", hand_over)
