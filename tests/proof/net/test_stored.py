"""Alter what the notebooks store, one thing at a time: all is rejected.

Each kind of alteration is made at every place of every notebook, and handed
to the check that has to see it. No cell is run again: the comparison has shown
that the code gives the stored outputs, so these stand for what it computes;
and a chapter's one run keeps the variables that numbers and shapes are checked
against.
"""

import base64
import io
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import count, pairwise

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output
from PIL import Image, ImageDraw
from PIL.PngImagePlugin import PngInfo

from tools.net import claims, shapes
from tools.net.compare import difference
from tools.net.run import untrue
from tools.notebooks import Notebook, paths
from tools.settings import BOOK

NAMES = [path.stem for path in paths()]
MAX_PLACES = 100


@cache
def stored_chapter(name):
    """Return a chapter's notebook as it is stored."""
    return Notebook.read(BOOK / f"{name}.ipynb")


def none_accepted(tried, minimum=1):
    """Assert that each alteration is rejected.

    tried: pairs of what was altered, and what is said of it.
    """
    tried = list(tried)
    accepted = [what for what, said in tried if not said]
    assert len(tried) >= minimum
    assert not accepted, f"{len(accepted)} of {len(tried)}: {accepted[:20]}"


# Outputs


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
    """Yield a text with a digit, a word's first letter, or its end changed.

    In a long text, as of a drawing, at MAX_PLACES places spread evenly. A
    zero is the same number with any exponent.
    """
    yield text + "\n"
    fixed = re.sub(r"\b(0\.0*e)[+-]\d+", lambda m: m[1].ljust(len(m[0])), text)
    places = [m.start() for m in re.finditer(r"\d|\b[A-Za-z]", fixed)]
    for place in places[:: len(places) // MAX_PLACES + 1]:
        char = text[place]
        new = str((int(char) + 1) % 10) if char.isdigit() else char.swapcase()
        yield text[:place] + new + text[place + 1 :]


@pytest.mark.parametrize("name", NAMES)
def test_changed_digit_or_letter_in_an_output(name):
    notebook = stored_chapter(name)
    for cell in notebook.code:
        assert difference(cell.outputs, cell.outputs) == ""
    none_accepted(
        (
            (notebook.name(cell), text[:60]),
            difference(with_text(cell, place, mime, text), cell.outputs),
        )
        for cell in notebook.code
        for place, mime, whole in texts(cell)
        for text in other_digits_and_letters(whole)
    )


def rearranged(notebook, cell):
    """Yield what the outputs of a cell may have become: (how, outputs)."""
    outputs = cell.outputs
    yield "added", [*outputs, new_output("stream", name="stdout", text="1\n")]
    for place in range(len(outputs)):
        yield "removed", outputs[:place] + outputs[place + 1 :]
        yield "doubled", [*outputs[: place + 1], *outputs[place:]]
    for first, second in pairwise(range(len(outputs))):
        order = list(outputs)
        order[first], order[second] = order[second], order[first]
        yield "exchanged", order
    for other in notebook.code[notebook.code.index(cell) + 1 :]:
        if outputs and list(texts(other)) not in ([], list(texts(cell))):
            yield f"that of {notebook.name(other)}", other.outputs
            break


@pytest.mark.parametrize("name", NAMES)
def test_outputs_removed_doubled_or_exchanged(name):
    notebook = stored_chapter(name)
    none_accepted(
        ((notebook.name(cell), how), difference(outputs, cell.outputs))
        for cell in notebook.code
        for how, outputs in rearranged(notebook, cell)
    )


# Figures


def figures(notebook):
    """Yield (cell, output's place, PNG in base64) of each figure."""
    for cell in notebook.code:
        for place, output in enumerate(cell.outputs):
            if png := output.get("data", {}).get("image/png"):
                yield cell, place, png


def redrawn(png):
    """Yield (how, image) for a figure with a thin line in it, or mirrored."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    yield "mirrored", image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    width, height = image.size
    stroke = [(width // 4, height // 2), (3 * width // 4, height // 3)]
    ImageDraw.Draw(image).line(stroke, fill="#b35806", width=2)
    yield "a thin line", image


def as_png(image, contents):
    """Return an image as PNG in base64, which says that it shows contents."""
    info, buffer = PngInfo(), io.BytesIO()
    for name in ("Texts", "Drawing", "Painter"):
        info.add_text(name, contents[name])
    image.save(buffer, "png", pnginfo=info)
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize("name", NAMES)
def test_figure_drawn_on_erased_or_exchanged(name):
    notebook = stored_chapter(name)
    found = list(figures(notebook))

    def other_figures(png):
        contents = Image.open(io.BytesIO(base64.b64decode(png))).info
        for how, image in redrawn(png):
            yield how, as_png(image, contents)
        for cell, _, other in found:
            if other != png:
                yield f"exchanged with {notebook.name(cell)}", other

    none_accepted(
        (
            (notebook.name(cell), how),
            difference(with_text(cell, place, "image/png", new), cell.outputs),
        )
        for cell, place, png in found
        for how, new in other_figures(png)
    )


# Numbers in prose and in alt texts


def one_more(numeral):
    """Return a numeral whose last digit is one more, or 0 after a 9."""
    return f"{numeral[:-1]}{(int(numeral[-1]) + 1) % 10}"


@pytest.mark.xdist_group("frameworks")
@pytest.mark.parametrize("name", NAMES)
def test_changed_number_in_prose_or_alt_text(chapter_run, name):
    def tried():
        for cell, text, variables in chapter_run(name).claims:
            for was, expression in claims.find(text):
                if not was[-1].isdigit():
                    continue
                claim = f"<!--= {expression} -->"
                after = text.partition(claim)[2]
                claim += re.match(r"(\s*(per cent|%|[KMG]iB))?", after)[0]
                assert untrue(cell, was + claim, variables) == []
                yield (cell, was, "bare"), untrue(cell, was, variables)
                said = untrue(cell, one_more(was) + claim, variables)
                yield (cell, was, "one more"), said

    none_accepted(tried(), minimum=20)


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
    """Yield (how, axes) with an axis removed, added, renumbered or swapped."""
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
        return str(error)
    return ""


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


@pytest.mark.xdist_group("frameworks")
@pytest.mark.parametrize("name", NAMES)
def test_altered_shape_comment(chapter_run, name):
    """Each axis removed, added, renumbered, or exchanged for the next.

    What is true all the same survives: two letters may have one size, or be
    free to have any, and `(..., S)` says less than `(..., T, S)`.
    """
    run, notebook = chapter_run(name), stored_chapter(name)
    attempt_exercises(run.namespace)
    scopes = scopes_at(run.scopes)
    comments = {
        f"{notebook.name(cell)}, line {line}": (cell, comment)
        for cell in notebook.code
        for line, comment in shapes.comments(cell.source).items()
    }
    as_stored = {place: comment for place, (_, comment) in comments.items()}
    tried, accepted = Counter(), Counter()
    for place, (cell, comment) in comments.items():
        if place not in scopes and cell.source.startswith("# @title Recap"):
            continue  # a branch that only the chapter it comes from takes
        assert place in scopes, f"no run comes to {place}"
        assert not any(replayed(s, as_stored) for s in scopes[place])
        for how, new in other_shapes(comment):
            changed = as_stored | {place: new}
            said = any(replayed(scope, changed) for scope in scopes[place])
            weaker = how in ("removed", "added") and "..." in new
            assert said or how == "swapped" or weaker, (place, new)
            tried[how] += 1
            accepted[how] += not said
    assert tried.total() > 200
    assert accepted["swapped"] < 0.3 * tried["swapped"]
