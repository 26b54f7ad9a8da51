"""The moving pictures of *Fewer bits*."""

import numpy as np

from .moving import show_break, show_states
from .parts import svg_image, svg_texts

STROKES = {
    "weights": "stroke:#2b4c7e;stroke-width:5;stroke-linecap:round",
    "moves": "stroke:#b0b0b0",
    "levels": "stroke:#b25706",
}


def show_levels(weights, with_outlier):
    """Return weights above their levels, and where each is rounded to.

    Parameters
    ----------
    weights, with_outlier
        Numbers, (C,), and the same with one that is far away.

    Returns
    -------
    IPython.display.HTML
        The reader chooses the bits, and whether the outlier is there.
    """

    def state(bits, outlier):
        given = with_outlier if outlier else weights
        top = 2 ** (bits - 1) - 1
        step = np.abs(given).max() / top
        whole = np.round(given / step)
        right = 168 / np.abs(given).max()
        places = [f"{180 + right * w:.1f}" for w in given]
        levels = [
            f"{180 + right * step * q:.1f}" for q in range(-top, top + 1)
        ]
        ends = [levels[int(q) + top] for q in whole]
        pairs = zip(places, ends, strict=True)
        parts = {
            "weights": "".join(f"M{x} 22h0" for x in places),
            "moves": "".join(f"M{x} 28L{end} 76" for x, end in pairs),
            "levels": "".join(f"M{x} 78v10" for x in levels),
        }
        error = np.abs(given - step * whole).max()
        said = f"{bits} bits: {2 * top + 1} levels with steps of {step:.3f}. "
        said += f"The largest error is {error:.3f}; "
        return said + f"zeros: {(whole == 0).sum()} of {len(given)}.", parts

    def draw(parts):
        drawing = "".join(
            f"<path data-part='{name}' d='{path}' style='{STROKES[name]}'/>"
            for name, path in parts.items()
        )
        return svg_image(
            "Weights above, levels below, and a line from each to its level",
            "360 106",
            drawing + svg_texts([((176, 104), "0")]),
        )

    return show_states(
        "line",
        [
            dict(label="bits", name="bits", type="range")
            | dict(min=2, max=8, value=4),
            dict(label="outlier", name="outlier", type="checkbox")
            | dict(choices=["on"], chosen=[]),
        ],
        state,
        draw,
    )


def show_unsorted(models, tensors, read, prompts, logits, losses, texts):
    """Return what is written before and after rows are not sorted back.

    Parameters
    ----------
    models
        The two that were loaded from files, in PyTorch.
    tensors
        {name: array} of the exact model.
    read
        The same of each file, in two dicts.
    prompts, logits
        Ids (B, T), and the exact model's logits, (B, T, N).
    losses, texts
        On held-out rows, and what is written, of the two.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for model, found, loss in zip(models, read, losses, strict=True):
        gaps = [
            (model(prompts[:, :n])[:, -1] - logits[:, n - 1])
            .abs()
            .max()
            .item()
            for n in (1, 2)
        ]
        pairs = [(found[name], w) for name, w in tensors.items()]
        passed.append(
            {
                "all names and shapes": found.keys() == tensors.keys()
                and all(x.shape == w.shape for x, w in pairs),
                "each tensor's mean, norm and largest weight": all(
                    np.isclose(f(x), f(w), rtol=1e-4, atol=1e-6)
                    for x, w in pairs
                    for f in (np.mean, np.linalg.norm, np.max)
                ),
                "the logits after one token": gaps[0] < 0.01,
                "the logits after two tokens": gaps[1] < 0.01,
                "the held-out loss is below 2.3": loss < 2.3,
            }
        )
    return show_break(
        "bits-mistake",
        *([[text] for text in each] for each in texts),
        passed,
        "The weights are right, only in another order, and one token alone "
        "does not ask for the order.",
    )
