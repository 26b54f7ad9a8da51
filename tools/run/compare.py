"""Compare what is stored with what the code gives, in this order.

Text agrees to the letter, but for rounding; a figure but for its pixels.

Decimals agree within DECIMAL_TOLERANCE, relative: about one rounding of
float32, less than a changed digit in any number of up to seven digits.
Figures agree if they show the same texts and the same drawing, which
figures.py writes into them, and, if one matplotlib with one font
painted both, also the same pixels, each within FIGURE_TOLERANCE.
Everything else, whole numbers included, agrees if it is equal.
"""

import base64
import io
import re
from difflib import unified_diff
from itertools import zip_longest
from pathlib import Path

from nbformat import from_dict

from tools.settings import ROOT

# Of every process that stores or computes outputs.
ENVIRONMENT = {
    # A CUDA build of torch warns on stderr where there is no GPU, which is no
    # output of the book.
    "PYTHONWARNINGS": "ignore:CUDA initialization",
    # Each figure's PNG says what it shows, by figures.py beside this.
    "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
    "PYTHONPATH": str(ROOT),
}
DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?")
DECIMAL_TOLERANCE = 1e-7
# The rounding of float32 moves a pixel by 1, what an eye can see by 4 or more.
FIGURE_TOLERANCE = 2.0
BLOCK = 8  # pixels, about a letter


def text_agrees(stored, computed):
    """Tell whether two texts differ at most in the rounding of decimals."""
    if DECIMAL.sub("#", stored) != DECIMAL.sub("#", computed):
        return False
    pairs = zip(
        map(float, DECIMAL.findall(stored)),
        map(float, DECIMAL.findall(computed)),
        strict=True,
    )
    return all(abs(a - b) <= DECIMAL_TOLERANCE * abs(a) for a, b in pairs)


def image(png):
    """Return the image of a PNG in base64."""
    from PIL import Image  # here, as most runs meet no figure that changed

    return Image.open(io.BytesIO(base64.b64decode(png)))


def figure_distance(stored, computed):
    """Return how far apart two PNGs are, infinite if their sizes differ.

    The root of the mean squared difference of the pixels (0 to 255) where
    there is ink in either, in the block that differs most: the rest of the
    figure does not dilute what changed.
    """
    import numpy as np

    a, b = (
        np.asarray(image(png).convert("RGB"), float)
        for png in (stored, computed)
    )
    if a.shape != b.shape:
        return float("inf")
    ink = np.minimum(a, b).min(axis=-1) < 250
    sums = np.stack([ink * ((a - b) ** 2).mean(axis=-1), ink])
    for axis in (1, 2):
        starts = range(0, sums.shape[axis], BLOCK)
        sums = np.add.reduceat(sums, starts, axis)
    return float(np.sqrt((sums[0] / sums[1].clip(min=1)).max()))


def figure_difference(stored, computed):
    """Say in a sentence how two PNGs differ, or return "" if they agree."""
    old, new = (image(png).info for png in (stored, computed))
    pairs = [(stored, computed)]
    if "Drawing" in new:
        if "Drawing" not in old:
            return "The figure was stored by another way than `make outputs`."
        texts = zip_longest(
            *(info["Texts"].split("\n") for info in (old, new)), fillvalue=""
        )
        for was, now in texts:
            if not text_agrees(was, now):
                return f"The figure says {now!r} where {was!r} is stored."
        if old["Painter"] != new["Painter"]:
            pairs = []  # the same shapes and letters have other pixels
        pairs.append((old["Drawing"], new["Drawing"]))
    distance = max(figure_distance(*pair) for pair in pairs)
    if distance <= FIGURE_TOLERANCE:
        return ""
    return (
        f"The figure differs by {distance:.1f} "
        f"({FIGURE_TOLERANCE} is allowed)."
    )


def agrees(mime, stored, computed):
    """Tell whether one representation of an output agrees with another."""
    if stored == computed:
        return True
    if mime == "image/png":
        return not figure_difference(stored, computed)
    return text_agrees(str(stored), str(computed))


def settle(stored, computed):
    """Return the computed outputs, with what agrees replaced by the stored.

    Both are lists of outputs of one cell. What comes back equals `stored`
    where, and only where, the two agree.
    """
    settled = [from_dict(dict(output)) for output in computed]
    for old, new in zip(stored, settled, strict=False):
        if new.output_type != old.output_type:
            continue
        if new.output_type == "stream":
            if new.name == old.name and text_agrees(old.text, new.text):
                new.text = old.text
        elif "data" in new:
            new.data = {
                mime: old.data[mime]
                if mime in old.data and agrees(mime, old.data[mime], value)
                else value
                for mime, value in new.data.items()
            }
    return settled


def parts(output):
    """Return what is compared of an output: its kind, and texts by format."""
    texts = output.get("data") or {output.get("name"): output.get("text")}
    return output.output_type, texts


def lines(outputs):
    """Yield the lines in which a message shows outputs."""
    for kind, texts in map(parts, outputs):
        for mime, text in texts.items():
            yield f"{kind}, {mime}:"
            if mime != "image/png":
                yield from str(text).split("\n")


def difference(stored, computed):
    """Say how the outputs of a cell differ, or return "" if they agree."""
    settled = settle(stored, computed)
    if [*map(parts, stored)] == [*map(parts, settled)]:
        return ""
    texts = [[*lines(outputs)] for outputs in (stored, settled)]
    found = unified_diff(*texts, "stored", "computed", lineterm="")
    found = [line for line in found if not line.startswith("@@")]
    for old, new in zip(stored, settled, strict=False):
        pngs = [o.get("data", {}).get("image/png") for o in (old, new)]
        if all(pngs) and (how := figure_difference(*pngs)):
            found.append(how)
    return "\n".join(found)
