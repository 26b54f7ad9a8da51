"""Say which chapter of how many this is, how long it takes, what comes next.

Below a chapter's title stand its number, the minutes of its first reading and
its exercises; the bar of a narrow window has number and title, and contents.js
adds the section. The bar also has the choice between two readings, where a
page has something to fold.
"""

import json
from html import escape

from docutils import nodes

from tools.markdown import headings
from tools.notebooks import Notebook
from tools.rules.exercises import EXERCISE
from tools.rules.reading import minutes
from tools.settings import ROOT, chapters, pages, table


def facts(name):
    """Return how many minutes a chapter takes, and its exercises."""
    notebook = Notebook.read(ROOT / f"{name}.ipynb")
    exercises = sum(
        bool(EXERCISE.fullmatch(title))
        for cell in notebook.markdown
        for _, title in headings(cell.source)
    )
    return 5 * round(minutes(notebook) / 5), exercises


def roads():
    """Return the parts of the book, with the minutes of their chapters."""
    return [
        [
            part["caption"],
            [[f"{name[5:]}.html", facts(name)[0]] for name in pages([part])],
        ]
        for part in table()["parts"][:-1]
    ]


def add_facts(app, doctree):
    name, names = app.env.docname, chapters()
    if name in names:
        number = f"Chapter {names.index(name) + 1} of {len(names)}"
        time, exercises = facts(name)
        said = f"{number} · about {time} minutes · {exercises} exercises"
        text = f'<p class="facts">{said}</p>'
        section = doctree.next_node(nodes.section)
        section.insert(1, nodes.raw("", text, format="html"))


def add_place(app, name, template, context, doctree):
    numbers = {page: n for n, page in enumerate(chapters(), 1)}
    body = context.get("body", "")
    context["has_readings"] = 'class="side-road"' in body
    if name in numbers:
        context["place"] = numbers[name], context["title"]
    if name == app.config.root_doc:
        # For progress.js, which tells what is left.
        value = escape(json.dumps(roads()))
        context["body"] += f'<data id="roads" hidden value="{value}"></data>'
    relations = app.env.collect_relations().get(name, [None, None, None])
    for key, page in zip(("prev", "next"), relations[1:], strict=True):
        if page in numbers and context.get(key):
            title = context[key]["title"]
            context[f"{key}_title"] = f"{numbers[page]} {title}"


def setup(app):
    # Behind folds.py, which looks at the first section's children.
    app.connect("doctree-read", add_facts, priority=950)
    app.connect("html-page-context", add_place)
