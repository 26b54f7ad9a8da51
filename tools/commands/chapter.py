"""Lay out a new chapter that passes every check: `make chapter NAME=x`.

The chapter is run before any file of the book is changed.
"""

import io
import keyword
import re
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import nbformat
from nbformat import v4

from tools.commands import outputs
from tools.notebooks import FOLDED, Notebook, label
from tools.settings import BOOK, CONTENTS, ROOT, chapters, slug

MAX_NAME = 24  # characters; longer names break lines
TESTS = ROOT / "tests" / "chapters"
MAP = BOOK / "_static" / "transformer-map.svg"

# A line "%% kind" begins a cell of that kind, or the chapter's tests. Words in
# capitals and chapter_name are filled in.
TEMPLATE = Path(__file__).with_suffix(".txt")


class NewChapterError(Exception):
    """A chapter cannot be laid out; the message says what to do."""


def require_good_name(name):
    """Raise NewChapterError unless a chapter can have this name."""
    run = "run: make chapter NAME=layer_norm"
    if not name:
        raise NewChapterError(f"the chapter needs a name; {run}")
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name) or keyword.iskeyword(name):
        raise NewChapterError(
            f"{name!r} cannot be a chapter's name: write lower-case letters "
            f"and single underscores, no path and no number; {run}"
        )
    if len(name) > MAX_NAME:
        raise NewChapterError(
            f"{name!r} is longer than {MAX_NAME} letters; find a shorter name"
        )
    for path in (
        BOOK / f"{name}.ipynb",
        BOOK / f"{name}.md",
        TESTS / f"test_{name}.py",
    ):
        if path.exists():
            raise NewChapterError(
                f"{label(path)} exists already; choose another name"
            )


def insert(text, pattern, new, path):
    """Return a text with new put in place of the one match of a pattern."""
    text, count = re.subn(pattern, lambda match: match.expand(new), text)
    if count != 1:
        raise NewChapterError(
            f"{label(path)} has changed its form: {pattern!r} is in it "
            f"{count} times, not once; mend it or tools/commands/chapter.py"
        )
    return text


def read(template):
    """Return the cells and the tests that a template describes."""
    cells, tests = [], ""
    for part in re.split(r"(?m)^%% ", template)[1:]:
        head, _, body = part.partition("\n")
        kind, _, alt = head.partition(": ")
        if kind == "test":
            tests = body
        elif kind == "markdown":
            cells.append(v4.new_markdown_cell(body.strip()))
        else:
            metadata = {
                "code": {},
                "pytorch": {"tags": ["pytorch"]},
                "tensorflow": {"tags": ["tensorflow"]},
                "folded": FOLDED,
                "figure": {"mystnb": {"image": {"alt": alt}}},
            }[kind]
            cells.append(v4.new_code_cell(body.strip(), metadata=metadata))
    return cells, tests


def executed(name, cells):
    """Return the text of a notebook with these cells, formatted and run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.ipynb"
        path.write_text(nbformat.writes(v4.new_notebook(cells=cells)), "utf-8")
        settings = ["--config", ROOT / "pyproject.toml"]
        command = [sys.executable, "-m", "ruff", "format", "--quiet"]
        subprocess.run([*command, *settings, path], check=True)
        with redirect_stdout(io.StringIO()):
            if outputs.main([path]):
                raise NewChapterError("the new chapter does not run")
        return path.read_text("utf-8")


def layout(name):
    """Return a dict: path -> its text once the book has the chapter."""
    title = name.replace("_", " ").capitalize()
    last = chapters()[-1].removeprefix("book/")
    before = Notebook.read(BOOK / f"{last}.ipynb")
    before_title = before.cells[0].source.partition("\n")[0].strip("# ")
    closing = hand_over(before, f"[{title}]({name}.ipynb)")
    template = TEMPLATE.read_text("utf-8")
    for word, meaning in {
        "chapter_name": name,
        "TITLE": title,
        "SLUG": slug(),
        "BEFORE": f"[{before_title}]({last}.ipynb)",
        "NEXT": closing,
    }.items():
        template = template.replace(word, meaning)
    cells, tests = read(template)
    readme = ROOT / "README.md"
    return {
        BOOK / f"{name}.ipynb": executed(name, cells),
        TESTS / f"test_{name}.py": tests,
        before.path: nbformat.writes(before.node) + "\n",
        CONTENTS: insert(
            CONTENTS.read_text("utf-8"),
            rf"( *- file: book/){last}\n",
            rf"\g<0>\g<1>{name}\n",
            CONTENTS,
        ),
        readme: insert(
            readme.read_text("utf-8"),
            rf"- \[.+\]\(book/{last}\.ipynb\)\n",
            rf"\g<0>- [{title}](book/{name}.ipynb)\n",
            readme,
        ),
        MAP: with_box(MAP.read_text("utf-8"), title, f"{name}.html"),
    }


def hand_over(before, link):
    """Let the last chapter end with a link to the new one.

    Returns its closing sentence until now, with which the new one ends.
    """
    text, mark, closing = before.cells[-1].source.rpartition("Next: ")
    if not mark:
        raise NewChapterError(
            f"{label(before.path)} does not end with a line 'Next: ...'; "
            "write one, as the other chapters have it"
        )
    before.cells[-1].source = (
        f"{text}Next: {link}, because something is still missing: say here "
        "what."
    )
    return mark + closing


def with_box(drawing, title, page):
    """Return the landing page's map with a box below that leads to a page."""
    view = re.search(r'viewBox="0 0 360 (\d+)"', drawing)
    height = int(view[1]) if view else 0
    box = (
        f'  <a href="{page}">\n'
        f'    <rect x="6" y="{height + 2}" width="348" height="30" rx="6"/>\n'
        f'    <text x="180" y="{height + 22}">{title}</text>\n'
        "  </a>\n"
    )
    taller = rf'\g<1>{height + 36}"'
    drawing = insert(drawing, "</svg>", f"{box}</svg>", MAP)
    return insert(drawing, r'(viewBox="0 0 360 )\d+"', taller, MAP)


def main(arguments):
    name = " ".join(arguments)
    try:
        require_good_name(name)
        print(f"Running {name} once; this takes half a minute.")
        texts = layout(name)
    except NewChapterError as error:
        sys.exit(f"{error}. Nothing was written.")
    except KeyboardInterrupt:
        sys.exit("Interrupted. Nothing was written.")
    for path, text in texts.items():
        path.write_text(text, "utf-8", newline="\n")
        print(f"wrote {label(path)}")
    print("CONTRIBUTING.md says how to go on.")


if __name__ == "__main__":
    main(sys.argv[1:])
