"""The site's links to its repository are right, or are not there.

A book of two pages is built with the real settings in each state that the
address can be in.
"""

import io
import json
import re

import nbformat
import pytest
import yaml
from jupyter_book.config import get_final_config
from nbformat.v4 import new_markdown_cell, new_notebook
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from tools.settings import CONFIG, ROOT

COLAB = "https://colab.research.google.com/github/"
PLACEHOLDER = "OWNER/transformers-cell-by-cell"
STATES = {
    "placeholder": (PLACEHOLDER, None),
    "set": ("Some-Body/a.book_2", "Some-Body/a.book_2"),
}


@pytest.fixture(scope="module", params=STATES)
def built(request, tmp_path_factory):
    """Build a small book with the real settings, less those of the address.

    Returns the page of its chapter, what the build said, and the address,
    'owner/name' or None.
    """
    configured, slug = STATES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    pages = folder / "book"
    pages.mkdir()
    (pages / "index.md").write_text("# A book\n\nIts first page.\n")
    link = f"[Open in Colab]({COLAB}{configured}/blob/main/book/masks.ipynb)"
    other = f"[Another's]({COLAB}any/body/blob/main/x.ipynb)"
    words = f"# Masks\n\nHow is a word hidden?\n\n{link}\n\n{other}"
    node = new_notebook(cells=[new_markdown_cell(words)])
    nbformat.write(node, pages / "masks.ipynb")
    contents = {"root": "book/index", "entries": [{"file": "book/masks"}]}
    (folder / "_toc.yml").write_text(json.dumps(contents))
    settings = yaml.safe_load(CONFIG.read_text("utf-8"))
    settings["repository"]["url"] = f"https://github.com/{configured}"
    settings, _ = get_final_config(
        user_yaml=settings, cli_config={"latex_individualpages": False}
    )
    for name in ("autoapi_dirs", "html_static_path", "templates_path"):
        settings[name] = [str(ROOT / path) for path in settings[name]]
    settings["html_favicon"] = str(ROOT / settings["html_favicon"])
    out, said = folder / "out", io.StringIO()
    with docutils_namespace():
        places = (folder, None, out, folder / "trees")
        app = Sphinx(*places, "html", settings, said, warningiserror=True)
        app.build()
    page = (out / "book/masks.html").read_text("utf-8")
    return page, said.getvalue(), slug


def test_each_link_to_the_repository_leads_there_or_is_left_out(built):
    page, _, slug = built
    file, home = f"{slug}/blob/main/book/masks.ipynb", "https://github.com/"
    owner, _, name = (slug or "").partition("/")
    site = f"https://{owner.lower()}.github.io/{name}"
    buttons = {
        f"{home}{file}?plain=1",
        f"{home}{slug}",
        f"{home}{slug}/issues/new",
    }
    rest = {f"{site}/_static/card.png", f"{site}/book/masks.html"}
    rest.add(f"{COLAB}{slug}/blob/editions/pytorch/masks.ipynb")
    _, _, header = page.partition('class="article-header-buttons"')
    header, _, _ = header.partition("<article")
    for part, wanted in (
        (header, buttons),
        (page, buttons | rest),
    ):
        links = re.findall(r'(?:href|content)="(https://[^"]*)"', part)
        found = {
            link.partition("?title")[0]
            for link in links
            if "github" in link and "any/body" not in link
        }
        assert found == (wanted if slug else set())


def test_the_placeholder_stands_nowhere_and_the_command_is_named(built):
    page, said, slug = built
    assert "OWNER" not in page
    assert page.count(">Open in Colab<") == (1 if slug else 0)
    # What has nothing to do with the address stays.
    for part in ("any/body", 'property="og:title"', "How is a word hidden?"):
        assert part in page
    told = "run: make repository SLUG=owner/name"
    assert said.count(told) == (0 if slug else 1)
