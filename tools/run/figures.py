"""Write into each figure's PNG what it shows, whatever font it is drawn in.

Another release of matplotlib, or another font, gives other pixels to the
same figure. So each PNG carries its texts, and a drawing of all the rest in
which no text takes any room; `compare.py` compares these. `matplotlibrc`,
beside this file, which what records or compares is told to read, calls
`install` for every figure.
"""

import base64
import copy
import io

import matplotlib
import numpy as np
from matplotlib import ft2font
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from PIL import Image


class Renderer(RendererAgg):
    """Draw everything but texts, which have no size and are listed."""

    def __init__(self, *size):
        super().__init__(*size)
        self.texts, self.fonts = [], set()

    def draw_text(self, gc, x, y, s, prop, *rest, **named):
        self.texts.append(s)
        self.fonts.add(prop.get_name())

    def get_text_width_height_descent(self, s, prop, ismath):
        return 0, 0, 0

    def _get_font_height_metrics(self, prop):
        return 0, 0, 0  # the same, in matplotlib 3.11, which has it privately


class Canvas(FigureCanvasAgg):
    renderer = None

    def get_renderer(self):
        if self.renderer is None:
            self.renderer = Renderer(*self.get_width_height(), self.figure.dpi)
        return self.renderer


def bare_copy(figure):
    """Return a copy of a figure, its axes where no text has moved them."""
    before = figure.canvas
    Canvas(figure)  # with the one it has, pyplot would show the copy
    bare = copy.deepcopy(figure)
    figure.set_canvas(before)
    Canvas(bare)
    bare.set_layout_engine("none")
    # Not quite 0.8, or the middle would lie just between two pixels.
    bare.subplotpars.update(
        left=0.2, right=0.8004, bottom=0.2, top=0.8004, wspace=0.2, hspace=0.2
    )
    for axes in bare.axes:
        if place := axes.get_subplotspec():
            axes.set_subplotspec(place)
        elif axes.get_label() == "<colorbar>":
            axes.set_position([0.95, 0.1, 0.02, 0.8])
        for image in axes.images:  # releases round their edges differently
            redraw_as_cells(image)
    return bare


def redraw_as_cells(image):
    """Draw an image's pixels as rectangles in its stead."""
    left, right, bottom, top = image.get_extent()
    if image.origin == "upper":
        bottom, top = top, bottom
    rows, columns = image.get_size()
    image.axes.pcolormesh(
        np.linspace(left, right, columns + 1),
        np.linspace(bottom, top, rows + 1),
        image.get_array(),
        cmap=image.cmap,
        norm=image.norm,
        alpha=image.get_alpha(),
        zorder=image.zorder,
    )
    image.set_visible(False)


def contents(figure):
    """Return what a figure shows, as texts to be written into its PNG."""
    canvas = bare_copy(figure).canvas
    renderer = canvas.get_renderer()
    canvas.draw()
    drawing = io.BytesIO()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba()))
    # At half the size: it is stored beside the figure, not to be looked at.
    pixels.convert("RGB").reduce(2).save(drawing, "PNG", optimize=True)
    return {
        "Texts": "\n".join(renderer.texts),
        "Drawing": base64.b64encode(drawing.getvalue()).decode(),
        "Painter": f"matplotlib {matplotlib.__version__}, "
        f"FreeType {ft2font.__freetype_version__}, "
        + ", ".join(sorted(renderer.fonts)),
    }


def install(figure):
    """Make a figure write its contents into the PNGs that it prints."""
    print_figure = figure.canvas.print_figure

    def print_with_contents(*args, **named):
        return print_figure(*args, metadata=contents(figure), **named)

    figure.canvas.print_figure = print_with_contents
