"""How SmolLM2 copies a text from far away, drawn."""

import json
from pathlib import Path

__all__ = ["FILE", "plot_far", "read_far"]
FILE = Path(__file__).parent.parent / "data" / "far.json"
_LINES = {  # colour, and where the name stands
    "as it is": ("C0", (19000, 5.45)),
    "positions / 4": ("0.5", (600, 3.55)),
    "larger base": ("C1", (8600, 1.6)),
    "slow pairs / 4": ("C2", (14000, 0.08)),
}


def read_far() -> dict:
    """Return the losses that `python -m benchmarks.far` has measured.

    Returns
    -------
    dict
        "gaps": between a text and its copy; "text", "copy": the mean losses
        of both for each way, those of the copy at each gap.
    """
    return json.loads(FILE.read_text("utf-8"))


def plot_far(length: int) -> None:
    """Draw the loss of a copy over its distance, for four ways to turn.

    Parameters
    ----------
    length
        The trained length, which a line marks.
    """
    import matplotlib.pyplot as plt

    found = read_far()
    _, ax = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    ax.axvline(length, color="grey", linewidth=0.8)
    for way, (colour, place) in _LINES.items():
        ax.plot(found["gaps"], found["copy"][way], color=colour)
        ax.text(*place, way, color=colour)
    ax.set(xlabel="tokens between", ylabel="loss of the copy", ylim=(0, 6.2))
    ax.set_xticks([0, length, 16000, 24000, 32000])
