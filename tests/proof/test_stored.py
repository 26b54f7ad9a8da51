"""Alter what the notebooks store, one thing at a time: all is rejected.

Each kind of alteration is made at every place of every notebook, and handed
to the check that has to see it. No cell is run again: the comparison has shown
that the code gives the stored outputs, so these stand for what it computes;
and a chapter's one run keeps the variables that numbers and shapes are checked
against.
"""

import re
from functools import cache

import pytest

from tools.notebooks import Notebook, paths
from tools.run import claims, shapes
from tools.run.chapter import untrue
from tools.run.compare import text_agrees
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


def texts(notebook):
    """Yield (code cell, text) of what the outputs show as text."""
    for cell in notebook.code:
        for output in cell.outputs:
            shown = output.get("data", {"text/plain": output.get("text")})
            for mime, text in shown.items():
                if mime.startswith("text/"):
                    yield cell, text


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
    none_accepted(
        (
            (notebook.name(cell), other[:60]),
            not text_agrees(text, other),
        )
        for cell, text in texts(notebook)
        for other in other_digits_and_letters(text)
    )


# Numbers in prose and in alt texts


@pytest.mark.xdist_group("frameworks")
@pytest.mark.parametrize("name", NAMES)
def test_changed_number_in_prose_or_alt_text(chapter_run, name):
    """The last digit is one more, or 0 after a 9."""

    def tried():
        for cell, text, variables in chapter_run(name).claims:
            for was, expression in claims.find(text):
                if was[-1].isdigit():
                    claim = f"<!--= {expression} -->"
                    assert untrue(cell, was + claim, variables) == []
                    other = f"{was[:-1]}{(int(was[-1]) + 1) % 10}"
                    yield (cell, was), untrue(cell, other + claim, variables)

    # This chapter says most of its numbers in words.
    none_accepted(tried(), minimum=5 if name == "sampling" else 10)


# Shape comments


def other_shapes(comment):
    """Yield a shape comment with one axis removed, added or renumbered.

    Without what it still says behind `...`, which stands for any axes.
    """
    body, colon, remark = comment.partition(":")
    for match in re.finditer(r"\(([^()]*)\)", body):
        axes = [axis.strip() for axis in match[1].split(",") if axis.strip()]
        others = []
        for place, axis in enumerate(axes):
            before, after = axes[:place], axes[place + 1 :]
            if "..." not in axes:
                others += [before + after, [*before, axis, "1", *after]]
            if axis.isdigit():
                others.append([*before, str(int(axis) + 1), *after])
        for new in others:
            shape = f"({''.join(f'{axis}, ' for axis in new).strip()})"
            before, after = body[: match.start()], body[match.end() :]
            yield before + shape + after + colon + remark


def replayed(scope, comments):
    """Check the comments again on what was seen; return what fails."""
    again = shapes.Scope(scope.known, scope.toy)
    try:
        for place, value in scope.log:
            shapes.check_shape(value, comments[place], again, place)
    except shapes.ShapeError as error:
        return str(error)
    return ""


@pytest.mark.xdist_group("frameworks")
@pytest.mark.parametrize("name", NAMES)
def test_altered_shape_comment(chapter_run, name):
    run, notebook = chapter_run(name), stored_chapter(name)
    scopes = {
        (tuple(sorted(scope.known.items())), tuple(scope.log)): scope
        for scope in run.scopes
    }.values()  # all different
    comments = {
        f"{notebook.name(cell)}, line {line}": comment
        for cell in notebook.code
        for line, comment in shapes.comments(cell.source).items()
    }
    seen = {place for scope in scopes for place, _ in scope.log}
    # What no run comes to are branches for answers that are wrong.
    assert len(seen & comments.keys()) >= 0.9 * len(comments)

    def tried():
        for place in seen & comments.keys():
            at_it = [s for s in scopes if place in dict(s.log)]
            assert not any(replayed(scope, comments) for scope in at_it)
            for new in other_shapes(comments[place]):
                changed = comments | {place: new}
                said = any(replayed(scope, changed) for scope in at_it)
                yield (place, new), said

    # Most of what this chapter does keeps its shape.
    minimum = 50 if name == "practice" else 100
    none_accepted(tried(), minimum=minimum)
