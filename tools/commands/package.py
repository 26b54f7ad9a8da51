"""Write the package `cellbycell` from the chapters: `make package`.

A cell with the tag `export` defines what later chapters use. Its text goes
into a module of its chapter: below cellbycell/pytorch or cellbycell/tensorflow
if it names that framework, below cellbycell/common if it names neither. A name
that begins with an underscore is there, and nowhere else: it is no part of
what a reader takes home. The page of symptoms is copied, for those who have
the package alone. Everything else in cellbycell/ is written by hand.
"""

import ast
import re
import shutil
import subprocess
import sys

from tools.notebooks import Notebook, tags
from tools.settings import BOOK, ROOT, chapters

PACKAGE = ROOT / "cellbycell"
SYMPTOMS = "checks/symptoms.md"
COPIED = "<!-- Written by `make package`: change book/symptoms.md. -->"
PARTS = {
    "common": "What both frameworks share, in plain Python and NumPy.",
    "pytorch": "What the chapters build, in PyTorch.",
    "tensorflow": "What the chapters build, in TensorFlow.",
}
DOCSTRING = '''"""{title}: its {part} part, for what comes after it.

Built and explained in the chapter *{title}* of the book.
Written by `make package`: change it in the chapter.
"""
'''
FRAMEWORKS = {
    "pytorch": {"torch", "nn", "F"},
    "tensorflow": {"tf", "keras"},
}


class PackageError(Exception):
    """A cell cannot be exported; the message says why."""


def modules(notebooks):
    """Return the text of each module and part, by its path.

    notebooks: the chapters in their order. Raises PackageError.
    """
    homes, found = {}, {}  # a name -> its module; a path -> its text
    names = {part: {} for part in PARTS}  # a part -> module -> its names
    for notebook in notebooks:
        stem, imports = notebook.path.stem, imports_of(notebook)
        title = re.match("# ([^:\n]+)", notebook.cells[0].source)[1]
        of_part = exported(notebook)
        for part, cells in of_part.items():
            module = f"cellbycell.{part}.{stem}"
            made = [name for cell in cells for name in defined(cell.source)]
            names[part][module] = made
            homes |= dict.fromkeys(made, module)
        for part, cells in of_part.items():
            made = set(names[part][f"cellbycell.{part}.{stem}"])
            known = imports | {
                name: f"from {home} import {name}"
                for name, home in homes.items()
                if home.split(".")[1] in (part, "common")
            }
            read = set().union(*(names_in(cell.source) for cell in cells))
            lines = {
                line  # ruff takes those away that nobody uses
                for name, line in known.items()
                if name not in made and ("." not in name or name in read)
            }
            docstring = DOCSTRING.format(title=title, part=part)
            texts = ("\n" + text_of(cell) + "\n" for cell in cells)
            text = "\n".join([docstring, *sorted(lines), "", *texts])
            found[f"{part}/{stem}.py"] = text
    for part, of_module in names.items():
        lines = [f'"""{PARTS[part]}"""\n']
        listed = []
        for module, made in of_module.items():
            if shown := [name for name in made if not name.startswith("_")]:
                lines.append(f"from {module} import {', '.join(shown)}")
                listed += shown
        found[f"{part}/__init__.py"] = "\n".join(
            [*lines, f"\n__all__ = {sorted(listed)!r}\n"]
        )
    return found


def imports_of(notebook):
    """Map each name that a chapter imports to the line that imports it.

    `import torch.onnx.ops` gives two: `torch`, and the module's whole name.
    """
    found = {}
    for cell in notebook.code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    line = ast.Import([alias])
                    if isinstance(node, ast.ImportFrom):
                        line = ast.ImportFrom(node.module, [alias], 0)
                    elif alias.asname is None:
                        top = alias.name.split(".")[0]
                        found[top] = f"import {top}"
                    found[alias.asname or alias.name] = ast.unparse(line)
    return found


def exported(notebook):
    """Map each part to the cells of a chapter that go into it."""
    found = {}
    for cell in notebook.code:
        if "export" in tags(cell):
            read = names_in(cell.source)
            parts = [p for p, names in FRAMEWORKS.items() if names & read]
            if len(parts) > 1:
                raise PackageError(
                    f"{notebook.name(cell)}: is to be exported and uses both "
                    "frameworks. Divide the cell."
                )
            part = parts[0] if parts else (tags(cell) & {*FRAMEWORKS}) or {""}
            part = part if parts else part.pop() or "common"
            found.setdefault(part, []).append(cell)
    return found


def names_in(source):
    """Return the names that code reads, whole ones such as `nn.Module` too."""
    nodes = ast.walk(ast.parse(source))
    kinds = (ast.Name, ast.Attribute)
    return {ast.unparse(node) for node in nodes if isinstance(node, kinds)}


def defined(source):
    """Return the names that a cell's statements define."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets]
    return found


def text_of(cell):
    """Return a cell's text without its title."""
    lines = cell.source.split("\n")
    return "\n".join(lines[lines[0].startswith("# @title") :]).strip()


def formatted(text):
    """Return code as ruff sorts and lays it out.

    Raises PackageError, if a cell uses a name that none of those above it
    imports, or defines with the tag export.
    """
    fix = ["check", "--fix"]
    for command in (
        [*fix, "--select=F401,F821"],
        [*fix, "--select=I"],
        ["format"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "-"]
        ruff += ["--stdin-filename", "cellbycell/module.py"]
        done = subprocess.run(
            ruff, cwd=ROOT, input=text, text=True, capture_output=True
        )
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            raise PackageError(f"ruff {command[0]} failed: {said}")
        text = done.stdout
    return text


def files():
    """Return the text of each file to be written, by its path.

    Raises PackageError.
    """
    notebooks = [Notebook.read(ROOT / f"{name}.ipynb") for name in chapters()]
    found = {p: formatted(text) for p, text in modules(notebooks).items()}
    page = (BOOK / "symptoms.md").read_text("utf-8")
    return found | {SYMPTOMS: f"{COPIED}\n\n{page}"}


def write():
    """Write the files; return how many. Raises PackageError."""
    found = files()
    for part in PARTS:
        shutil.rmtree(PACKAGE / part, ignore_errors=True)
    for path, text in found.items():
        file = PACKAGE / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return len(found)


def main():
    try:
        count = write()
    except PackageError as error:
        sys.exit(str(error))
    print(f"cellbycell/: {count} files are what the book says")


if __name__ == "__main__":
    main()
