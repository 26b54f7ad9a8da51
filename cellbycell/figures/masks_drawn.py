"""The drawings of *Masks*."""

import numpy as np

from .arcs import show_arcs
from .draw import WIDTH, Picture


def _sentence(picture, y, tokens, changed, wide):
    """Draw tokens in a row, pads narrow and empty; return their boxes.

    changed: the places that are drawn as changed.
    """
    boxes, x = [], 8
    for t, token in enumerate(tokens):
        pad = token == "<pad>"
        role = "wrong" if t in changed else "mask" if pad else "token"
        text, step = ("", 22) if pad else (token, wide)
        boxes.append(picture.token(x, y, text, role, width=step - 3))
        x += step
    return boxes


def draw_key_mask(tokens, ids):
    """Return tokens above their ids, and which of them are no pads.

    Parameters
    ----------
    tokens, ids
        A sequence that ends in pads; the id of a pad is 0.
    """
    alt = (
        f"The tokens {', '.join(token.strip('<>') for token in tokens)} "
        f"above their ids, {', '.join(map(str, ids))}. In the row below, the "
        "ids that are not 0 are True, and those of the pads are blocked."
    )
    picture = Picture(140, alt)
    cell = 42
    for s, token in enumerate(tokens):
        role = "mask" if token == "<pad>" else "token"
        x = 80 + s * cell
        picture.text(x + cell / 2, 22, token.strip("<>"), role=role)
    picture.text(74, 54, "ids", at="end")
    picture.text(74, 111, "key_mask", at="end")
    texts = [[str(i) for i in ids]]
    shown = dict(cell=cell, height=26)
    picture.matrix(80, 36, [[0] * len(ids)], texts=texts, **shown)
    for s, i in enumerate(ids):
        x = 80 + (s + 0.5) * cell
        role = "query" if i else "mask"
        picture.arrow((x, 64), (x, 91), role=role)
    kept = [[1.0 if i else np.nan for i in ids]]
    texts = [["True"] * len(ids)]
    picture.matrix(80, 93, kept, "query", texts=texts, **shown)
    return picture


def draw_join(causal, padding, both):
    """Return a causal mask and a padding mask, joined by &.

    Parameters
    ----------
    causal, padding, both
        (T, S), True = may attend; the rows of padding are equal.
    """
    size = len(causal)
    alt = (
        "Three square masks, a row for each query. Causal: blue on the "
        "diagonal and below it. And padding: one row, the same for all "
        "queries, whose last keys are blocked. Both: a cell is blue where it "
        "is blue in each of the two."
    )
    cell, top = 15, 34
    wide = size * cell
    picture = Picture(top + wide + 34, alt)
    parts = [("causal", causal), ("padding", padding[:1]), ("both", both)]
    middle = top + wide / 2
    for place, (name, mask) in enumerate(parts):
        x = 8 + place * (wide + 24)
        shares = np.where(mask, 1.0, np.nan)
        empty = np.full(shares.shape, "")
        y = top if len(shares) > 1 else middle - cell / 2
        shown = dict(texts=empty, cell=cell, height=cell)
        picture.matrix(x, y, shares, "query", **shown)
        picture.text(x + wide / 2, 20, name, bold=True)
        below = "for each query" if len(shares) == 1 else "(T, S)"
        picture.text(x + wide / 2, top + wide + 20, below, size=12)
        if place:
            picture.text(x - 12, middle + 5, "&="[place - 1], bold=True)
    return picture


def show_blocked(tokens, scores, masks):
    """Return a sentence with arcs, whose masks the reader chooses.

    Parameters
    ----------
    tokens
        The T tokens, pads as "pad".
    scores
        (T, T), before the softmax.
    masks
        {name: (T, T)}, True = may attend.

    Returns
    -------
    IPython.display.HTML
        A blocked token has no arc and a dash for its weight.
    """
    weights = {}
    for name, mask in masks.items():
        parts = np.exp(scores - scores.max()) * mask
        share = (parts / parts.sum(axis=-1, keepdims=True)).round(2)
        weights[name] = np.where(mask, share, np.nan)
    return show_arcs("blocked", tokens, weights, start=2)


def draw_stays(before, after, changed, names=("before", "after")):
    """Return a sequence before and after a change; what stays is framed.

    Parameters
    ----------
    before, after
        Tokens.
    changed
        The places in `after` that have changed.
    names
        What stands above each.
    """
    pads = [t for t, token in enumerate(before) if token == "<pad>"]
    count = min([*changed, *pads, len(before)])
    words = " ".join(before[:count])
    alt = (
        f"A sequence twice, one below the other. The tokens at {changed} of "
        f"the second have changed; the outputs at {words}, before them, stay."
    )
    pad_counts = [row.count("<pad>") for row in (before, after)]
    most = max(len(before) - pad_counts[0], len(after) - pad_counts[1])
    wide = min(58, (WIDTH - 12 - 22 * max(pad_counts)) / most)
    picture = Picture(144, alt)
    places = [(22, 15, before, ()), (96, 137, after, changed)]
    rows = []
    for name, (y, label, tokens, new) in zip(names, places, strict=True):
        rows.append(_sentence(picture, y, tokens, new, wide))
        picture.text(8, label, name, at="start", size=12)
    for one, other in zip(rows[0][:count], rows[1], strict=False):
        (a, b), (_, c) = one.bottom, other.top
        picture.line((a, b + 2), (a, c - 2), role="query", dashed=True)
        picture.text(a + 5, 75, "=", role="query", at="start", bold=True)
    return picture


def draw_blind():
    """Return where a loss and its gradient go, past a blind row."""
    alt = (
        "Two outputs, 0 and 1, of weights whose second row is NaN. The loss "
        "reads output 0 alone. On the way back the gradient of output 1 is "
        "0; times NaN it is NaN, and it reaches the parameter that both "
        "share."
    )
    picture = Picture(196, alt)
    loss = picture.layer(300, 84, 66, "loss")
    outputs = []
    for i, (y, role) in enumerate([(30, "token"), (138, "wrong")]):
        outputs.append(picture.layer(178, y, 80, f"output {i}", role))
        numbers = [[0.5, 0.5, np.nan]] if i == 0 else [[1, 1, 1]]
        texts = [["", "", ""]] if i == 0 else [["nan"] * 3]
        row = picture.matrix(
            78, y + 3, numbers, "query" if i == 0 else "wrong", texts=texts,
            cell=27,
        )  # fmt: skip
        picture.arrow(row.right, outputs[i].left, role=role)
    picture.text(118, 22, "weights")
    (x, y), (a, b) = outputs[0].right, loss.top
    picture.arrow((x, y), (a, y), (a, b), role="token")
    (x, y), (a, b) = outputs[1].right, loss.bottom
    picture.arrow((a, b), (a, y), (x + 1, y), role="wrong", dashed=True)
    picture.text(328, y + 18, "gradient 0", role="wrong", size=12)
    box = picture.layer(8, 84, 62, "weight", "wrong")
    (x, y), (a, b) = (78, 152), box.bottom
    picture.arrow((x, y), (a, y), (a, b + 1), role="wrong", dashed=True)
    picture.text(118, 184, "0 × nan = nan", role="wrong", size=12)
    (x, y), (a, b) = box.top, (78, 44)
    picture.arrow((x, y), (x, b), (a - 1, b), role="token")
    return picture


def draw_targets(inputs, targets):
    """Return what is read, what is to be predicted, and what counts.

    Parameters
    ----------
    inputs, targets
        Two rows of tokens, the second one position ahead.
    """
    counted = sum(token != "<pad>" for token in targets)
    alt = (
        f"Inputs {' '.join(inputs)} above their targets, {' '.join(targets)}. "
        f"{counted} positions count, since their target is a token; the "
        "others, whose target is a pad, are left out."
    )
    picture = Picture(146, alt)
    step = 316 / len(inputs)
    for y, name in [(25, "reads"), (86, "target"), (128, "counts")]:
        picture.text(50, y, name, at="end")
    for t, (token, target) in enumerate(zip(inputs, targets, strict=True)):
        x = 58 + t * step
        roles = ["mask" if s == "<pad>" else "token" for s in (token, target)]
        one = picture.token(x, 8, token.strip("<>"), roles[0], step - 4)
        real = target != "<pad>"
        role = "query" if real else "mask"
        other = picture.token(x, 69, target.strip("<>"), role, step - 4)
        (a, b), (_, d) = one.bottom, other.top
        picture.arrow((a, b + 1), (a, d - 1), role=role, dashed=not real)
        mark = "yes" if real else "no"
        picture.text(a, 128, mark, role=role, bold=real)
    return picture
