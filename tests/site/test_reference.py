"""The reference page lists the package, and leads to where it is built."""

import ast
from functools import cache

import pytest
from bs4 import BeautifulSoup

from tools.notebooks import Notebook, tags
from tools.settings import HTML, ROOT, chapters


@cache
def places(page):
    """Map the ids of a page to its elements."""
    text = (HTML / "book" / page).read_text("utf-8")
    article = BeautifulSoup(text, "html.parser").select_one("article")
    return {part["id"]: part for part in article.find_all(id=True)}


@cache
def headings():
    """Map each exported name to its chapter's page and its section."""
    found = {}
    for name in chapters():
        notebook, heading = Notebook.read(ROOT / f"{name}.ipynb"), ""
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                lines = cell.source.split("\n")
                above = [line for line in lines if line.startswith("#")]
                heading = (above or [heading])[-1].replace("`", "")
            elif "export" in tags(cell):
                for node in ast.parse(cell.source).body:
                    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                        page = f"{notebook.path.stem}.html"
                        found[node.name] = page, heading.strip("# ")
    return found


@pytest.mark.parametrize("part", ["pytorch", "tensorflow", "common"])
def test_each_name_is_there_with_its_docstring_and_its_section(part):
    module = ROOT / "cellbycell" / part / "__init__.py"
    names = ast.literal_eval(
        ast.parse(module.read_text("utf-8")).body[-1].value
    )
    assert names
    for name in names:
        signature = places("reference.html").get(f"cellbycell.{part}.{name}")
        assert signature, f"reference.md does not list {name}"
        said, *_, built_in = signature.find_next("dd").find_all(
            "p", recursive=False
        )
        assert said.text[0].isupper(), name
        page, anchor = built_in.a["href"].split("#")
        heading = places(page)[anchor].find(["h2", "h3"]).text.rstrip("#")
        assert (page, heading) == headings()[name], name
