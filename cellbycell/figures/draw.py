"""The book's picture language: token, vector, matrix, head, layer, machine.

A picture is SVG, made here and stored as a cell's output. Its colours are
variables: the site gives them for light and dark, and where nobody does, as
in Colab, the picture has white paper and the colours of `ROLES`.

A role has a colour and a letter, so that it is told without colour, too.
"""

from html import escape

import numpy as np

# The letter at a vector's head, and the colour where the page has none.
ROLES = {
    "token": ("", "#4a5568"),
    "query": ("q", "#1f6fb2"),
    "key": ("k", "#b35806"),
    "value": ("v", "#1b7a43"),
    "output": ("o", "#6b2c91"),
    "mask": ("", "#8a94a3"),
    "wrong": ("", "#b3264e"),
}
WIDTH = 380  # of every picture: letters are legible on a phone
CELL = 30  # the side of a matrix's cell
_INK = "var(--book-text,#1d2433)"
_PAPER = "var(--picture-paper,#fff)"
_FONT = "font:13px var(--pst-font-family-base,system-ui,sans-serif)"


def colour(role):
    """Return the colour of a role, or ink for a role that has none."""
    return f"var(--role-{role},{ROLES[role][1]})" if role in ROLES else _INK


def _number(x):
    """Return a coordinate in as few characters as it takes."""
    return f"{round(float(x), 1):g}"


class Box:
    """Where a part of a picture stands, for arrows to begin and end at.

    Parameters
    ----------
    x, y
        Its upper left corner.
    width, height
        Its size.
    """

    def __init__(self, x, y, width, height):
        self.x, self.y, self.width, self.height = x, y, width, height

    @property
    def left(self):
        """Return the middle of the left side."""
        return self.x, self.y + self.height / 2

    @property
    def right(self):
        """Return the middle of the right side."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def top(self):
        """Return the middle of the upper side."""
        return self.x + self.width / 2, self.y

    @property
    def bottom(self):
        """Return the middle of the lower side."""
        return self.x + self.width / 2, self.y + self.height


class Picture:
    """A drawing that a notebook shows, built part by part.

    Parameters
    ----------
    height
        In units of which a picture is `WIDTH` wide; letters take 13.
    alt
        What is said of it where it is not seen, 20 characters or more.
    """

    def __init__(self, height, alt):
        if len(alt) < 20:
            raise ValueError(f"say what is seen, in 20 characters: {alt!r}")
        self.height, self.alt, self.drawn = height, alt, []

    def __repr__(self):
        """Return what is said of the picture, where only text is shown."""
        return f"[{self.alt}]"

    def _repr_svg_(self):
        """Return the picture for a notebook."""
        size = f"0 0 {WIDTH} {_number(self.height)}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" '
            f'viewBox="{size}" width="{1.4 * WIDTH:.0f}" role="img" '
            f'aria-label="{escape(self.alt)}" fill="none" '
            f'style="background:{_PAPER};{_FONT}">'
            f"{''.join(self.drawn)}</svg>"
        )

    def add(self, svg):
        """Append SVG of one's own."""
        self.drawn.append(svg)

    def text(self, x, y, text, *, role=None, at="middle", bold=False, size=13):
        """Write a line of text; `at` is "start", "middle" or "end" of it."""
        style = f"fill:{colour(role)};text-anchor:{at}"
        style += ";font-weight:600" * bold
        style += f";font-size:{size}px" * (size != 13)
        self.add(
            f'<text x="{_number(x)}" y="{_number(y)}" style="{style}">'
            f"{escape(str(text))}</text>"
        )

    def rect(self, box, style, radius=4):
        """Draw a rectangle with a style of its own."""
        x, y, w, h = map(_number, (box.x, box.y, box.width, box.height))
        self.add(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{radius}" '
            f'style="{style}"/>'
        )

    def line(self, *points, role=None, width=1.5, dashed=False):
        """Draw a line through points."""
        path = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        style = f"stroke:{colour(role)};stroke-width:{width}"
        style += ";stroke-dasharray:4 3" * dashed
        self.add(f'<path d="M{path}" style="{style}"/>')

    def arrow(self, *points, role=None, text="", width=1.5, dashed=False):
        """Draw an arrow through points, with a text at its middle."""
        (ax, ay), (bx, by) = points[-2:]
        along = np.array([bx - ax, by - ay], float)
        along /= np.hypot(*along) or 1
        side = np.array([-along[1], along[0]])
        end = np.array([bx, by], float)
        base = end - 7 * along
        self.line(
            *points[:-1], tuple(base), role=role, width=width, dashed=dashed
        )
        tip = "L".join(
            " ".join(map(_number, p))
            for p in (end, base + 3.5 * side, base - 3.5 * side)
        )
        self.add(f'<path d="M{tip}Z" style="fill:{colour(role)}"/>')
        if text:
            x, y = (ax + bx) / 2, (ay + by) / 2
            level = abs(along[0]) > abs(along[1])
            place = (x, y - 6) if level else (x + 6, y + 4)
            at = "middle" if level else "start"
            self.text(*place, text, role=role, at=at, size=12)

    def token(self, x, y, text, role="token", width=None):
        """Draw a token, a chip of 24 in height; x is its left side."""
        width = width or max(28, 16 + 7.5 * len(str(text)))
        box = Box(x, y, width, 24)
        self.rect(box, f"stroke:{colour(role)};fill:none", radius=12)
        self.text(box.top[0], y + 17, text)
        return box

    def tokens(self, y, texts, role="token", left=0, right=WIDTH):
        """Draw a sentence across the picture; return its boxes."""
        step = (right - left) / len(texts)
        return [
            self.token(left + i * step + 2, y, text, role, width=step - 4)
            for i, text in enumerate(texts)
        ]

    def matrix(
        self, x, y, numbers, role="token", *, texts=None, rows=(), columns=(),
        cell=CELL, height=22, name="",
    ):  # fmt: skip
        """Draw numbers in cells, the darker the larger; return its box.

        numbers: (rows, columns), NaN for a blocked cell, which is hatched;
        texts: what stands in the cells, in place of the numbers ("" for
        none); rows and columns: names at the left and above; name: below.
        """
        numbers = np.atleast_2d(np.asarray(numbers, float))
        largest = np.nanmax(np.abs(numbers)) if numbers.size else 1
        for (r, c), value in np.ndenumerate(numbers):
            box = Box(x + c * cell, y + r * height, cell, height)
            edge = f"stroke:{colour(role)};stroke-width:1;"
            if np.isnan(value):
                self.rect(
                    box, edge + f"fill:{colour('mask')};fill-opacity:.25", 0
                )
                ends = (box.x, box.y + height), (box.x + cell, box.y)
                self.line(*ends, role="mask", width=1)
                continue
            share = abs(value) / largest if largest else 0
            fill = (
                f"fill:{colour(role)};fill-opacity:{0.04 + 0.36 * share:.2f}"
            )
            self.rect(box, edge + fill, 0)
            text = f"{value:g}" if texts is None else texts[r][c]
            self.text(
                box.top[0], box.y + height / 2 + 4.5,
                str(text).replace("-", "−"), size=12,
            )  # fmt: skip
        for r, text in enumerate(rows):
            self.text(x - 6, y + (r + 0.5) * height + 4.5, text, at="end")
        for c, text in enumerate(columns):
            self.text(x + (c + 0.5) * cell, y - 6, text)
        whole = Box(x, y, cell * numbers.shape[1], height * numbers.shape[0])
        if name:
            middle = whole.bottom[0]
            self.text(middle, whole.bottom[1] + 16, name, role=role, size=12)
        return whole

    def vector(self, x, y, numbers, role="token", **more):
        """Draw a vector as a row of cells, its role's letter at its head."""
        letter = ROLES[role][0]
        if letter:
            self.text(x - 6, y + 15.5, letter, role=role, at="end", bold=True)
        return self.matrix(x, y, [numbers], role, **more)

    def layer(self, x, y, width, text, role="token", height=28):
        """Draw a layer: a filled box with its name; return its box."""
        box = Box(x, y, width, height)
        self.rect(
            box,
            f"stroke:{colour(role)};stroke-width:1.5;fill:{colour(role)};"
            "fill-opacity:.1",
        )
        self.text(box.top[0], y + height / 2 + 4.5, text)
        return box

    def head(self, x, y, width, text, role="query", height=28):
        """Draw an attention head: a layer with cut corners."""
        cut = 8
        corners = [
            (x + cut, y), (x + width - cut, y), (x + width, y + height),
            (x, y + height),
        ]  # fmt: skip
        path = "L".join(" ".join(map(_number, p)) for p in corners)
        self.add(
            f'<path d="M{path}Z" style="stroke:{colour(role)};stroke-width:'
            f'1.5;fill:{colour(role)};fill-opacity:.1"/>'
        )
        self.text(x + width / 2, y + height / 2 + 4.5, text)
        return Box(x, y, width, height)

    def machine(self, x, y, width, text, role="token", height=44):
        """Draw a machine: a screen on a foot, its name on it."""
        box = self.layer(x, y, width, text, role, height)
        x, foot = box.bottom
        self.line((x, foot), (x, foot + 6), role=role, width=3)
        self.line((x - 12, foot + 6), (x + 12, foot + 6), role=role, width=3)
        return box

    def plus(self, x, y, role=None):
        """Draw a sum, a circled plus; x and y are its middle."""
        self.add(
            f'<circle cx="{_number(x)}" cy="{_number(y)}" r="8" '
            f'style="stroke:{colour(role)};stroke-width:1.5;fill:{_PAPER}"/>'
        )
        self.line((x - 4.5, y), (x + 4.5, y), role=role)
        self.line((x, y - 4.5), (x, y + 4.5), role=role)
        return Box(x - 8, y - 8, 16, 16)

    def frame(self, box, text="", role="mask"):
        """Draw a dashed frame around parts, with a title in its corner."""
        style = f"stroke:{colour(role)};stroke-dasharray:4 3"
        self.rect(box, style, radius=6)
        if text:
            self.text(box.x + 8, box.y + 16, text, role=role, at="start")

    def arc(self, start, end, share, role="query"):
        """Draw an arc above a line of tokens, as thick as a weight."""
        (ax, ay), (bx, by) = start, end
        rise = 12 + 0.32 * abs(bx - ax)
        path = f"M{_number(ax)} {_number(ay)}C{_number(ax)} "
        path += f"{_number(ay - rise)} {_number(bx)} {_number(by - rise)} "
        path += f"{_number(bx)} {_number(by)}"
        width = _number(0.5 + 9 * share)
        self.add(
            f'<path d="{path}" style="stroke:{colour(role)};stroke-width:'
            f'{width};stroke-opacity:{0.25 + 0.6 * share:.2f}"/>'
        )
