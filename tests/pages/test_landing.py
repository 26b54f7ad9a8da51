"""The line of the landing page shows what the chapters' models give."""

import json
import re
from itertools import pairwise

import pytest
import torch

from benchmarks import ribbon as line
from cellbycell.names import read_names, split_names
from cellbycell.pytorch import name_loss
from cellbycell.ribbon import TICKS, points, ribbon
from tools.notebooks import Notebook
from tools.settings import BOOK


def test_the_line_is_what_the_models_give():
    assert line.points() == points()


def test_each_part_of_2017_lowers_the_loss_with_another_seed():
    torch.set_num_threads(1)
    train_rows, held_rows = split_names(read_names())
    losses = []
    for chapter, _, _, make in line.MODELS[:-1]:
        model = line.trained(chapter, make, (1, 1), train_rows)
        with torch.no_grad():
            losses.append(name_loss(model, held_rows).item())
    assert all(a > b + 0.01 for a, b in pairwise(losses)), losses


@pytest.mark.parametrize("point", points(), ids=lambda one: one["part"])
def test_the_chapter_prints_the_loss(point):
    cells = Notebook.read(BOOK / f"{point['chapter']}.ipynb").code
    printed = json.dumps([cell.get("outputs") for cell in cells])
    assert re.search(rf"\b{point['loss']:.2f}\b", printed)


@pytest.mark.parametrize(
    "chapter", sorted({p["chapter"] for p in points()[1:]})
)
def test_a_text_quotes_names_that_are_there(chapter):
    """Below the table of names, which changes with the models."""
    notebook = Notebook.read(BOOK / f"{chapter}.ipynb")
    shows = [f'show_names("{chapter}")' in c.source for c in notebook.cells]
    text = notebook.cells[shows.index(True) + 1].source.lower()
    # What is run, and what is printed; a picture's letters are no names.
    known = re.sub('"image/png": "[^"]*"', "", json.dumps(notebook.code))
    quoted = re.findall(r"\*([a-z]+(?: [a-z]+)*)\*", text)
    assert [one for one in quoted if one not in known] == []


def test_the_drawing_has_an_axis_and_tells_training_from_parts():
    wide, tall = re.findall(r"(?s)<svg.*?</svg>", ribbon("attention"))
    circle = r'circle class="(?:point|longer)" cx="([\d.]+)" cy="([\d.]+)"'
    for drawing, at, tick in (
        (wide, 1, r'class="grid" d="M34 ([\d.]+)'),
        (tall, 0, r'class="grid" d="M([\d.]+) 16'),
    ):
        ticks = map(float, re.findall(tick, drawing))
        places = [float(one[at]) for one in re.findall(circle, drawing)]
        (x1, *_, x2), (a, *_, b) = ticks, TICKS
        losses = [a + (x - x1) / (x2 - x1) * (b - a) for x in places]
        assert losses == pytest.approx([p["loss"] for p in points()], abs=0.01)
        assert drawing.count('circle class="longer"') == 1
        assert drawing.count('circle class="here"') == 1
        assert "attention.html" not in drawing.replace("head_attention", "")
        assert len(re.findall(">300 steps[<,]", drawing)) == 7
        assert drawing.count(">800 steps<") == 1
