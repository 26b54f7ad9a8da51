"""Links: bibliography.md lists what leaves the book.

That the others lead somewhere is tested by the build of the site.
"""

from tools.markdown import links
from tools.rules.common import rule
from tools.run.claims import sources
from tools.settings import colab_link, slug


@rule
def links_are_listed(notebook):
    own = colab_link(notebook.path)
    for cell in notebook.markdown:
        for text, target in links(cell.source):
            if "://" in target and target not in sources() | {own}:
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"{target}, which book/bibliography.md does not list. "
                    "List it there, or correct the link."
                )


@rule
def colab_link_is_the_repository_s(notebook):
    link = colab_link(notebook.path)
    if f"[Open in Colab]({link})" not in notebook.cells[0].source:
        yield (
            f"{notebook.name(notebook.cells[0])}: does not link [Open in "
            f"Colab]({link}). Run: make repository SLUG={slug()}"
        )
