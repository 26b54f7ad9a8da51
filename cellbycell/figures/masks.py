"""The moving pictures of *Masks*."""

import numpy as np

from ..names import LETTERS, encode_names
from .moving import show_break, show_states
from .parts import SHADES, weights_table

NAN, ORANGE = 1.05, "#b35806"  # a share, and its colour behind all others
FATES = [
    "All their weights are NaN, and one step of training spreads it.",
    "They see all positions alike, blocked or not: the plain mean.",
    "Their weights are zeros, and so are their outputs.",
]


def show_masks(tokens, scores):
    """Return the weights of a sequence, with masks to switch on and off.

    Parameters
    ----------
    tokens
        The T tokens, of which the pads are the last.
    scores
        (T, T), before the softmax.

    Returns
    -------
    IPython.display.HTML
        A table of weights; a blocked cell has no colour.
    """
    words = [token for token in tokens if token != "pad"]
    box_of = np.minimum(np.arange(len(tokens)), len(words))  # one for all pads

    def state(keys, more, fill):
        is_token = np.isin(box_of, keys)  # (T,)
        mask = np.tile(is_token, (len(tokens), 1))  # (T, T)
        if 0 in more:
            mask &= np.tri(len(tokens), dtype=bool)
        if 1 in more:
            mask &= is_token[:, None]
        weights = filled_softmax(scores, mask, fill)
        parts = {
            f"weight-{t}-{s}": _cell(weight, mask[t, s])
            for (t, s), weight in np.ndenumerate(weights)
        }
        blind = [tokens[t] for t in np.flatnonzero(~mask.any(axis=-1))]
        said = "Each query sees a key, and each row sums to 1."
        if blind:
            said = f"Blind: {', '.join(blind)}. {FATES[fill]}"
        return said, parts

    def draw(parts):
        shares = np.array([share for _, share in parts.values()], float)
        return weights_table(tokens, tokens, shares.reshape(scores.shape))

    boxes = {"type": "checkbox", "choices": [*words, "pads"]}
    more = {"type": "checkbox", "choices": ["causal", "pads' rows"]}
    fill = ["−∞", "−10⁹", "−∞, and zeros for a blind row"]
    fill = {"type": "radio", "choices": fill, "chosen": [0]}
    return show_states(
        "masks",
        [
            {"label": "keys that are tokens", "name": "keys"}
            | boxes
            | {"chosen": list(range(len(words)))},
            {"label": "more masks", "name": "more"} | more | {"chosen": []},
            {"label": "blocked scores become", "name": "fill"} | fill,
        ],
        state,
        draw,
        shades=[*SHADES, ORANGE],
    )


def filled_softmax(scores, mask, fill):
    """Return weights (T, S) where fill is put in for blocked scores.

    fill: 0 for minus infinity, 1 for a billion that is taken off in float32,
    2 for minus infinity, and zeros for a blind row.
    """
    low = np.float32(scores - 1e9) if fill == 1 else -np.inf
    z = np.where(mask, scores, low)
    with np.errstate(invalid="ignore"):  # a blind row is NaN
        parts = np.exp(z - z.max(axis=-1, keepdims=True))
    weights = parts / parts.sum(axis=-1, keepdims=True)
    if fill == 2:
        weights[~mask.any(axis=-1)] = 0
    return weights


def _cell(weight, allowed):
    """Return the text of a weight, and its share, None for no colour."""
    if np.isnan(weight):
        return "nan", NAN
    share = round(float(weight), 2)
    return f"{share:.2f}", share if allowed or weight else None


def names_by(run):
    """Return what a model of names writes after each of three beginnings.

    Parameters
    ----------
    run
        A function from ids (1, T) to logits (1, T, N), both NumPy arrays.

    Returns
    -------
    list
        Three texts, of six more letters at most.
    """
    names = []
    for text in ("sw", "arm", "pol"):
        for _ in range(6):
            ids = encode_names([text])[:, : len(text) + 1]  # (1, T)
            text += LETTERS[int(run(ids)[0, -1].argmax())]
        names.append(text.split(".")[0])
    return names


def show_no_causal_mask(runs, losses, rows):
    """Return what a model of names writes, which loses its causal mask.

    Parameters
    ----------
    runs
        Of the correct model and of the other: a function from ids (B, T) to
        logits (B, T, N), both NumPy arrays.
    losses
        Of each, the loss on the names of training and on held-out names.
    rows
        The ids of some held-out names, (B, T).

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    written, passed = [], []
    changed = np.where(np.arange(rows.shape[1]) < 3, rows, 1)  # (B, T)
    for run, (learned, held_out) in zip(runs, losses, strict=True):
        found = run(rows)  # (B, T, N)
        longer = run(np.pad(rows, ((0, 0), (0, 4))))[:, : rows.shape[1]]
        early = run(changed)[:, :3]  # (B, C, N)
        written.append([[name] for name in names_by(run)])
        passed.append(
            {
                "the logits' shape, and no NaN": found.shape
                == (*rows.shape, len(LETTERS))
                and not np.isnan(found).any(),
                "the held-out loss is below 2.5": held_out < 2.5,
                "held-out loss and training loss are alike": abs(
                    held_out - learned
                )
                < 0.2,
                "more dots at the end, the same logits": np.allclose(
                    longer, found, atol=1e-4
                ),
                "other later letters, the first logits stay": np.allclose(
                    early, found[:, :3], atol=1e-4
                ),
            }
        )
    return show_break(
        "masks-mistake",
        *written,
        passed,
        "No loss sees it: held-out names hold their own answers, and the "
        "model reads them. Change what comes later, and it shows.",
    )
