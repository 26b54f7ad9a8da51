"""A chapter's exercises, and sheets made of them.

`exercises(path)` reads them; `sheet(path)` is a notebook of them that runs by
itself: it imports what they need, and is without their solutions.
"""

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.markdown import sections
from tools.notebooks import FOLDED, METADATA, Notebook, label, parsed, tags
from tools.settings import edition
from tools.sheets.cells import defined, imports, lean, left, names, read_by
from tools.sheets.source import (
    NAMES,
    TeachError,
    attribution,
    leading,
    plain,
    title_of,
)

HEADING = re.compile(
    r"### Exercise (\d+): (.+) \((easy|medium|hard), (\d+) minutes\)"
)
CHECK = re.compile(r"(check_(\w+))\(\2\)")
# What an introduction says of the checks; a sheet says it for itself.
OF_CHECKS = re.compile(r"`return None`|\bchecks?\b|what is wrong")
EQUATION = re.compile(r"(?i)\bequation \$\((\d+)\)\$")
TAGGED = re.compile(r"\$\$(?:(?!\$\$).)*?\\tag\{(\d+)\}.*?\$\$", re.S)
CODE = re.compile(r"`(\w+)\b[^`\n]*`")
HELPERS = """## Run this first

What the exercises use. The first cell brings the book's package. If it \
cannot, ask your teacher for the package's file, and run \
`python -m pip install {wheel}` in its folder."""
# A sheet's reader has no checkout of the book.
CHECKOUT = '''In a checkout of the book, run: "
            "python -m pip install ."'''
WHEEL = '''Ask your teacher for its file, and run: "
            "python -m pip install {wheel}"'''


@dataclass
class Exercise:
    """An exercise: what stands between its heading and the next.

    text: its Markdown cells, the statement first, then hints.
    stub, name: the cell with the function to be written, and its name.
    check, checker: the cell that calls the check, and the check's name.
    cells: text, stub, check and other code, in their order.
    solution: the cell of `x_solution`; after: what follows it.
    """

    number: int
    title: str
    level: str
    minutes: int
    cells: list = field(default_factory=list)
    solution: object = None
    after: list = field(default_factory=list)

    def add(self, cell):
        """Take in the next cell."""
        if self.solution:
            self.after.append(cell)
        elif cell.source.startswith("# @title Solution"):
            self.solution = cell
        else:
            self.cells.append(cell)

    @property
    def text(self):
        return [c for c in self.cells if c.cell_type == "markdown"]

    @property
    def run(self):
        """The code cells up to the solution."""
        cells = [*self.cells, *([self.solution] if self.solution else [])]
        return [c for c in cells if c.cell_type == "code"]

    @property
    def check(self):
        return next(c for c in self.cells if CHECK.fullmatch(c.source))

    @property
    def checker(self):
        return CHECK.fullmatch(self.check.source)[1]

    @property
    def name(self):
        return self.checker.removeprefix("check_")

    @property
    def stub(self):
        return next(
            cell
            for cell in self.cells
            if cell.cell_type == "code" and self.name in functions(cell)
        )

    def shown(self, framework, graded):
        """Return the cells that a sheet has."""
        hidden = [self.check] if graded else []
        return [
            cell
            for cell in self.cells
            if is_in(framework, cell) and cell not in hidden
        ]


def functions(cell, kind=ast.FunctionDef):
    """Return the names of the functions that a cell defines, or classes."""
    nodes = parsed(cell.source).body
    return [node.name for node in nodes if isinstance(node, kind)]


def exercises(path):
    """Return the exercises of a chapter, in their order; perhaps none."""
    return read(path)[1]


def read(path):
    """Return a chapter's other cells, its exercises, and their introduction.

    The cells are those before the exercises.
    """
    path = Path(path)
    if not path.exists():
        Notebook.read(path)  # says what is wrong
    return read_once(path, path.stat().st_mtime_ns)


@cache
def read_once(path, changed):
    """Return what read returns, of the file as changed at that time."""
    before, intro, rest = divided(Notebook.read(path).cells)
    found = []
    for cell in rest:
        if cell.cell_type == "markdown":
            if heading := HEADING.match(cell.source):
                number, title, level, minutes = heading.groups()
                found.append(Exercise(int(number), title, level, int(minutes)))
        if found:
            found[-1].add(cell)
    return before, found, intro


def divided(cells):
    """Return the cells before the exercises, their introduction, and theirs.

    The introduction may hold the first exercise; it is divided there.
    """
    title = re.compile(r"##? (Exercises$)?", re.M)
    titles = [
        (place, found[1])
        for place, cell in enumerate(cells)
        if cell.cell_type == "markdown" and (found := title.match(cell.source))
    ]
    for (place, is_ours), (end, _) in pairwise([*titles, (len(cells), None)]):
        if is_ours:
            intro, mark, first = cells[place].source.partition("### ")
            part = copied(cells[place], mark + first)
            rest = [part] * bool(mark) + cells[place + 1 : end]
            return cells[:place], intro.partition("\n")[2].strip(), rest
    return cells, "", []


def copied(cell, source):
    """Return a cell with another source, and of its metadata what folds."""
    if cell.cell_type == "markdown":
        return new_markdown_cell(source, id=cell.id)
    is_folded = "hide-input" in cell.metadata.get("tags", [])
    metadata = nbformat.from_dict(FOLDED if is_folded else {})
    return new_code_cell(source, id=cell.id, metadata=metadata)


def is_in(framework, cell):
    """Tell whether a cell is not of the other framework alone."""
    return (
        framework is None
        or framework in tags(cell)
        or not (tags(cell) & {*NAMES})
    )


def sheet(path, framework=None, graded=False):
    """Return a notebook of a chapter's exercises, without their solutions.

    framework: "pytorch", "tensorflow", or None for both. graded: without the
    checks. Raises TeachError, or NotebookError.
    """
    before, found, intro = read(path)
    if not found:
        raise TeachError(
            f"{label(path)}: has no exercises; take another chapter."
        )
    helpers = helping(path, before, framework, asked(found, framework, graded))
    wheel = f"cellbycell-{edition()[0]}-py3-none-any.whl"
    source = helpers[0].source.replace(CHECKOUT, WHEEL.format(wheel=wheel))
    helpers[0] = copied(helpers[0], source)
    of_helpers = HELPERS.format(wheel=wheel)
    cells = [new_markdown_cell(front(path, framework, graded), id="from")]
    cells += [new_markdown_cell(of_helpers, id="helpers"), *helpers]
    cells.append(new_markdown_cell(introduced(intro, path, graded), id="do"))
    equations, homes = explained(before)
    for exercise in found:
        for cell in exercise.shown(framework, graded):
            text = cell.source
            if cell is exercise.text[0]:
                text = stated(exercise, path, homes)
            if cell.cell_type == "markdown":
                text = plain(with_equations(text, equations), path)
            cells.append(copied(cell, text))
    return new_notebook(cells=cells, metadata=METADATA)


def asked(exercises, framework, graded):
    """Return the names that exercises read.

    Those of the solutions as well, as an answer may use what they use.
    """
    found = set()
    for exercise in exercises:
        shown = exercise.shown(framework, graded)
        found |= read_by(cell for cell in shown if cell.cell_type == "code")
        used = read_by([exercise.solution])
        found |= used - {exercise.checker} if graded else used
    return found


def helping(path, before, framework, need):
    """Return the cell that brings the package, and one that imports.

    before: the cells before the exercises; need: the names that are imported,
    as the chapter does, or from the package, where the chapter defines them.
    """
    [bring] = [c for c in before if c.id == "bring-package"]
    code = [c for c in before if c.cell_type == "code" and c is not bring]
    of_package = {}
    setup = [lean(c, need) for c in left(code, framework) if imports(c)]
    there = {name for cell in setup for name in names(cell.source)[0]}
    for name in sorted(need - there):
        if home := next((c for c in code if name in defined(c)), None):
            of_package.setdefault(module_of(path, name, home), []).append(name)
    lines = [f"from {m} import {', '.join(n)}" for m, n in of_package.items()]
    sources = [cell.source for cell in setup] + ["\n".join(lines)]
    source = "\n\n".join(filter(None, sources))
    return [copied(bring, bring.source), copied(setup[0], source)]


def module_of(path, name, home):
    """Return the module of the package that has a function of a chapter."""
    module = f"cellbycell.exercises.{path.stem}"
    if "export" in tags(home):
        [part] = tags(home) & {*NAMES} or {"common"}
        return f"cellbycell.{part}.{path.stem}"
    if not hasattr(import_module(module), name):
        raise TeachError(
            f"{label(path)}: exercises use {name}: give {module} it."
        )
    return module


def stated(exercise, path, homes):
    """Return what an exercise asks, and where the chapter explains it."""
    heading, _, statement = exercise.text[0].source.partition("\n")
    text = "\n".join(cell.source for cell in exercise.text)
    found = EQUATION.findall(text) + CODE.findall(text)
    found += sorted(read_by(exercise.run))
    titles = dict.fromkeys(homes[name] for name in found if name in homes)
    parts = ", ".join(leading(f"*{title}*", path, title) for title in titles)
    where = f"In the chapter {leading(f'*{title_of(path)}*', path)}"
    where += f": {parts}." if parts else "."
    return f"{heading}\n{statement.rstrip()}\n\n{where}"


def with_equations(text, equations):
    """Return Markdown with the chapter's equations that it names."""
    parts = []
    for part in text.split("\n\n"):
        numbers = EQUATION.findall(part)
        parts.append(EQUATION.sub(r"\g<0> of the chapter", part))
        parts += [equations[number] for number in dict.fromkeys(numbers)]
    return "\n\n".join(parts)


def explained(before):
    """Return {number: equation} of a chapter, and {name: title of section}.

    A name is that of a function or a class, or the number of an equation.
    """
    equations, homes = {}, {}
    for titles, cell, text in sections(before):
        if cell.cell_type == "code":
            built = (*functions(cell), *functions(cell, ast.ClassDef))
        else:
            built = {m[1]: m[0] for m in TAGGED.finditer(text)}
            equations |= built
        for name in built:
            homes.setdefault(name, titles[-1])
    return equations, homes


def introduced(intro, path, graded):
    """Return what stands above the exercises."""
    says = ", then the cell below it, which says what is wrong."
    do = "Replace `return None` and run the cell" + ("." if graded else says)
    lines = [x for x in intro.split("\n") if not OF_CHECKS.search(x)]
    return plain("\n".join(["## Exercises", "", do, *lines]), path)


def front(path, framework, graded):
    """Return the title of a sheet, what to do, and where it comes from."""
    names = [NAMES[framework]] if framework else NAMES.values()
    do = (
        f"This sheet is for {' and '.join(names)}.\n"
        "Write each answer into the cell of its function, in place of "
        "`return None`, or into a cell below it, and keep the function's name."
        + "\nHand in this file."
        * graded
    )
    return f"# {title_of(path)}: exercises\n\n{do}\n\n" + attribution(
        path,
        "its exercises without their solutions"
        + (" and checks" if graded else ""),
    )
