"""The moving pictures of *One model, several machines*."""

import copy

import numpy as np

from ..names import LETTERS, encode_names
from .draw import ROLES
from .moving import show_mistake, show_states
from .parallel_drawn import MACHINES
from .parts import svg_image, table_cell, table_head

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
        Four machines in a circle, each with its queries and the keys that
        are there; and a table: which pairs are computed at a step.
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
        passed = (step - 1) * count // size
        for m in range(size):
            held = (m - step + 1) % size
            look = {"fill": ROLES[MACHINES[held]][1]}
            parts |= {f"paint-{m}": look, f"pairs-{m}": f"{now[m]} pairs"}
            for who, what in ((m, "asks"), (held, "keys")):
                words = [tokens[t] for t in np.flatnonzero(owner == who)]
                parts[f"{what}-{m}"] = " ".join(words)
        parts["passed"] = f"{passed} keys"
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
        return f"{_circle(parts)}<table>{drawn}</table>"

    return show_states(
        "ring",
        [
            dict(label="step", name="step", type="range")
            | dict(min=1, max=size, value=1, play=True),
            dict(label="order", name="order", type="radio", chosen=[0])
            | dict(choices=["in blocks", "zigzag"]),
        ],
        state,
        draw,
    )


def _circle(parts):
    """Return four machines in a circle, each with its queries and keys."""
    places = (120, 4), (238, 88), (120, 172), (2, 88)
    svg = words = ""
    for m, (x, y) in enumerate(places):
        own = ROLES[MACHINES[m]][1]
        svg += (
            f"<rect x='{x}' y='{y}' width='120' height='72' rx='5' "
            f"fill='#fff' stroke='{own}' stroke-width='2'/>"
            f"<rect data-part='paint-{m}' x='{x + 5}' y='{y + 26}' "
            f"width='110' height='22' rx='11' fill-opacity='.25' "
            f"fill='{parts[f'paint-{m}']['fill']}'/>"
        )
        rows = ("asks", 18), ("keys", 42), ("pairs", 65)
        for what, down in rows:
            words += f"<text data-part='{what}-{m}' x='{x + 60}' "
            words += f"y='{y + down}'>{parts[f'{what}-{m}']}</text>"
    for path in (
        "M242 40h56v38",
        "M298 163v45h-47",
        "M118 208h-56v-38",
        "M62 86v-46h46",
    ):
        svg += f"<path d='{path}' stroke='#4a5568' stroke-width='1.5'/>"
    for tip in (
        "M298 86l-4-9h8z",
        "M242 208l9-4v8z",
        "M62 162l-4 9h8z",
        "M118 40l-9-4v8z",
    ):
        svg += f"<path d='{tip}' fill='#4a5568'/>"
    words += "<text x='180' y='120'>passed on:</text>"
    words += f"<text data-part='passed' x='180' y='138'>{parts['passed']}"
    style = "fill:#222;font:14px sans-serif"
    svg += f"<g text-anchor='middle' style='{style}'>{words}</text></g>"
    label = "Four machines in a circle: its queries, and below them the keys"
    return svg_image(label, "360 250", svg)


def show_own_mean(run_on, works, model, rows, halves, shares):
    """Return the bet on machines that each take their own mean.

    Parameters
    ----------
    run_on
        A function: so many machines, a work, and its arguments -> results.
    works
        Two functions of a machine, a model and rows: the gradient of the
        batch, (C,), and the wrong one.
    model
        A Llama of PyTorch that reads names.
    rows
        Names of several lengths, as arrays of ids (B, T + 1).
    halves
        The rows of both machines, in two arrays.
    shares
        What the gradients of both machines count, right and wrong.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    equal = encode_names(["niger", "ghana", "chile", "italy"])  # (B, T)
    right, _ = works
    [whole] = run_on(1, right, model, rows)
    [of_equal] = run_on(1, right, model, equal)
    before, signs, shown, passed = _loss(model, rows), ".aeino", [], []
    for work, counts in zip(works, shares, strict=True):
        both = run_on(2, work, model, rows)
        [single] = run_on(1, work, model, rows)
        same = run_on(2, work, model, equal)
        moved = raised(model, halves, counts)
        moved = [moved[LETTERS.index(sign)] for sign in signs]
        shown.append(
            [["the end", *signs[1:]], [f"{move:+.1f}" for move in moved]]
        )
        passed.append(
            {
                "both machines have the same gradient": bool(
                    (both[0] == both[1]).all()
                ),
                "a step lowers the loss": _loss(model, rows, both[0]) < before,
                "one machine: the gradient of the batch": _near(single, whole),
                "names of one length: the gradient": _near(same[0], of_equal),
                "these eight names: the gradient": _near(both[0], whole),
            }
        )
    return show_mistake(
        "machines-mistake",
        *shown,
        passed,
        "Only different numbers of tokens show it.",
    )


def _near(found, wanted):
    return (found - wanted).abs().max().item() < 1e-3


def _parts(model, rows):
    """Return probabilities and targets of the letters that count."""
    import torch

    ids = torch.as_tensor(rows)
    counted = (ids[:, 1:] != 0) | (ids[:, :-1] != 0)  # (B, T)
    return model(ids[:, :-1]).softmax(-1)[counted], ids[:, 1:][counted]


def raised(model, parts, shares):
    """Return what a step adds to a bias of each letter, in hundredths."""
    import torch

    total = 0
    for part, share in zip(parts, shares, strict=True):
        probs, targets = _parts(model, part)
        right = torch.nn.functional.one_hot(targets, len(LETTERS))
        total = total + 100 * share * (right - probs.detach()).mean(0)
    return total.tolist()


def _loss(model, rows, step=None):
    """Return the loss of rows, after a small step against a gradient."""
    stepped = copy.deepcopy(model)
    if step is not None:
        sizes = [w.numel() for w in stepped.parameters()]
        parts = step.split(sizes)
        for w, part in zip(stepped.parameters(), parts, strict=True):
            w.data -= 0.01 * part.reshape(w.shape)
    probs, targets = _parts(stepped, rows)
    return -probs.gather(1, targets[:, None]).log().mean().item()
