"""The moving picture of *Learn from your own text*, and stored trainings."""

import json
from pathlib import Path

import numpy as np

from .moving import show_states
from .parts import table_cell, table_head

__all__ = ["FILE", "read_taught", "show_tilted"]
FILE = Path(__file__).parents[1] / "data" / "preferences.json"
RULES = {
    "a vowel at the end": lambda name: float(name[-1:] in {"a", "i"}),
    "an n at the end": lambda name: float(name[-1:] == "n"),
    "as many a as it can": lambda name: name.count("a") / 3,
}
SHARPEST = 10  # the largest 1 / beta


def read_taught():
    """Return what `python -m benchmarks.preferences` has found.

    Returns
    -------
    dict
        "ways": {way: held-out loss, forward and reverse KL, share of odd
        names}; "smol": {rate: what DPO did to SmolLM2}; "weights", "steps".
    """
    return json.loads(FILE.read_text("utf-8"))


def show_tilted(names, p):
    """Return the best model, by the price of a nat and by the rule.

    Parameters
    ----------
    names
        All names, of up to three letters.
    p
        The probability of each before the training, (B,).

    Returns
    -------
    IPython.display.HTML
        A cell for each name, in percent.
    """
    ends = {name: i for i, name in enumerate(names)}
    letters = names[1:4]
    pairs = [name for name in names if len(name) == 2]
    rules = list(RULES.values())

    def state(sharp, rule):
        rewards = np.array([rules[rule](name) for name in names])
        q = p * np.exp(sharp * rewards)
        q /= q.sum()
        kl = float((q * np.log(q / p)).sum())
        shown = {}
        for name, share in zip(names, q.tolist(), strict=True):
            text = f"{100 * share:.0f}" if share >= 0.005 else "·"
            shown[f"name-{ends[name]}"] = text, round(min(1.0, share**0.5), 2)
        price = f"A nat costs {1 / sharp:.2f}" if sharp else "Before training"
        return (
            f"{price}: the mean reward is {q @ rewards:.2f}, the KL "
            f"{kl:.2f} nats. Each cell is a name in percent, a dot below "
            "half of one."
        ), shown

    def draw(parts):
        def row(head, cells):
            found = "".join(
                table_cell(f"name-{ends[name]}", *parts[f"name-{ends[name]}"])
                for name in cells
            )
            return f"<tr>{table_head(f'row-{head}', head)}{found}</tr>"

        heads = "".join(table_head(f"col-{name}", name) for name in pairs)
        rows = f"<tr>{table_head('row-first', 'begins')}{heads}</tr>"
        rows += row("and its end", pairs)
        for letter in letters:
            rows += row(f"and {letter}", [pair + letter for pair in pairs])
        short = "".join(
            table_head(f"short-{i}", name or "no letter")
            for i, name in enumerate(names[:4])
        )
        few = f"<tr>{table_head('row-short', 'name')}{short}</tr>"
        few += row("percent", names[:4])
        return f"<table>{rows}</table><table>{few}</table>"

    controls = [
        dict(label="1 / β", name="sharp", type="range", min=0, step=0.5)
        | dict(max=SHARPEST, value=2, play=True),
        dict(label="the rule asks for", name="rule", type="radio")
        | dict(choices=list(RULES), chosen=[0]),
    ]
    return show_states("tilted", controls, state, draw)
