"""Figures: how many, and what their alt texts say."""

import ast
import re

from tools.net import prose
from tools.net.rules.common import outside_maths, rule, trees
from tools.net.words import COLOURS
from tools.notebooks import alt_text, remedy

MAX_FIGURES = 5
MIN_ALT = 20
COLOUR = re.compile(rf"(?i)\b({'|'.join(sorted(COLOURS))})\b")
COUNT = "no one two three four five six seven eight nine ten".split()


@rule
def figures_have_alt_text(notebook):
    seen = {}
    for cell in notebook.code:
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        alt = alt_text(cell)
        if figures and (
            len(alt) < MIN_ALT
            or not alt.endswith(".")
            or re.match(r"(?i)(figure|image|plot) ?(of)?", alt)
        ):
            yield (
                f"{notebook.name(cell)}: its figure has no alt text. Say what "
                f"is seen in {MIN_ALT} characters or more, and whole "
                "sentences, in the cell's metadata: "
                '{"mystnb": {"image": {"alt": "…"}}}'
            )
        if alt and not figures:
            yield (
                f"{notebook.name(cell)}: has alt text and no figure. Remove "
                f"the text, or run: {remedy(notebook.path)}"
            )
        if alt and alt in seen:
            yield (
                f"{notebook.name(cell)}: its alt text is that of "
                f"{notebook.name(seen[alt])}; say what this figure shows."
            )
        seen[alt] = cell


@rule
def alt_texts_say_what_the_figure_says(notebook):
    for cell, tree in trees(notebook):
        alt = prose.CLAIM.sub(r"\1", alt_text(cell)).lower()
        if not alt:
            continue
        missing = [text for text in labels(tree) if text.lower() not in alt]
        count = panels(tree)
        if count > 1 and not re.search(rf"\b({COUNT[count]}|{count})\b", alt):
            missing.append(f"{COUNT[count]} panels")
        if missing:
            yield (
                f"{notebook.name(cell)}: its alt text does not name "
                f"{missing}, which the figure shows. Say it in the cell's "
                "metadata, or give the figure its own text back."
            )


def calls(tree, *names):
    """Yield the calls of methods with one of these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in names:
                yield node


def labels(tree):
    """Return what a figure calls its axes and lines, without the details.

    Of "offset $k$" and "similarity, as a share" that is the words before.
    """
    texts = [
        call.args[0]
        for call in calls(tree, "set_xlabel", "set_ylabel", "set_label")
    ] + [
        word.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg in ("label", "xlabel", "ylabel")
    ]
    found = []
    for text in texts:
        if isinstance(text, ast.JoinedStr):
            text = text.values[0]
        if isinstance(text, ast.Constant):
            words = re.split(r"[,($\n]", str(text.value))[0].strip()
            found += [words] if words else []
    return found


def panels(tree):
    """Return into how many panels a figure is divided."""
    count = 1
    for call in calls(tree, "subplots"):
        for side in call.args:
            count *= side.value if isinstance(side, ast.Constant) else 1
    return count


@rule
def colours_are_asked_of_the_figure(notebook):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        if not (alt := alt_text(cell)):
            continue
        beside = [
            c for c in cells[max(place - 1, 0) : place + 2] if c is not cell
        ]
        words = [c.source for c in beside if c.cell_type == "markdown"]
        for text in [alt, *words]:
            rest = outside_maths(prose.CLAIM.sub(" ", text))
            for match in COLOUR.finditer(rest):
                yield (
                    f"{notebook.name(cell)}: {match.group()!r} is said of "
                    "this figure, and nothing asks the figure: write "
                    f"{match.group()}<!--= ax.lines[0].get_color() --> or, of "
                    f"a matrix, {match.group()}<!--= pixel(ax, row, column) "
                    "-->, in its alt text or below it."
                )


@rule
def figures_are_few_and_untitled(notebook):
    count = 0
    for cell in notebook.code:
        count += sum("image/png" in o.get("data", {}) for o in cell.outputs)
        if re.search(r"\.(set_title|suptitle)\(|plt\.title\(", cell.source):
            yield (
                f"{notebook.name(cell)}: a title inside the plot; the "
                "sentence above the figure is its title."
            )
        for axis, text in re.findall(
            r"set_([xy])label\(f?\"([^\"]*)\"", cell.source
        ):
            if re.match(r"[A-Z][a-z]", text):
                yield (
                    f"{notebook.name(cell)}: the {axis} label {text!r} "
                    "begins with a capital; axis labels are lower case."
                )
    if count > MAX_FIGURES:
        yield f"{notebook.path.name}: {count} figures, at most {MAX_FIGURES}."
