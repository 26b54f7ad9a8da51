"""The pages around the chapters, held to what the chapters say."""

import re

from tools.markdown import LINK, anchor, sections
from tools.rules.tables import strangers
from tools.run.tables import rows_with


def unknown_names(page, notebooks):
    """Yield a message for each name of notation.md that no code has."""
    for cell in page.markdown:
        for row in rows_with(cell.source, "in code", "in formulas"):
            for fault in strangers(row, notebooks):
                yield f"{page.name(cell)}: {fault}"


def checks_elsewhere(symptoms, notebooks):
    """Yield a message for each check that its symptom's links do not lead to.

    symptoms: the page's Markdown, where `- [...](masks.ipynb#section)` is
    followed by `Check:` and code that stands in one of the sections linked,
    as code or as words. In a section that says *Check* it stands behind that.
    """
    files = {notebook.path.name: notebook for notebook in notebooks}
    _, _, text = symptoms.partition("\n## ")
    for entry in re.findall(r"(?m)^- .*(?:\n  .*)*", text):
        says, _, check = entry.partition("\n  Check: ")
        if not check:
            yield f"book/symptoms.md: say by 'Check: ...' what finds {says!r}."
        targets = [target for _, target in LINK.findall(entry)]
        there = "\n".join(
            re.sub(r"(?s)^.*?\*Check\*", "", section(files[file], place))
            for file, _, place in (target.partition("#") for target in targets)
            if file in files
        )
        for name in re.findall(r"`([^`]+)`", check):
            words = re.escape(name).replace("_", "[_ ]")
            if not re.search(rf"(?<!\w){words}(?!\w)", there):
                yield (
                    f"book/symptoms.md has the check `{name}` for "
                    f"{says[:50]!r}, and {' and '.join(targets)} has it not, "
                    "or not behind *Check*. One of the two is wrong."
                )


def section(notebook, place):
    """Return what stands below the heading with this anchor, its parts too."""
    return "\n".join(
        text
        for titles, _, text in sections(notebook.cells)
        if place in map(anchor, titles)
    )
