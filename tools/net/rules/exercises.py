"""Exercises, and what is folded."""

import re

from tools.net.rules.common import folded, rule

EXERCISE = re.compile(
    r"^### Exercise (\d+): .+ \((easy|medium|hard), \d+ minutes\)$", re.M
)
SOLUTION = "# @title Solution"
VERDICT = re.compile(r"(?i)\bexercise \d+: ")


@rule
def exercises_are_complete(notebook):
    numbers = []
    for place, cell in enumerate(notebook.cells):
        found = EXERCISE.search(cell.source)
        if cell.cell_type != "markdown" or "### Exercise" not in cell.source:
            continue
        if not found:
            yield (
                f"{notebook.name(cell)}: an exercise is headed as in "
                "### Exercise 3: cross-attention (medium, 10 minutes)."
            )
            continue
        numbers.append(int(found.group(1)))
        block = []
        for other in notebook.cells[place + 1 :]:
            if re.search(r"(?m)^(### Exercise|## )", other.source):
                break
            block.append(other)
        words = "\n".join(c.source for c in [cell, *block])
        if "<details>" not in words:
            yield f"{notebook.name(cell)}: the exercise has no hint."
        solutions = [c for c in block if c.source.startswith(SOLUTION)]
        if not solutions:
            yield f"{notebook.name(cell)}: the exercise has no solution."
        for solution in solutions:
            if VERDICT.search(str(solution.outputs)):
                yield (
                    f"{notebook.name(solution)}: a verdict on the solution, "
                    "which a reader takes for one on the own answer. Assert "
                    "it instead."
                )
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"{notebook.path.name}: its exercises are numbered {numbers}."


@rule
def folded_cells_fold_everywhere(notebook):
    for cell in notebook.code:
        marks = [
            folded(cell),
            cell.source.startswith("# @title "),
            cell.metadata.get("cellView") == "form",
            bool(cell.metadata.get("jupyter", {}).get("source_hidden")),
        ]
        if any(marks) and not all(marks):
            yield (
                f"{notebook.name(cell)}: folds in some places only. A folded "
                "cell begins with # @title and its name, has the tag "
                'hide-input, and the metadata "cellView": "form" and '
                '"jupyter": {"source_hidden": true}.'
            )
