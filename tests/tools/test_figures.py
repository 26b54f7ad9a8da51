"""The comparison sees what an eye sees in a figure."""

import ast
import base64
import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from tools.run import shell
from tools.run.compare import FIGURE_TOLERANCE, figure_distance, image


def curves(lift=0.0, style="--", legend="wave", markers=10, noise=0.0):
    """Return a figure of several curves, as in the chapters."""
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    jitter = 1 + noise * np.random.default_rng(1).standard_normal(400)
    x = np.linspace(0, 20, 400) * jitter
    for turn in (1, 2, 3):
        axes.plot(x, np.cos(turn * x / 4) * jitter, "0.6", linewidth=0.5)
    axes.plot(x, np.sin(x) * jitter + lift, style, label=legend)
    axes.plot(x[::40][:markers], np.cos(x[::40][:markers]), "ko")
    axes.legend()
    return figure


def heatmap(cell=0.0, digit="0.30", cmap="cividis", ink="white", noise=0.0):
    """Return a heat map with numbers in its cells."""
    figure = Figure(figsize=(3, 2.8))
    axes = figure.subplots()
    table = np.arange(9).reshape(3, 3) / 10 * (1 + noise)
    table[2, 2] += cell
    axes.imshow(table, cmap=cmap, vmin=0, vmax=1)
    for (row, column), value in np.ndenumerate(table.round(1)):
        text = f"{value:.2f}" if value != 0.3 else digit
        axes.text(column, row, text, color=ink, ha="center")
    return figure


def png(figure, **metadata):
    """Print a figure as a notebook does; return the PNG in base64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, bbox_inches="tight", metadata=metadata)
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize("draw", [curves, heatmap])
def test_the_rounding_of_float32_is_not_seen(draw):
    rounded = png(draw(noise=np.finfo(np.float32).eps))
    assert figure_distance(png(draw()), rounded) <= FIGURE_TOLERANCE


SEEN = [
    (curves, {"lift": 0.02}),
    (curves, {"style": "-."}),
    (curves, {"legend": "waves"}),
    (curves, {"markers": 9}),
    (heatmap, {"cell": 0.03}),
    (heatmap, {"digit": "0.80"}),
    (heatmap, {"cmap": "viridis"}),
    (heatmap, {"ink": "black"}),
]


@pytest.mark.parametrize(("draw", "change"), SEEN)
def test_figure_that_an_eye_tells_apart_is_rejected(draw, change):
    changed = png(draw(**change))
    assert figure_distance(png(draw()), changed) > 2 * FIGURE_TOLERANCE


def test_figures_of_two_matplotlibs_are_not_compared():
    other = png(curves(lift=1), Software="Matplotlib version3.0")
    assert figure_distance(png(curves()), other) == 0


@pytest.mark.parametrize(("kind", "times"), [("png", 1), ("retina", 2)])
def test_a_dense_figure_says_how_large_it_is_shown(monkeypatch, kind, times):
    monkeypatch.setattr(shell, "FIGURES", kind)
    shell.start()
    code = "import matplotlib.pyplot as plt; plt.plot([1]); plt.show()"
    [output] = shell.execute(ast.parse(code), "x", {})
    drawn = image(output.data["image/png"])
    assert drawn.info["dpi"][0] == pytest.approx(100 * times, abs=1)
    shown = output.metadata.get("image/png", {"width": drawn.width})
    assert shown["width"] * times == pytest.approx(drawn.width, abs=1)
