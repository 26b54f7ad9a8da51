"""What the chapters show with: printed tables, maps, and moving pictures.

The chapters import these; they explain nothing of a Transformer. The moving
pictures need IPython and the maps matplotlib, which every notebook has. Those
of a chapter stand in a module of its name.
"""

from .arcs import show_arcs
from .draw import Box, Picture
from .moving import show_break, show_figure, show_mistake, show_states
from .parts import (
    SHADES,
    SIGNED,
    painted,
    svg_image,
    svg_texts,
    table_cell,
    table_head,
    weights_table,
)
from .plots import print_table, show_mask, show_weights

__all__ = [
    "SHADES",
    "SIGNED",
    "Box",
    "Picture",
    "painted",
    "print_table",
    "show_arcs",
    "show_break",
    "show_figure",
    "show_mask",
    "show_mistake",
    "show_states",
    "show_weights",
    "svg_image",
    "svg_texts",
    "table_cell",
    "table_head",
    "weights_table",
]
