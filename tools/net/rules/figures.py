"""Figures: how many, and what their alt texts say."""

import ast
import re

from tools.net import claims
from tools.net.rules.common import rule, trees, walk
from tools.notebooks import alt_text, remedy

MAX_FIGURES = 5
MIN_ALT = 20
CURVES = ("plot", "scatter", "step", "semilogx", "semilogy", "loglog")
MARKS = ("axvline", "axhline", "bar", "barh")
# What no axis of a picture is called, as rows are queries, columns keys.
PICTURES = {
    "x": {"query", "output", "p"},
    "y": {"key", "input", "column", "q"},
}
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
def figures_print_nothing(notebook):
    for cell in notebook.code:
        for output in cell.outputs:
            text = output.get("data", {}).get("text/plain", "")
            if alt_text(cell) and re.match(r"\[?Text\(", text):
                yield (
                    f"{notebook.name(cell)}: prints what matplotlib returns, "
                    f"{text[:30]!r}; end the cell with an assertion or "
                    "another line without a value."
                )


@rule
def alt_texts_say_what_the_figure_says(notebook):
    for cell, tree in trees(notebook):
        alt = claims.CLAIM.sub(r"\1", alt_text(cell)).lower()
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
    for node in walk(tree):
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
        for call in walk(tree)
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg in ("label", "xlabel", "ylabel")
    ]
    found = []
    for text in texts + titles(tree):
        if isinstance(text, ast.JoinedStr):
            text = text.values[0]
        if isinstance(text, ast.Constant):
            words = re.split(r"[,:($\n]", str(text.value))[0].strip()
            found += [words] if words else []
    return found


def titles(tree):
    """Return what panels are called, one by one or in a cell's lists."""
    given = [
        word.value
        for call in walk(tree)
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg == "title"
    ] + [call.args[0] for call in calls(tree, "set_title")]
    listed = [
        text
        for node in walk(tree)
        if given and isinstance(node, (ast.List, ast.Tuple))
        for text in node.elts
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    ]
    alone = all(isinstance(title, ast.Constant) for title in given)
    return given if alone else listed


def panels(tree):
    """Return into how many panels a figure is divided."""
    count = 1
    for call in calls(tree, "subplots"):
        for side in call.args:
            count *= side.value if isinstance(side, ast.Constant) else 1
    return count


@rule
def figures_are_few_and_untitled(notebook):
    count = 0
    for cell in notebook.code:
        count += sum("image/png" in o.get("data", {}) for o in cell.outputs)
        whole = r"suptitle\(|plt\.title\("
        several = re.search(r"subplots\(\s*\d", cell.source)
        alone = "" if several else r"|set_title\(|title="
        if re.search(whole + alone, cell.source):
            yield (
                f"{notebook.name(cell)}: a title inside the plot; the "
                "sentence above the figure is its title. Panels side by side "
                "may have one each."
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


@rule
def labels_are_those_of_the_data(notebook):
    for cell, tree in trees(notebook):
        if not alt_text(cell):
            continue
        curves = [call for call in calls(tree, *CURVES) if call.args]
        for label, shown in {
            **curves_that_may_be_exchanged(
                tree, [*curves, *calls(tree, *MARKS)]
            ),
            **axes_that_may_be_exchanged(tree, curves),
            **colours_of_something_else(tree),
        }.items():
            yield (
                f"{notebook.name(cell)}: the label {label} is not that of "
                f"{', '.join(sorted(shown))}, or could be another's as well. "
                "Let it say the name of the variable, or show the loop's."
            )
        picture = any(calls(tree, "imshow")) or "show_" in cell.source
        for axis, others in PICTURES.items() if picture else ():
            for label in axis_labels(tree, axis):
                if others & words(label):
                    yield (
                        f"{notebook.name(cell)}: the {axis} axis is called "
                        f"{ast.unparse(label)}: rows are queries, outputs and "
                        "p, columns keys, inputs, columns and q."
                    )


def curves_that_may_be_exchanged(tree, curves):
    """Map the labels that name nothing of their curve to its variables."""
    loops = [node for node in walk(tree) if isinstance(node, ast.For)]
    drawn = [
        (curve, word.value)
        for curve in curves
        for word in curve.keywords
        if word.arg == "label"
    ]
    several = [names(*curve.args) for curve, _ in drawn] if drawn[1:] else []
    # What all curves have, such as their x, tells none from another.
    common = set.intersection(*several) if several else set()
    found = {}
    for curve, label in drawn:
        around = [loop for loop in loops if curve in walk(loop)]
        shown = names(*curve.args, *(loop.target for loop in around)) - common
        alone = len(drawn) == 1 and not around
        if not (alone or names(label) & shown or named(shown, label)):
            found[ast.unparse(label)] = shown
    return found


def axes_that_may_be_exchanged(tree, curves):
    """Map labels that name the other axis, or neither, to its variables."""
    found = {}
    for curve in curves:
        *x, y = (a for a in curve.args if not isinstance(a, ast.Constant))
        x, y = names(*x), names(y)
        said = []
        for axis, own, other in (("x", x - y, y - x), ("y", y - x, x - y)):
            for label in axis_labels(tree, axis):
                said.append(named(own, label))
                if named(other, label) and not said[-1]:
                    found[ast.unparse(label)] = own
        if len(said) > 1 and not any(said):
            found["of both axes"] = x | y
    return found


def colours_of_something_else(tree):
    """Map labels of a colour bar to the variables that colour its points."""
    given = [w for c in calls(tree, "scatter") for w in c.keywords]
    shown = names(*(word.value for word in given if word.arg == "c"))
    bars = [w for c in calls(tree, "colorbar") for w in c.keywords]
    said = [word.value for word in bars if word.arg == "label"]
    said = said if shown else []
    return {ast.unparse(a): shown for a in said if not named(shown, a)}


def names(*nodes):
    """Return the variables in syntax trees."""
    inside = (node for tree in nodes for node in walk(tree))
    return {node.id for node in inside if isinstance(node, ast.Name)}


def words(label):
    """Return the words of a label, in the singular."""
    texts = [n.value for n in walk(label) if isinstance(n, ast.Constant)]
    found = re.findall("[a-z]+", " ".join(map(str, texts)).lower())
    return {word.removesuffix("s") for word in found}


def named(variables, label):
    """Tell whether a label has all words of some variable's name."""
    said = words(label)
    return any(
        {word.removesuffix("s") for word in name.lower().split("_")} <= said
        for name in variables
    )


def axis_labels(tree, axis):
    """Yield what an axis is called."""
    for call in calls(tree, f"set_{axis}label"):
        yield call.args[0]
    for call in calls(tree, "set"):
        yield from (w.value for w in call.keywords if w.arg == f"{axis}label")
