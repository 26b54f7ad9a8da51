"""The moving pictures of *Attention without softmax*."""

import math

import numpy as np

from .moving import show_break, show_states
from .parts import SIGNED, table_cell, table_head

THINGS, COLOURS = ["ball", "car", "hat"], ["red", "green", "blue"]
WRITES = [(0, 0), (1, 1), (2, 2), (0, 2), (1, 1), (0, 1)]  # thing, colour


def show_rules():
    """Return a state that is written by one of three rules, and read.

    Returns
    -------
    IPython.display.HTML
        Two tables: the state, and what it says of each thing.
    """
    return show_states(
        "states",
        [
            dict(label="tokens", name="count", type="range")
            | dict(min=0, max=6, value=4, play=True),
            dict(label="rule", name="rule", type="radio", chosen=[0])
            | dict(choices=["sum", "fading", "delta rule"]),
            dict(label="keys", name="alike", type="radio", chosen=[0])
            | dict(choices=["at right angles", "alike"]),
        ],
        _rule_state,
        _draw_rules,
        shades=SIGNED,
    )


def _rule_state(count, rule, alike):
    keys = np.eye(3) + 0.25 * alike  # (C, K)
    keys = keys / np.sqrt((keys**2).sum(1, keepdims=True))  # (C, K)
    state, last = np.zeros((3, 3)), {}  # (K, V)
    for thing, colour in WRITES[:count]:
        state = state / 2 if rule == 1 else state
        said = keys[thing] @ state if rule == 2 else 0
        state = state + np.outer(keys[thing], np.eye(3)[colour] - said)
        last[thing] = colour
    found, parts, right = keys @ state, {}, 0  # (C, V)
    for i in range(3):
        for j in range(3):
            text = f"{found[i, j] + 0:.2f}".replace("-0.00", "0.00")
            text = f"* {text} *" if last.get(i) == j else text
            parts[f"read-{i}-{j}"] = text, _share(found[i, j])
            text = f"{state[i, j] + 0:.2f}".replace("-0.00", "0.00")
            parts[f"state-{i}-{j}"] = text, _share(state[i, j])
        if i in last:
            others = np.delete(found[i], last[i])
            right += bool((others < found[i, last[i]] - 1e-6).all())
    parts["token"] = "no token yet"
    if count:
        thing, colour = WRITES[count - 1]
        parts["token"] = f"the last token: {THINGS[thing]} is "
        parts["token"] += COLOURS[colour]
    return (
        f"After {count} tokens, the last colour is the strongest for {right} "
        f"of {len(last)} things."
    ), parts


def _share(number):
    """Return the share of a colour, from -2 to 2."""
    return round(min(1, max(0, (number / 2 + 1) / 2)), 3)


def _draw_rules(parts):
    """Return the picture of the start."""
    tables = ""
    for name, heads in (("state", ["column 1", "2", "3"]), ("read", THINGS)):
        tables += f"<table><tr><td style='width:34%'>{name}</td>"
        tables += "".join(table_head(f"{name}-{c}", c) for c in COLOURS)
        for i, head in enumerate(heads):
            tables += "<tr>" + table_head(f"{name}-head-{i}", head)
            for j in range(3):
                part = f"{name}-{i}-{j}"
                tables += table_cell(part, *parts[part], SIGNED)
        tables += "</table>"
    token = f"<p data-part='token'>{parts['token']}</p>"
    return f"{token}<div class='pair'>{tables}</div>"


def show_late_mask(right, wrong):
    """Return what a mask that comes after exp breaks.

    Parameters
    ----------
    right, wrong
        Functions of PyTorch: decays (T,) -> the table of factors, (T, S).

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    shown, passed = [], []
    for function in (right, wrong):
        checks, rows = {}, []
        for name, pace in (("weak", -0.5), ("strong", -4.0)):
            paces, factors, slopes = _slopes(function, pace)
            by_loop = np.tri(len(paces))
            for t, s in zip(*np.nonzero(by_loop), strict=True):
                by_loop[t, s] = math.exp(pace * (t - s))
            checks[f"The table equals a loop, {name} decay"] = np.allclose(
                factors, by_loop, atol=1e-6
            )
            finite = bool(np.isfinite(slopes).all())
            checks[f"Gradients are finite, {name} decay"] = finite
            rows.append(
                [
                    round(x, 2) + 0.0 if math.isfinite(x) else "NaN"
                    for x in slopes[:6].tolist()
                ]
            )
        shown.append(rows)
        passed.append(checks)
    return show_break(
        "states-mistake",
        *shown,
        passed,
        "Only gradients at a strong decay see it.",
    )


def _slopes(function, pace):
    """Return equal decays (T,), their table, and the sum's gradient (T,)."""
    import torch

    paces = torch.full((64,), pace, requires_grad=True)  # (T,)
    factors = function(paces)  # (T, S)
    factors.sum().backward()
    return paces.tolist(), factors.detach().numpy(), paces.grad.numpy()
