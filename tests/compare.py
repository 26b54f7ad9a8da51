"""When two outputs agree: to the letter, but for rounding and pixels.

Decimals agree within DECIMAL_TOLERANCE, relative: about one rounding of
float32, less than a changed digit in any number of up to seven digits.
Figures agree if they are of one size and differ by at most FIGURE_TOLERANCE.
Everything else, whole numbers included, agrees if it is equal.
"""

import base64
import io
import re

from nbformat import from_dict

DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?")
DECIMAL_TOLERANCE = 1e-7
FIGURE_TOLERANCE = 2.0


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


def figure_distance(stored, computed):
    """Return how far apart two PNGs are, infinite if their sizes differ.

    The root of the mean squared difference of the pixels (0 to 255), the
    mean taken where there is ink in either: white paper around a thin curve
    does not dilute what changed.
    """
    import numpy as np  # here, as most runs meet no figure that changed
    from PIL import Image

    a, b = (
        np.asarray(
            Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), float
        )
        for png in (stored, computed)
    )
    if a.shape != b.shape:
        return float("inf")
    ink = np.minimum(a, b).min(axis=-1) < 250
    return float(np.sqrt(np.mean((a - b)[ink] ** 2))) if ink.any() else 0.0


def agrees(mime, stored, computed):
    """Tell whether one representation of an output agrees with another."""
    if stored == computed:
        return True
    if mime == "image/png":
        return figure_distance(stored, computed) <= FIGURE_TOLERANCE
    if isinstance(stored, str) and isinstance(computed, str):
        return text_agrees(stored, computed)
    return False


def settle(computed, stored):
    """Return the computed outputs, with what agrees replaced by the stored.

    Both are lists of outputs of one cell. What comes back equals `stored`
    where, and only where, the two agree.
    """
    settled = [from_dict(dict(output)) for output in computed]
    for new, old in zip(settled, stored, strict=False):
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
