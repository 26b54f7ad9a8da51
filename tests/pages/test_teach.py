"""The page for teachers is held to the chapters that it speaks of."""

import re
import subprocess
import sys
import textwrap
from functools import cache

import nbformat
import pytest

from tools.markdown import anchor, links, sections
from tools.notebooks import Notebook
from tools.rules.exercises import EXERCISE
from tools.settings import BOOK, ROOT, chapters
from tools.sheets.exercises import sheet

OPERATE = (BOOK / "operate.md").read_text("utf-8")
MARKING = (BOOK / "marking.md").read_text("utf-8")
LEVELS = ["easy", "medium", "hard"]


@cache
def part(title):
    """Return what stands on the page below a heading, its parts too."""
    (notebook,) = [Notebook.page(BOOK / "teach.md")]
    return "\n".join(
        text for titles, _, text in sections(notebook.cells) if title in titles
    )


def rows(text):
    """Return the cells of each row of the tables in a text, without heads."""
    found = []
    for line in re.findall(r"(?m)^\|(.*)\|$", text):
        if set(line) <= {*"-|"}:
            found.pop()  # the head
        else:
            found.append([cell.strip() for cell in line.split(" | ")])
    return found


@cache
def exercises(name):
    """Return (anchor, title, level, minutes) of a chapter's exercises."""
    found = []
    for titles, _, _ in sections(Notebook.read(ROOT / f"{name}.ipynb").cells):
        heading = EXERCISE.fullmatch(titles[-1]) if titles else None
        if heading and anchor(titles[-1]) not in [e[0] for e in found]:
            level, time = re.search(r"\((\w+), (\d+) m", titles[-1]).groups()
            title = re.sub(r"^.*?: | \(\w+, \d+ minutes\)$", "", titles[-1])
            found.append((anchor(titles[-1]), title, level, int(time)))
    return found


@cache
def outcomes(name):
    """Return what a chapter says that its reader will be able to do."""
    cells = Notebook.read(ROOT / f"{name}.ipynb").cells
    return [
        re.sub(r"<!--.*?-->", "", line)
        for titles, cell, text in sections(cells)
        if titles[1:] == ("What you will be able to do",)
        if cell.cell_type == "markdown"
        for line in re.findall(r"(?m)^- (.*)", text)
    ]


def entry(file, exercise):
    place, title, level, minutes = exercise
    return f"[{title}]({file}#{place}) ({level}, {minutes})"


@pytest.mark.parametrize("name", chapters())
def test_the_table_has_each_outcome_and_each_exercise(name):
    file = f"{name.removeprefix('book/')}.ipynb"
    tables = part("What students can do, and what tests it").split("\n### ")
    found = [rows(table) for table in tables if f"]({file}):" in table]
    wanted = [entry(file, exercise) for exercise in exercises(name)]
    assert wanted
    help = "\n".join(
        [
            f"book/teach.md should have a row for each outcome of {file}, "
            "with the exercises that test it, or *in class*:",
            *(f"| {outcome} | |" for outcome in outcomes(name)),
            *wanted,
        ]
    )
    assert len(found) == 1, help
    assert [outcome for outcome, _ in found[0]] == outcomes(name), help
    listed = [e for _, tested in found[0] for e in tested.split("; ")]
    assert sorted(e for e in listed if e != "in class") == sorted(wanted), help


def test_the_table_of_levels_counts_them():
    found = [e for name in chapters() for e in exercises(name)]
    table = {level: cells for level, *cells in rows(part("Exercises"))}
    for level in [*LEVELS, "all"]:
        times = [m for _, _, kind, m in found if level in (kind, "all")]
        hours, minutes = divmod(sum(times), 60)
        low, high = (round(n * sum(times) / 60) for n in (2, 3))
        wanted = [str(len(times)), f"{hours} h {minutes}"]
        wanted.append(f"{low} to {high} h")
        assert table[level] == wanted, f"| {level} | {' | '.join(wanted)} |"


@pytest.mark.parametrize(
    "title", ["A session of ninety minutes", "The first lab"]
)
def test_a_session_has_ninety_minutes(title):
    times = [row[0] for row in rows(part(title))]
    assert sum(map(int, times)) == 90


def test_two_weeks_have_two_sessions_a_day_and_all_chapters_but_some():
    table = rows(part("Two weeks, two sessions a day"))
    assert [row[0] for row in table] == [str(n) for n in range(1, 11)]
    plan = [
        target
        for row in table
        for _, target in links(" ".join(row))
        if target.endswith(".ipynb")
    ]
    names = [f"{n.removeprefix('book/')}.ipynb" for n in chapters()]
    optional = part("Two weeks, two sessions a day").partition("optional")[0]
    said = [name for _, name in links(optional.rpartition("\n\n")[2])]
    names = [name for name in names if name not in said]
    assert len(said) == 7
    assert list(dict.fromkeys(plan)) == names


def test_ten_weeks_take_the_chapters_in_their_order():
    table = rows(part("Ten weeks, one session a week"))
    assert [row[0] for row in table] == [str(n) for n in range(1, 11)]
    plan = [target for row in table for _, target in links(row[1])]
    names = [f"{n.removeprefix('book/')}.ipynb" for n in chapters()]
    places = [names.index(name) for name in plan if name in names]
    assert len(places) == 9 and places == sorted(places)


@pytest.mark.parametrize("kind", ["For discussion", "For an exam"])
def test_each_part_has_ten_questions_of_each_kind_or_more(kind):
    blocks = re.split(r"(?m)^(?=\*\*For|#)", part("Questions"))
    found = [block for block in blocks if block.startswith(f"**{kind}**")]
    assert len(found) == 3
    for block in found:
        numbers = re.findall(r"(?m)^(\d+)\. .*\)$", block)
        assert numbers == [str(n + 1) for n in range(len(numbers))], block
        assert len(numbers) >= 10


def test_the_walk_names_the_mistakes_of_three_students(tmp_path):
    lines = re.search(r"(?s)<<'END'\n(.*?)\n *END\n", OPERATE)[1]
    said = re.search(r"(?s)```text\n(.*?)\n *```", OPERATE)[1]
    assert "make sheet NB=book/masks.ipynb GRADED=1" in OPERATE
    sheets = tmp_path / "build" / "sheets"
    sheets.mkdir(parents=True)
    notebook = sheet(BOOK / "masks.ipynb", graded=True)
    (sheets / "masks-graded.ipynb").write_text(nbformat.writes(notebook))
    play = [sys.executable, "-c", textwrap.dedent(lines)]
    subprocess.run(play, cwd=tmp_path, check=True)
    submissions, grades = tmp_path / "build/submissions", tmp_path / "a.csv"
    command = [sys.executable, "-m", "tools.commands.grade"]
    command += ["book/masks.ipynb", str(submissions), str(grades)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found = [",".join(line.split(",")[:2]) for line in grades.open()]
    assert found == textwrap.dedent(said).strip().split("\n")


def test_each_question_has_a_marking_note():
    found = re.split(r"(?m)^## ", MARKING)[1:]
    titles = [block.partition("\n")[0] for block in found]
    parts = re.findall(r"(?m)^### (.*)", part("Questions"))
    kinds = ["for discussion", "for an exam"]
    assert titles == [f"{p}, {kind}" for p in parts for kind in kinds]
    asked = re.split(r"(?m)^\*\*For", part("Questions"))[1:]
    for block, questions in zip(found, asked, strict=True):
        numbers = re.findall(r"(?m)^(\d+)\. ", block)
        assert numbers == re.findall(r"(?m)^(\d+)\. ", questions), block
