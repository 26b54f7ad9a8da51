"""The comparison sees what an eye sees in a figure, and no other font.

Nor another release of matplotlib: `drawn_elsewhere/` holds the figures below
as 3.10.9 drew them, by `PYTHONPATH=. python tests/proof/test_figures.py`
from the top level, with that release, pytest and nbformat installed.
"""

import base64
import io
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from tools.run.compare import (
    ENVIRONMENT,
    FIGURE_TOLERANCE,
    figure_difference,
    figure_distance,
    image,
)
from tools.run.figures import install

DRAWN_ELSEWHERE = Path(__file__).parent / "drawn_elsewhere"
SETTINGS = ENVIRONMENT["MATPLOTLIBRC"]
ANOTHER_FONT = "STIXGeneral"  # comes with matplotlib


def curves(
    lift=0.0, style="--", legend="wave", markers=10, marker="o", noise=0.0
):
    """Return a figure of several curves, as in the chapters."""
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    jitter = 1 + noise * np.random.default_rng(1).standard_normal(400)
    x = np.linspace(0, 20, 400) * jitter
    for turn in (1, 2, 3):
        axes.plot(x, np.cos(turn * x / 4) * jitter, "0.6", linewidth=0.5)
    axes.plot(
        x, np.sin(x) * jitter + lift, style, color="#2b4c7e", label=legend
    )
    dots = x[::40][:markers]
    axes.plot(dots, np.cos(dots), marker, color="black", label="dots")
    axes.axvline(6.3 * (1 + noise), color="grey", linewidth=0.4)
    axes.set_xlabel("position $p$")
    axes.legend()
    figure.tight_layout()
    return figure


def heatmaps(cell=0.0, digit="0.30", cmap="cividis", ink="white", noise=0.0):
    """Return two heat maps with numbers in their cells and one colour bar."""
    figure = Figure(figsize=(6, 2.8), layout="constrained")
    panels = figure.subplots(1, 2)
    tables = np.arange(18).reshape(2, 3, 3) % 10 / 10 * (1 + noise)
    tables[1, 2, 2] += cell
    for axes, table in zip(panels, tables, strict=True):
        drawn_cells = axes.imshow(table, cmap=cmap, vmin=0, vmax=1)
        for (row, column), value in np.ndenumerate(table.round(1)):
            text = f"{value:.2f}" if value != 0.3 else digit
            axes.text(column, row, text, color=ink, ha="center")
        axes.set_xticks(range(3), ("the", "cat", "sat"), rotation=45)
    figure.colorbar(drawn_cells, ax=panels).set_label("weight")
    return figure


def printed(figure):
    """Print a figure as a notebook does; return the PNG in base64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    return base64.b64encode(buffer.getvalue()).decode()


def png(figure):
    """Print a figure as the kernels that record and compare do."""
    install(figure)
    return printed(figure)


@cache
def drawn(draw, font="DejaVu Sans"):
    """Return the PNG of a figure as it is drawn without a change."""
    with matplotlib.rc_context({"font.family": font}):
        return png(draw())


def without_contents(encoded, **kept):
    """Return a PNG with the same pixels that does not say what it shows."""
    buffer = io.BytesIO()
    info = PngInfo()
    for name, text in kept.items():
        info.add_text(name, text)
    image(encoded).save(buffer, "PNG", pnginfo=info)
    return base64.b64encode(buffer.getvalue()).decode()


DRAWN = [curves, heatmaps]
SEEN = [
    (curves, {"lift": 0.02}),
    (curves, {"style": "-."}),
    (curves, {"legend": "waves"}),
    (curves, {"markers": 9}),
    (curves, {"marker": "s"}),
    (heatmaps, {"cell": 0.03}),
    (heatmaps, {"digit": "0.80"}),
    (heatmaps, {"cmap": "viridis"}),
]


@pytest.fixture(autouse=True, scope="module")
def as_in_the_kernels():
    """Draw with the settings of the kernels that record and compare."""
    with matplotlib.rc_context(fname=SETTINGS):
        yield


@pytest.mark.parametrize("draw", DRAWN)
def test_same_figure_agrees(draw):
    again, font = png(draw()), drawn(draw, ANOTHER_FONT)
    rounded = png(draw(noise=1e-6))
    assert figure_distance(drawn(draw), again) == 0
    assert figure_distance(drawn(draw), font) > FIGURE_TOLERANCE
    for computed in (again, font, rounded):
        assert figure_difference(drawn(draw), computed) == ""


@pytest.mark.parametrize("draw", DRAWN)
def test_same_figure_by_another_matplotlib_agrees(draw):
    file = DRAWN_ELSEWHERE / f"{draw.__name__}.png"
    painter = Image.open(file).info["Painter"]
    if painter.startswith(f"matplotlib {matplotlib.__version__},"):
        pytest.skip("this is the matplotlib that drew them")
    stored = base64.b64encode(file.read_bytes()).decode()
    assert figure_distance(stored, drawn(draw)) > FIGURE_TOLERANCE
    assert figure_difference(stored, drawn(draw)) == ""


@pytest.mark.parametrize(("draw", "change"), SEEN)
def test_figure_that_an_eye_tells_apart_is_rejected(draw, change):
    changed = png(draw(**change))
    assert figure_difference(drawn(draw), changed)
    # In another font only the contents tell, in the same the pixels do, too.
    assert figure_difference(drawn(draw, ANOTHER_FONT), changed)
    plain = map(without_contents, (drawn(draw), changed))
    assert figure_distance(*plain) > 2 * FIGURE_TOLERANCE


def test_a_difference_is_named():
    plain, info = drawn(curves), image(drawn(curves)).info
    contents = {name: info[name] for name in ("Texts", "Drawing", "Painter")}
    # Of two figures with the same contents, the pixels still count.
    lifted = without_contents(png(curves(lift=0.02)), **contents)
    for stored, computed, expected in (
        (
            drawn(heatmaps),
            png(heatmaps(digit="0.80")),
            "The figure says '0.80' where '0.30' is stored.",
        ),
        (drawn(heatmaps), png(heatmaps(ink="black")), "differs by"),
        (lifted, plain, "differs by"),
        (without_contents(plain), plain, "another way than `make outputs`"),
    ):
        assert expected in figure_difference(stored, computed)


@pytest.mark.parametrize("draw", DRAWN)
def test_figure_looks_the_same_with_and_without_its_contents(draw):
    plain, figure = draw(), draw()
    install(figure)
    for _ in range(2):
        assert figure_distance(printed(plain), printed(figure)) == 0


if __name__ == "__main__":
    with matplotlib.rc_context(fname=SETTINGS):
        for draw in DRAWN:
            file = DRAWN_ELSEWHERE / f"{draw.__name__}.png"
            file.write_bytes(base64.b64decode(png(draw())))
    print(f"Drawn by matplotlib {matplotlib.__version__}.")
