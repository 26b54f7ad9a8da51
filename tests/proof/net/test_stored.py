"""Alter whatever the notebooks store, one thing at a time: all is rejected.

Each kind of alteration is made at every place of every notebook, and handed
to the check that has to see it. What comes back has to name the cell and say
what to do. No cell is run again: the comparison has shown that the code gives
the stored outputs, so these stand for what it computes; and a chapter's one
run keeps the variables that numbers and shapes are checked against.
"""

import base64
import copy
import io
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import chain, count, pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbval.plugin import IPyNbCell, IPyNbFile
from PIL import Image, ImageDraw

from tools.net import claims, shapes
from tools.net.claims import NUMBERS
from tools.net.markdown import LINK, links
from tools.net.rules import book, code, figures, stored, twins
from tools.net.rules.links import (
    BIBLIOGRAPHY,
    colab_link_is_the_repository_s,
    links_resolve,
    words_of,
)
from tools.net.run import untrue
from tools.notebooks import Notebook, alt_text, label, paths, remedy, tags
from tools.settings import BOOK

NAMES = [path.stem for path in paths()]
MAX_PLACES = 100


@cache
def stored_chapter(name):
    """Return a chapter's notebook as it is stored."""
    return Notebook.read(BOOK / f"{name}.ipynb")


def stored_chapters():
    """Return the notebooks of all chapters."""
    return [stored_chapter(name) for name in NAMES]


def all_rejected(tried, minimum=1):
    """Assert that each alteration is rejected as it should be.

    tried: (what was altered, messages, what one of these has to say).
    """
    tried = list(tried)
    accepted = [
        what
        for what, messages, expected in tried
        if not any(all(e in m for e in expected) for m in messages)
    ]
    assert len(tried) >= minimum
    assert not accepted, f"{len(accepted)} of {len(tried)}: {accepted[:20]}"


def altered(notebook, cell, **changes):
    """Return a copy of a notebook and of the cell, altered there."""
    place = notebook.cells.index(cell)
    node = copy.copy(notebook.node)
    node.cells = list(notebook.cells)
    node.cells[place] = NotebookNode(cell, **changes)
    return Notebook(notebook.path, node), node.cells[place]


# Outputs


@pytest.fixture
def compare(request):
    """Return a function: what the comparison says of an altered cell."""
    files = {}

    def messages(notebook, cell, **changes):
        number = notebook.code.index(cell)
        if notebook.path not in files:
            files[notebook.path] = IPyNbFile.from_parent(
                request.session, path=notebook.path
            )
        file = files[notebook.path]
        computed = copy.deepcopy(cell.outputs)  # nbval joins streams in them
        file.run = SimpleNamespace(outputs_of=lambda number: computed)
        item = IPyNbCell.from_parent(
            file,
            name=f"Cell {number}",
            cell_num=number,
            cell=NotebookNode(cell, **changes),
            options={"check": True, "skip": False, "check_exception": False},
        )
        # The two outputs side by side, which no test here reads.
        item.format_output_compare = lambda *_: None
        try:
            item.runtest()
        except Exception as error:
            failure = pytest.ExceptionInfo.from_exception(error)
            return [item.repr_failure(failure)]
        return []

    return messages


def said(notebook, cell):
    """Return what a message about a stored output has to say."""
    return notebook.name(cell), remedy(notebook.path)


@pytest.mark.parametrize("name", NAMES)
def test_stored_outputs_are_accepted(compare, name):
    notebook = stored_chapter(name)
    for cell in notebook.code:
        assert compare(notebook, cell) == []


def texts(cell):
    """Yield (output's place, mime type or None, text) of a cell's outputs."""
    for place, output in enumerate(cell.outputs):
        if output.output_type == "stream":
            yield place, None, output.text
        for mime, text in output.get("data", {}).items():
            if mime.startswith("text/"):
                yield place, mime, text


def with_text(cell, place, mime, text):
    """Return the outputs of a cell with another text at a place."""
    outputs = list(cell.outputs)
    output = outputs[place]
    if mime is None:
        outputs[place] = NotebookNode(output, text=text)
    else:
        data = NotebookNode(output.data, **{mime: text})
        outputs[place] = NotebookNode(output, data=data)
    return outputs


def other_digits_and_letters(text):
    """Yield a text with one of its digits, or a word's first letter, changed.

    In a long text, as of a drawing, at MAX_PLACES places spread evenly. A
    zero is the same number with any exponent.
    """
    fixed = re.sub(r"\b(0\.0*e)[+-]\d+", lambda m: m[1].ljust(len(m[0])), text)
    places = [m.start() for m in re.finditer(r"\d|\b[A-Za-z]", fixed)]
    for place in places[:: len(places) // MAX_PLACES + 1]:
        char = text[place]
        new = str((int(char) + 1) % 10) if char.isdigit() else char.swapcase()
        yield text[:place] + new + text[place + 1 :]


@pytest.mark.parametrize("name", NAMES)
def test_changed_digit_or_letter_in_an_output(compare, name):
    notebook = stored_chapter(name)
    all_rejected(
        (
            (notebook.name(cell), text[:60]),
            compare(
                notebook, cell, outputs=with_text(cell, place, mime, text)
            ),
            said(notebook, cell),
        )
        for cell in notebook.code
        for place, mime, whole in texts(cell)
        for text in other_digits_and_letters(whole)
    )


def rearranged(notebook, cell):
    """Yield what the outputs of a cell may have become: (how, changes)."""
    outputs = cell.outputs
    extra = new_output("stream", name="stdout", text="1\n")
    yield "added", {"outputs": [*outputs, extra]}
    yield "not executed", {"outputs": [], "execution_count": None}
    if outputs:
        yield "cleared", {"outputs": []}
    for place in range(len(outputs)):
        rest = outputs[:place] + outputs[place + 1 :]
        yield "removed", {"outputs": rest}
        yield "doubled", {"outputs": [*outputs[: place + 1], *outputs[place:]]}
    for first, second in pairwise(range(len(outputs))):
        order = list(outputs)
        order[first], order[second] = order[second], order[first]
        yield "exchanged", {"outputs": order}
    for other in notebook.code[notebook.code.index(cell) + 1 :]:
        if outputs and list(texts(other)) not in ([], list(texts(cell))):
            yield f"that of {notebook.name(other)}", {"outputs": other.outputs}
            break


@pytest.mark.parametrize("name", NAMES)
def test_outputs_removed_doubled_or_exchanged(compare, name):
    notebook = stored_chapter(name)
    all_rejected(
        (
            (notebook.name(cell), how),
            compare(notebook, cell, **changes),
            said(notebook, cell),
        )
        for cell in notebook.code
        for how, changes in rearranged(notebook, cell)
    )


@pytest.mark.parametrize("name", NAMES)
def test_wrong_or_missing_execution_count(name):
    notebook = stored_chapter(name)
    all_rejected(
        (
            (notebook.name(cell), count),
            list(stored.executed_in_order(other)),
            (other.name(new), remedy(notebook.path)),
        )
        for cell in notebook.code
        for count in (None, 0, cell.execution_count + 1)
        for other, new in [altered(notebook, cell, execution_count=count)]
    )


# Figures


def figure_cells(notebook):
    """Return the code cells with a figure."""
    return [
        cell
        for cell in notebook.code
        if any("image/png" in o.get("data", {}) for o in cell.outputs)
    ]


def figure_of(cell):
    """Return (place, PNG as base64) of a cell's figure."""
    return next(
        (place, output.data["image/png"])
        for place, output in enumerate(cell.outputs)
        if "image/png" in output.get("data", {})
    )


@cache
def figures_of_the_book():
    """Return (notebook, cell) of each figure."""
    return [
        (notebook, cell)
        for notebook in stored_chapters()
        for cell in figure_cells(notebook)
    ]


def redrawn(png):
    """Yield (how, PNG) for a figure with something drawn or erased."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    width, height = image.size
    left, top = width // 4, height // 4
    strokes = {
        "a thin line": [(left, height // 2), (3 * left, height // 3)],
        "a short line": [(width // 2, top), (width // 2, 2 * top)],
    }
    for how, stroke in strokes.items():
        drawn = image.copy()
        ImageDraw.Draw(drawn).line(stroke, fill="#b35806", width=2)
        yield how, drawn
    # Erased where there is most ink, a tenth of the width and the height.
    ink = 255 - np.asarray(image.convert("L"), int)
    step = height // 10, width // 10
    blocks = product(range(0, height, step[0]), range(0, width, step[1]))
    y, x = max(
        blocks, key=lambda b: ink[b[0] :, b[1] :][: step[0], : step[1]].sum()
    )
    erased = image.copy()
    erased.paste("white", (x, y, x + step[1], y + step[0]))
    yield "a region erased", erased
    yield "turned over", image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def as_png(image):
    """Return an image as base64 PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


def other_figures(notebook, cell):
    """Yield (how, outputs) of a cell whose figure is another, or gone."""
    place, png = figure_of(cell)
    drawn = [(how, as_png(image)) for how, image in redrawn(png)]
    others = [
        (f"exchanged with {other.name(c)}", figure_of(c)[1])
        for other, c in figures_of_the_book()
        if c is not cell
    ]
    for how, new in drawn + others:
        yield how, with_text(cell, place, "image/png", new)
    yield "removed", [*cell.outputs[:place], *cell.outputs[place + 1 :]]


@pytest.mark.parametrize("name", NAMES)
def test_figure_drawn_on_erased_or_exchanged(compare, name):
    notebook = stored_chapter(name)
    all_rejected(
        (
            (notebook.name(cell), how),
            compare(notebook, cell, outputs=new),
            said(notebook, cell),
        )
        for cell in figure_cells(notebook)
        for how, new in other_figures(notebook, cell)
    )


# Alt texts


def with_alt(notebook, cell, alt):
    """Return a copy of a notebook and a cell with another alt text."""
    metadata = NotebookNode(cell.metadata, mystnb={"image": {"alt": alt}})
    return altered(notebook, cell, metadata=metadata)


def spoilt(alt):
    """Yield what an alt text may have become."""
    yield from ["", "figure.png", alt[: figures.MIN_ALT - 1]]


@pytest.mark.parametrize("name", NAMES)
def test_alt_text_emptied_cut_or_a_file_name(name):
    notebook = stored_chapter(name)
    all_rejected(
        (
            (notebook.name(cell), new),
            figures.figures_have_alt_text(other),
            (other.name(new_cell), "in the cell's metadata"),
        )
        for cell in figure_cells(notebook)
        for new in spoilt(alt_text(cell))
        for other, new_cell in [with_alt(notebook, cell, new)]
    )


# Links


@pytest.mark.parametrize("name", NAMES)
def test_mistyped_link(name):
    notebook = stored_chapter(name)
    listed = {target for _, target in links(words_of(BIBLIOGRAPHY))}

    def tried():
        for cell in notebook.markdown:
            for match in LINK.finditer(cell.source):
                start, end = match.span(2)
                for place in range(start, end, 5):
                    char = "x" if cell.source[place] != "x" else "y"
                    yield cell, place, char
                if match[2][:-1] not in listed:  # issue 13 for issue 131
                    yield cell, end - 1, ""

    all_rejected(
        (
            (notebook.name(cell), source[place - 30 : place + 30]),
            [
                *links_resolve(other),
                *colab_link_is_the_repository_s(other),
            ],
            (other.name(new), "link"),
        )
        for cell, place, char in tried()
        for source in [cell.source[:place] + char + cell.source[place + 1 :]]
        for other, new in [altered(notebook, cell, source=source)]
    )


# Numbers in prose and in alt texts

OPPOSITE = {
    **{"light": ["dark"], "bright": ["dark"], "dark": ["light", "bright"]},
    **{"black": ["light", "grey"], "white": ["dark"], "grey": ["black"]},
    **{"purple": ["orange"], "orange": ["purple"], "blue": ["orange"]},
}


def others(said):
    """Yield what a numeral, number word or colour may have become.

    One digit or the word a step higher or lower; of colours, the opposite.
    """
    yield from OPPOSITE.get(said.lower(), [])
    if (value := NUMBERS.get(said.lower())) is not None:
        yield from (w for w, n in NUMBERS.items() if abs(n - value) == 1)
    yield from other_numerals(said)


def other_numerals(numeral):
    """Yield a numeral with one of its digits a step higher or lower."""
    for match in re.finditer(r"\d", numeral):
        for digit in (int(match.group()) + 1, int(match.group()) - 1):
            if 0 <= digit <= 9:
                start, end = match.span()
                yield f"{numeral[:start]}{digit}{numeral[end:]}"


@pytest.mark.xdist_group("frameworks")
@pytest.mark.parametrize("name", NAMES)
def test_changed_number_in_prose_or_alt_text(chapter_run, name):
    def tried():
        for cell, text, variables in chapter_run(name).claims:
            for was, expression in claims.find(text):
                claim = f"<!--= {expression} -->"
                after = text.partition(claim)[2]
                claim += re.match(r"(\s*(per cent|%|[KMG]iB))?", after)[0]
                assert untrue(cell, was + claim, variables) == []
                # A word may be no claim, and 0, 1 and 2 need none.
                if was[-1].isdigit() and was not in "012":
                    bare = untrue(cell, was, variables)
                    yield (cell, was), bare, (cell, "computed by nothing")
                for other in others(was):
                    yield (
                        (cell, was, other),
                        untrue(cell, other + claim, variables),
                        (cell, "correct the number or what computes it"),
                    )

    all_rejected(tried(), minimum=20)


# Shape comments

SHAPE = re.compile(r"\([^()]*\)")


def other_shapes(comment):
    """Yield (how, comment) for what a shape comment may have become."""
    body, colon, remark = comment.partition(":")
    for match in SHAPE.finditer(body):
        axes = [axis.strip() for axis in match.group()[1:-1].split(",")]
        axes = [axis for axis in axes if axis]
        for how, new in other_axes(axes):
            shape = f"({', '.join(new)}{',' * (len(new) == 1)})"
            before, after = body[: match.start()], body[match.end() :]
            yield how, before + shape + after + colon + remark


def other_axes(axes):
    """Yield (how, axes) with an axis removed, added, swapped or renamed."""
    for place, axis in enumerate(axes):
        before, after = axes[:place], axes[place + 1 :]
        yield "removed", before + after
        if axis != "...":
            yield "added", [*before, "C", axis, *after]
            yield "added", [*before, axis, "1", *after]
        if axis.isdigit():
            yield "number", [*before, str(int(axis) + 1), *after]
        if after and axis not in ("...", after[0]):
            yield "swapped", [*before, after[0], axis, *after[1:]]
        for match in re.finditer("[A-Z]", axis):
            for letter in sorted(shapes.LETTERS - {match.group()}):
                new = axis[: match.start()] + letter + axis[match.end() :]
                yield "renamed", [*before, new, *after]


def scopes_at(scopes):
    """Map each place to the scopes, all different, that it was checked in."""
    different = {
        (tuple(sorted(scope.known.items())), tuple(scope.log)): scope
        for scope in scopes
    }
    found = {}
    for scope in different.values():
        for place in {place for place, _ in scope.log}:
            found.setdefault(place, []).append(scope)
    return found


def replayed(scope, comments):
    """Check the comments again on what was seen; return what fails."""
    again = shapes.Scope(scope.known, scope.toy)
    try:
        for place, value in scope.log:
            shapes.check_shape(value, comments[place], again, place)
    except shapes.ShapeError as error:
        return [str(error)]
    return []


def with_comment(source, line, comment):
    """Return a cell's source with another shape comment on a line."""
    lines = source.split("\n")
    old = shapes.comments(source)[line]
    lines[line - 1] = lines[line - 1].replace(old, comment)
    return "\n".join(lines)


@cache
def copied():
    """Map each name that two notebooks define to one cell that does."""
    seen, twice = {}, {}
    for notebook in stored_chapters():
        for name, cell, _ in book.bodies(notebook):
            first = seen.setdefault(name, (notebook.path, cell))
            if first[0] != notebook.path:
                twice[name] = first[1]
    return twice


def rejections(notebook, cell, line, comment):
    """Yield what the checks of a file say of another comment on a line.

    They see the cell, its twin, the Notation table, and a copy elsewhere:
    enough to judge a comment, and thousands are altered.
    """
    source = with_comment(cell.source, line, comment)
    new = NotebookNode(cell, source=source)
    place = notebook.cells.index(cell)
    cells = [c for c in notebook.markdown if "letter in shapes" in c.source]
    if "tensorflow" in tags(cell):
        cells.append(notebook.cells[place - 1])
    cells.append(new)
    if "pytorch" in tags(cell):
        cells.append(notebook.cells[place + 1])
    part = Notebook(notebook.path, NotebookNode(cells=cells))
    yield from code.letters_are_in_the_notation(part)
    yield from twins.twins_say_the_same_shapes(part)
    names = {name for name, *_ in book.bodies(part)}
    copies = [copied()[name] for name in names & copied().keys()]
    other = Notebook(notebook.path, NotebookNode(cells=copies))
    yield from book.one_name_one_body([other, part])


def turns_wrong(right, after):
    """Return an answer that is right so many times, and then one too low."""
    calls = count()

    def answer(*args, **named):
        return right(*args, **named) - int(next(calls) >= after)

    return answer


def attempt_exercises(variables):
    """Give each checker of a chapter a right answer and wrong ones."""
    for name, check in list(variables.items()):
        if name.startswith("check_"):
            right = variables[f"{name.removeprefix('check_')}_solution"]
            check(right)
            for after in range(3):
                with suppress(Exception):  # where no number is asked for
                    check(turns_wrong(right, after))


def accepted_shapes(notebook, scopes):
    """Try other shapes in each comment; return (counts, what is accepted).

    counts: how often each kind of change was made; scopes: from scopes_at.
    """
    lines = {
        f"{notebook.name(cell)}, line {line}": (cell, line, comment)
        for cell in notebook.code
        for line, comment in shapes.comments(cell.source).items()
    }
    comments = {place: comment for place, (*_, comment) in lines.items()}
    tried, accepted = Counter(), []
    for place, (cell, line, comment) in lines.items():
        if place not in scopes and cell.source.startswith("# @title Recap"):
            continue  # a branch that only the chapter it comes from takes
        assert place in scopes, f"no run comes to {place}"
        assert not any(replayed(s, comments) for s in scopes[place])
        for how, new in other_shapes(comment):
            tried[how] += 1
            changed = comments | {place: new}
            seen = (replayed(scope, changed) for scope in scopes[place])
            found = chain(
                chain.from_iterable(seen),
                rejections(notebook, cell, line, new),
            )
            if message := next(found, None):
                assert label(notebook.path) in message
                assert "orrect the comment" in message or "copies" in message
            else:
                accepted.append((how, place, comment, new))
    return tried, accepted


@pytest.mark.xdist_group("frameworks")
@pytest.mark.parametrize("name", NAMES)
def test_altered_shape_comment(chapter_run, name):
    """Each axis removed, added or renumbered, each letter put for another.

    What is true all the same survives: the letters of a size that nothing
    else in the cell or call, its twin or its docstring states, are a choice
    of words; and `(..., S)` says less than `(..., T, S)`.
    """
    run = chapter_run(name)
    attempt_exercises(run.namespace)
    scopes = scopes_at(run.scopes)
    tried, accepted = accepted_shapes(stored_chapter(name), scopes)
    assert tried.total() > 1000
    for how, *what in accepted:
        weaker = how in ("removed", "added") and "..." in what[-1]
        assert how in ("renamed", "swapped") or weaker, what
    # Fewer are better; more would be a hole.
    swapped = [what for how, *what in accepted if how == "swapped"]
    assert len(accepted) < 0.25 * tried.total()
    assert len(swapped) < 0.14 * tried["swapped"], swapped
