"""The parts of a moving picture: cells of tables, and drawings."""

import numpy as np

# Blue for a share from 0 to 1, and orange to purple for a number from -1 to 1:
# matplotlib's maps Blues and PuOr, which the figures have. Nothing is white.
SHADES = """#f7fbff #eef5fc #e3eef9 #d9e8f5 #d0e1f2 #c6dbef #b7d4ea #a6cee4
#94c4df #7fb9da #6aaed6 #5ba3d0 #4a98c9 #3b8bc2 #2e7ebc #2070b4 #1764ab #0d57a1
#084a91 #083c7d #08306b""".split()
SIGNED = """#7f3b08 #974907 #b25706 #c96d0d #e08214 #ef9e3c #fcb761 #fdcc8c
#fee0b6 #faecd7 #f6f6f7 #e8e9f1 #d8daeb #c5c2de #b1aad1 #988dbe #8073ac #6a4c9a
#532687 #3f1268 #2d004b""".split()


def painted(colour):
    """Return the style of a cell: its colour, and letters that it shows.

    Parameters
    ----------
    colour
        As in "#08306b".

    Returns
    -------
    str
        CSS, with black or white letters.
    """
    r, g, b = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    ink = "#fff" if 30 * r + 59 * g + 11 * b < 10700 else "#000"
    return f"background:{colour};color:{ink}"


def table_cell(part, text, share=None, shades=SHADES):
    """Return a cell of a table, coloured by its share.

    Parameters
    ----------
    part
        The cell's name, for the script.
    text
        What stands in it.
    share
        From 0 to 1; None for no colour.
    shades
        The 21 colours, from 0 to 1.

    Returns
    -------
    str
        HTML.
    """
    look = ""
    if share is not None:
        look = f' style="{painted(shades[int(20 * share + 0.5)])}"'
    return f'<td data-part="{part}"{look}>{text}</td>'


def table_head(part, text, look="head"):
    """Return the head of a row or a column.

    Parameters
    ----------
    part
        The cell's name, for the script.
    text
        What stands in it.
    look
        "head" for a row, "up" for a narrow column.

    Returns
    -------
    str
        HTML.
    """
    return f'<th data-part="{part}" class="{look}">{text}</th>'


def weights_table(rows, columns, weights):
    """Return weights as a table: a row for each query, and a legend.

    Parameters
    ----------
    rows
        The T tokens of the queries.
    columns
        The S tokens of the keys.
    weights
        (T, S); NaN where a key is blocked, which gets no colour.

    Returns
    -------
    str
        HTML.
    """
    table = '<tr><td style="width:19%"></td>'
    for s, token in enumerate(columns):
        table += table_head(f"key-{s}", token, "up")
    for t, token in enumerate(rows):
        table += "<tr>" + table_head(f"query-{t}", token)
        for s, weight in enumerate(weights[t]):
            share = None if np.isnan(weight) else weight
            text = f"{share or 0:.2f}"
            table += table_cell(f"weight-{t}-{s}", text, share)
    bar = "".join(f'<b style="background:{shade}"></b>' for shade in SHADES)
    bar = f'<p class="bar">weight&ensp;0&ensp;{bar}&ensp;1</p>'
    return f"<table>{table}</table>{bar}"


def svg_image(label, size, drawing):
    """Return a drawing as an image, which stands where scripts may not.

    Parameters
    ----------
    label
        What is said of it where it is not seen.
    size
        Width and height in one text, 360 wide.
    drawing
        SVG without double quotes.

    Returns
    -------
    str
        HTML.
    """
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label="
        f"'{label}' viewBox='0 0 {size}' fill='none'>{drawing}</svg>"
    )
    for sign in "%#\n":
        svg = svg.replace(sign, f"%{ord(sign):02x}")
    # Its paper and its width, where a notebook is not trusted with styles.
    look = 'width="448" style="background:#fff"'
    return f'<img alt="{label}" {look} src="data:image/svg+xml,{svg}">'


def svg_texts(texts):
    """Return the words of a drawing.

    Parameters
    ----------
    texts
        Pairs of a place (x, y) and a text.

    Returns
    -------
    str
        SVG.
    """
    words = "".join(
        f"<text x='{x}' y='{y}'>{text}</text>" for (x, y), text in texts
    )
    return f"<g style='fill:#222;font:13px sans-serif'>{words}</g>"
