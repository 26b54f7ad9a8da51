"""Tables that are printed, and maps that matplotlib draws."""

import numpy as np


def print_table(columns, rows):
    """Print the rows of a table below the names of its columns.

    Parameters
    ----------
    columns
        The names of the columns.
    rows
        {name of the row: what stands in it, numbers or words}.
    """
    table = [
        [name, *(f"{c:.4f}" if isinstance(c, float) else str(c) for c in row)]
        for name, row in {"": columns, **rows}.items()
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *row in table:
        cells = (f"{c:>{w}}" for c, w in zip(row, widths[1:], strict=True))
        print(f"{name:{widths[0]}}", *cells, sep="  ")


def show_weights(ax, weights, tokens):
    """Draw weights as a map, with tokens as ticks.

    Parameters
    ----------
    ax
        The axes of matplotlib.
    weights
        (T, S), from 0 to 1.
    tokens
        The ticks; T and S are as many.

    Returns
    -------
    matplotlib.image.AxesImage
        For a colour bar.
    """
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    for (row, column), weight in np.ndenumerate(weights):
        ink = "white" if weight > 0.725 else "black"
        middle = {"ha": "center", "va": "center", "color": ink}
        ax.text(column, row, f"{weight:.2f}".lstrip("0"), **middle)
    ax.set_xticks(range(weights.shape[1]), tokens, rotation=90)
    ax.set_yticks(range(weights.shape[0]), tokens)
    return image


def show_mask(ax, mask, row_names, column_names):
    """Draw a mask: blue where a query may attend, else light grey.

    Parameters
    ----------
    ax
        The axes of matplotlib.
    mask
        (T, S), True = may attend.
    row_names, column_names
        The ticks, T and S.
    """
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["0.85", "tab:blue"])
    ax.imshow(np.where(mask, 1.0, 0.0), cmap=colours, vmin=0, vmax=1)
    ax.set_xticks(range(len(column_names)), column_names, rotation=90)
    ax.set_yticks(range(len(row_names)), row_names)
    ax.set_xticks(np.arange(len(column_names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(row_names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=2)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
