"""Compare what is stored with what the code gives.

Text is equal to the letter. A figure has the same pixels, each within
FIGURE_TOLERANCE, if one release of matplotlib drew both; another one draws the
same figure with other pixels, and is not asked for it.
"""

import base64
import io
from difflib import unified_diff
from pathlib import Path

from nbformat import from_dict

from tools.settings import ROOT

# Of every process that stores or computes outputs.
ENVIRONMENT = {
    # A CUDA build of torch warns on stderr where there is no GPU, which is no
    # output of the book.
    "PYTHONWARNINGS": "ignore:CUDA initialization",
    "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
    "PYTHONPATH": str(ROOT),  # this checkout's package
    "TQDM_DISABLE": "1",  # a progress bar on stderr is no output either
    # Threads that wait leave their core to the process beside them: two
    # chapters at once take half as long, and compute the same.
    "OMP_WAIT_POLICY": "PASSIVE",
}
# The rounding of float32 moves a pixel by 1, what an eye can see by 4 or more.
FIGURE_TOLERANCE = 2.0
BLOCK = 8  # pixels, about a letter


def image(png):
    """Return the image of a PNG in base64."""
    from PIL import Image  # here, as most runs meet no figure that changed

    return Image.open(io.BytesIO(base64.b64decode(png)))


def figure_distance(stored, computed):
    """Return how far apart two PNGs are, infinite if their sizes differ.

    The root of the mean squared difference of the pixels (0 to 255) where
    there is ink in either, in the block that differs most: the rest of the
    figure does not dilute what changed. 0 for two releases of matplotlib.
    """
    import numpy as np

    old, new = image(stored), image(computed)
    if old.info.get("Software") != new.info.get("Software"):
        return 0.0
    a, b = (np.asarray(png.convert("RGB"), float) for png in (old, new))
    if a.shape != b.shape:
        return float("inf")
    ink = np.minimum(a, b).min(axis=-1) < 250
    sums = np.stack([ink * ((a - b) ** 2).mean(axis=-1), ink])
    for axis in (1, 2):
        starts = range(0, sums.shape[axis], BLOCK)
        sums = np.add.reduceat(sums, starts, axis)
    return float(np.sqrt((sums[0] / sums[1].clip(min=1)).max()))


def settle(stored, computed):
    """Return the computed outputs, a figure that agrees as it is stored.

    Both are lists of outputs of one cell.
    """
    settled = [from_dict(dict(output)) for output in computed]
    for old, new in zip(stored, settled, strict=False):
        png, own = (o.get("data", {}).get("image/png") for o in (old, new))
        if png and own and figure_distance(png, own) <= FIGURE_TOLERANCE:
            new.data["image/png"] = png
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
        if all(pngs) and (far := figure_distance(*pngs)) > FIGURE_TOLERANCE:
            found.append(
                f"The figure differs by {far:.1f} "
                f"({FIGURE_TOLERANCE} is allowed)."
            )
    return "\n".join(found)
