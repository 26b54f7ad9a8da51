"""Exercises, and what is folded."""

import re

from tools.markdown import sections
from tools.rules.common import folded, rule

EXERCISE = re.compile(
    r"Exercise (\d+): (?P<title>.+) "
    r"\((?P<level>easy|medium|hard), (?P<minutes>\d+) minutes\)"
)


@rule
def exercises_are_complete(notebook):
    exercises = {}
    for titles, cell, text in sections(notebook.cells):
        for title in titles[2:] if titles[1:2] == ("Exercises",) else ():
            exercises.setdefault(title, []).append((cell, text))
    numbers = []
    for title, parts in exercises.items():
        first = parts[0][0]
        if not (heading := EXERCISE.fullmatch(title)):
            yield (
                f"{notebook.name(first)}: an exercise is headed as in ### "
                "Exercise 3: cross-attention (medium, 10 minutes)."
            )
            continue
        numbers.append(int(heading[1]))
        if not any("<details>" in text for _, text in parts):
            yield f"{notebook.name(first)}: the exercise has no hint."
        if not any(t.startswith("# @title Solution") for _, t in parts):
            yield f"{notebook.name(first)}: the exercise has no solution."
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
