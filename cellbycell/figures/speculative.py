"""The moving pictures of *A draft and a judge*."""

import json
from pathlib import Path

import numpy as np

from .moving import show_states
from .parts import svg_image, svg_texts

SENTENCE = (
    "The harbour master kept two books. In the first he wrote down every ship "
    "that came in: its name, its flag, what it carried, and how many men were "
    "on board."
)
FILE = Path(__file__).parent.parent / "data" / "drafts.json"


def show_judge(tokens, p, q):
    """Return what of a draft's proposals a target accepts, as bars.

    Parameters
    ----------
    tokens
        Four words.
    p, q
        The probabilities of the target and of the draft, (N,).

    Returns
    -------
    IPython.display.HTML
        The reader moves the draft towards the target.
    """
    p, q = np.asarray(p, float), np.asarray(q, float)

    def state(near, count):
        draft = q + near / 10 * (p - q)  # (N,)
        both, none = np.minimum(draft, p), np.zeros(len(p))
        alpha = both.sum()
        brought = (alpha ** np.arange(count + 1)).sum()
        said = (
            f"{100 * alpha:.0f} % of the judged proposals are accepted. If "
            f"the draft proposes {count}, a call of the target brings "
            f"{brought:.2f} tokens."
        )
        common = _bars(none, both, 18) + _bars(none, both, 50)
        over, rest = _bars(both, draft, 18), _bars(both, p, 50)
        return said, {"both": common, "over": over, "rest": rest}

    def draw(parts):
        texts = [((49 + 88 * i, 143), token) for i, token in enumerate(tokens)]
        for i in range(len(p)):
            texts += [((33 + 88 * i, 125), "q"), ((65 + 88 * i, 125), "p")]
        fills = {"both": "#2b4c7e", "over": "#b0b0b0", "rest": "#94c4df"}
        paths = "".join(
            f"<path data-part='{part}' d='{parts[part]}' style='fill:{fill}'/>"
            for part, fill in fills.items()
        )
        return svg_image(
            "Two bars for each of four tokens, with a part that both have",
            "360 152",
            f"{paths}<path d='M2 110h356' stroke='#767676'/>"
            f"<g text-anchor='middle'>{svg_texts(texts)}</g>",
        )

    return show_states(
        "judge",
        [
            dict(label="draft towards target", name="near", type="range")
            | dict(min=0, max=10, value=0),
            dict(label="proposed tokens", name="count", type="range")
            | dict(min=1, max=8, value=4),
        ],
        state,
        draw,
    )


def _bars(low, high, left):
    """Return bars from low to high as the path of a drawing."""
    return "".join(
        f"M{left + 88 * i} {110 - 180 * a:.1f}V{110 - 180 * b:.1f}h30"
        f"V{110 - 180 * a:.1f}z"
        for i, (a, b) in enumerate(zip(low, high, strict=True))
    )


def read_drafts():
    """Return what drafts from the text itself bring SmolLM2.

    `python -m benchmarks.drafts` writes it.

    Returns
    -------
    dict
        By prompt: calls for 40 tokens, guessed and accepted tokens, and how
        many times as fast it was in that run.
    """
    return json.loads(FILE.read_text("utf-8"))
