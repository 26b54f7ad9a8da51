"""The moving pictures of *Testing a Transformer*."""

from html import escape

import numpy as np

from .moving import read, show_figure, show_mistake
from .parts import SHADES, painted


def show_matrix(groups, rows, bugs):
    """Return the matrix of bugs and checks, of which the reader chooses some.

    Parameters
    ----------
    groups
        {what checks cost: their names}.
    rows
        {name of a bug: a sign for each check}, "x" where it is seen, "." where
        not, and a space where it was not asked.
    bugs
        {name: Bug}, whose pieces the name's tip shows.

    Returns
    -------
    IPython.display.HTML
        A table; the rows can be sorted, and those that are seen hidden.
    """
    checks = sum(groups.values(), [])
    found = sum("x" in row for row in rows.values())
    of = [i for i, names in enumerate(groups.values()) for _ in names]
    return show_figure(
        "matrix",
        [
            dict(label="checks that you may run", name="may", type="checkbox")
            | dict(choices=[*groups], chosen=[*range(len(groups))]),
            dict(label="order of the bugs", name="order", type="radio")
            | dict(choices=["as in the model", "by how many checks see it"])
            | dict(chosen=[0]),
            dict(label="only bugs that these checks miss", name="missed")
            | dict(type="checkbox"),
        ],
        _matrix_table(rows, checks, bugs),
        f"Checks: {len(checks)}. Bugs seen: {found} of {len(rows)}.",
        {"rows": [*rows.values()], "groups": of},
        read("matrix.js"),
    )


def _matrix_table(rows, checks, bugs):
    """Return the matrix as a table."""
    head = "".join(f'<th class="up">{check}' for check in checks)
    seen = f'<td style="{painted(SHADES[16])};padding:0">x'
    body = "".join(
        f'<tr data-part="bug-{r}"><th class="head" style="padding:0" title="'
        f'- {escape(bugs[name].old)}&#10;+ {escape(bugs[name].new)}">{name}'
        + "".join(
            seen if x == "x" else f'<td style="padding:0">{x.strip()}'
            for x in row
        )
        for r, (name, row) in enumerate(rows.items())
    )
    return (
        '<table style="line-height:1.1;font-size:max(11px,min(1em,2.2vw))">'
        '<thead><tr data-part="heads"><th class="head" style="width:36%">bug'
        f"{head}<tbody>{body}</table>"
    )


def show_plain_sum(reached):
    """Return the bet on a gradient of a plain sum.

    Parameters
    ----------
    reached
        {sum: {"ahead" or "causal": how far outputs reach inputs, (C, T)}}, of
        the right sum, and of the plain one.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for found in reached.values():
        ahead, causal = found["ahead"], found["causal"]
        count = len(ahead)
        passed.append(
            {
                "there is a gradient for each input": ahead.shape
                == causal.shape,
                "all gradients are finite": bool(np.isfinite(ahead).all()),
                "a causal model passes the test": causal[:, count:].max()
                < 0.01,
                "a model that looks ahead fails it": ahead[:, count:].max()
                > 0.01,
                "an output reaches its own input": ahead.diagonal().min()
                > 0.01,
            }
        )
    return show_mistake(
        "testing-mistake",
        *(found["ahead"].round(2) + 0.0 for found in reached.values()),
        passed,
        "With the plain sum, an output reaches no input, not even its own, "
        "so this test passes every model.",
    )
