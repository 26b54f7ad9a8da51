"""The moving pictures of *One model, several machines*."""

import numpy as np

from .moving import show_mistake, show_states
from .parts import table_cell, table_head

SHARES = {"✓": 0.3, "now": 0.75}


def show_ring(tokens, orders):
    """Return keys that go round in a ring of machines.

    Parameters
    ----------
    tokens
        T words.
    orders
        The machine of each token, (T,), in blocks and as a zigzag.

    Returns
    -------
    IPython.display.HTML
        A table of queries and keys: which pairs are computed at a step.
    """
    count, size = len(tokens), int(orders[0].max()) + 1

    def state(step, order):
        owner, parts = orders[order], {}
        now = np.zeros(size, int)
        for t, token in enumerate(tokens):
            parts[f"query-{t}"] = f"{owner[t]}: {token}"
            parts[f"held-{t}"] = str((owner[t] + step - 1) % size)
            for s in range(count):
                turn, text = (owner[t] - owner[s]) % size, ""
                if s <= t and turn < step:
                    text = "now" if turn == step - 1 else "✓"
                    now[owner[t]] += turn == step - 1
                parts[f"pair-{t}-{s}"] = text, SHARES.get(text)
        pairs = ", ".join(map(str, now))
        said = f"Step {step}: machines 0 to {size - 1} compute {pairs} pairs; "
        return f"{said}the slowest has {now.max()}.", parts

    def draw(parts):
        drawn = '<tr><td style="width:24%"></td>'
        for s, token in enumerate(tokens):
            drawn += table_head(f"key-{s}", token, "up")
        drawn += "<tr>" + table_head("held", "keys are on")
        for s in range(count):
            drawn += table_cell(f"held-{s}", parts[f"held-{s}"])
        for t in range(count):
            drawn += "<tr>" + table_head(f"query-{t}", parts[f"query-{t}"])
            for s in range(count):
                drawn += table_cell(f"pair-{t}-{s}", *parts[f"pair-{t}-{s}"])
        return f"<table>{drawn}</table>"

    return show_states(
        "ring",
        [
            dict(label="step", name="step", type="range")
            | dict(min=1, max=size, value=1),
            dict(label="order", name="order", type="radio", chosen=[0])
            | dict(choices=["in blocks", "zigzag"]),
        ],
        state,
        draw,
    )


def show_own_mean(signs, raised, passed):
    """Return the bet on machines that each take their own mean.

    Parameters
    ----------
    signs
        Letters, as they are read.
    raised
        What a step adds to the bias of each, in two rows.
    passed
        {check: whether it passes}, of the right gradient and the wrong one.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    shown = ([signs, [f"{x:+.1f}" for x in row]] for row in raised)
    return show_mistake(
        "machines-mistake",
        *shown,
        {check: tuple(each[check] for each in passed) for check in passed[0]},
        "Only different numbers of tokens show it.",
    )
