"""Say which chapter of how many this is, how long it takes, what comes next.

Below a chapter's title stand its number, the minutes of its first reading and
its exercises; the bar of a narrow window has number and title, and contents.js
adds the section. The bar also has the choice between two readings, where a
page has something to fold.
"""

from docutils import nodes

from tools.markdown import headings
from tools.notebooks import Notebook
from tools.rules.exercises import EXERCISE
from tools.rules.reading import minutes
from tools.settings import ROOT, chapters


def facts(name):
    """Return how long a chapter takes, and how many exercises it has."""
    notebook = Notebook.read(ROOT / f"{name}.ipynb")
    exercises = sum(
        bool(EXERCISE.fullmatch(title))
        for cell in notebook.markdown
        for _, title in headings(cell.source)
    )
    time = 5 * round(minutes(notebook) / 5)
    return f"about {time} minutes · {exercises} exercises"


def add_facts(app, doctree):
    name, names = app.env.docname, chapters()
    if name in names:
        number = f"Chapter {names.index(name) + 1} of {len(names)}"
        text = f'<p class="facts">{number} · {facts(name)}</p>'
        section = doctree.next_node(nodes.section)
        section.insert(1, nodes.raw("", text, format="html"))


def add_place(app, name, template, context, doctree):
    numbers = {page: n for n, page in enumerate(chapters(), 1)}
    context["has_readings"] = "side-road" in context.get("body", "")
    if name in numbers:
        context["place"] = numbers[name], context["title"]
    relations = app.env.collect_relations().get(name, [None, None, None])
    for key, page in zip(("prev", "next"), relations[1:], strict=True):
        if page in numbers and context.get(key):
            title = context[key]["title"]
            context[f"{key}_title"] = f"{numbers[page]} {title}"


def setup(app):
    # Behind folds.py, which looks at the first section's children.
    app.connect("doctree-read", add_facts, priority=950)
    app.connect("html-page-context", add_place)
