"""The drawings of *Learn from your own text*."""

from .draw import Box, Picture, colour

__all__ = [
    "draw_directions",
    "draw_group",
    "draw_logs",
    "draw_step",
    "draw_trap",
]


def draw_group(names, known):
    """Return a loop: a model's names, their rewards, where they move.

    names: of one group; known: those of the training.
    """
    won = [
        name not in known and len(name) >= 6 and name[-1] in "aeiou"
        for name in names
    ]
    mean = sum(won) / len(won)
    told = ", ".join(
        f"{name} {'won' if one else 'lost'}"
        for name, one in zip(names, won, strict=True)
    )
    picture = Picture(
        26 * len(names) + 62,
        f"A model writes {len(names)} names: {told}. The mean reward is "
        f"{mean:g}. Those that won get likelier, the others less likely, and "
        "the model writes again.",
    )
    bottom = 26 * len(names) + 24
    model = picture.layer(6, bottom / 2 - 10, 62, "model", "query", 40)
    picture.text(148, 14, "it writes", size=12)
    picture.text(262, 14, "the rule", size=12)
    picture.text(330, 14, "advantage", size=12)
    for i, (name, one) in enumerate(zip(names, won, strict=True)):
        y = 22 + 26 * i
        role = "value" if one else "wrong"
        picture.token(84, y, name, width=136)
        picture.text(262, y + 17, int(one), role=role, bold=True)
        picture.text(
            330, y + 17, f"{one - mean:+.3g}".replace("-", "−"), role=role
        )
        ends = (366, y + 20), (366, y + 4)
        picture.arrow(*(ends if one else ends[::-1]), role=role)
    picture.arrow(model.right, (82, model.right[1]))
    low = bottom + 14
    picture.arrow(
        (330, bottom), (330, low), (37, low), (37, model.y + 42), role="query"
    )
    picture.text(190, low + 16, "likelier, or less likely; and again", size=12)
    return picture


def draw_logs(name, logs):
    """Return a row of tokens, and the log-probability of those that count.

    logs: of each token after the first, 0 at pads.
    """
    signs = [".", *name, *"." * (len(logs) - len(name))]
    told = ", ".join(f"{x:.2f}" for x in logs if x)
    picture = Picture(
        112,
        f"The row of {name}: a dot, its letters, the dot that ends it, and "
        f"pads. The log-probabilities are {told}; pads are hatched.",
    )
    left, cell = 16, 50
    for i, sign in enumerate(signs):
        box = picture.token(left + cell * i, 24, sign, width=40)
        if not i:
            picture.text(box.top[0], 16, "start", size=12)
            continue
        x = box.top[0]
        picture.text(x, 16, "end" if i == len(name) + 1 else "", size=12)
        if logs[i - 1]:
            picture.arrow((x - cell, 52), (x - 6, 68), role="query")
            picture.text(x, 84, f"{logs[i - 1]:.2f}".replace("-", "−"))
        else:
            mask = colour("mask")
            style = f"stroke:{mask};fill:{mask};fill-opacity:.25"
            picture.rect(Box(x - 20, 68, 40, 22), style, 0)
            picture.line((x - 20, 90), (x + 20, 68), role="mask", width=1)
    picture.text(190, 108, "what stands before a token judges it", size=12)
    return picture


def draw_directions(p_row, students):
    """Return bars: a teacher's row, and those of its students.

    p_row (N,); students: {name: row}.
    """
    rows = {"teacher": list(p_row), **students}
    told = "; ".join(f"{n}: {', '.join(map(str, x))}" for n, x in rows.items())
    picture = Picture(140, f"Bars of three letters for each. {told}.")
    for i, (name, row) in enumerate(rows.items()):
        left = 22 + 124 * i
        for k, share in enumerate(row):
            role = ("token", "query", "key")[i]
            box = Box(left + 32 * k, 108 - 110 * share, 26, 110 * share)
            style = f"fill:{colour(role)};fill-opacity:.45;"
            picture.rect(box, style + f"stroke:{colour(role)}", 0)
            picture.text(box.top[0], box.y - 4, f"{share:g}", size=12)
        picture.text(left + 45, 130, name, bold=not i)
    return picture


def draw_step():
    """Return what one step of the training does, from writing to moving."""
    steps = {
        "write": "6 beginnings, 8 names each",
        "judge": "reward, less β (log q − log p)",
        "compare": "less the mean of the group",
        "move": "a step on equation (4)",
    }
    told = "; ".join(f"{name}: {said}" for name, said in steps.items())
    picture = Picture(
        166, f"Four boxes in a loop. {told}. Then the model writes again."
    )
    roles = "query", "key", "value", "output"
    for i, (name, said) in enumerate(steps.items()):
        y = 8 + 40 * i
        box = picture.layer(60, y, 84, name, roles[i])
        picture.text(160, y + 19, said, at="start", size=12)
        if i < 3:
            x, low = box.bottom
            picture.arrow((x, low + 1), (x, low + 11))
    picture.arrow((58, 142), (28, 142), (28, 22), (58, 22), role="query")
    return picture


def draw_trap(best):
    """Return two first letters, what follows, and the best shares.

    best: the share of the first letter that whole texts ask for.
    """
    picture = Picture(
        150,
        "Two first letters. After the first the student loses 2 nats, after "
        "the second none. The teacher takes each half of the time; the best "
        f"share for the student's first letter is {best:.2f}.",
    )
    root = picture.token(20, 62, "start", width=64)
    first = picture.token(140, 22, "first", "wrong", width=64)
    second = picture.token(140, 102, "second", "value", width=64)
    picture.arrow(root.right, first.left, role="wrong", text="")
    picture.arrow(root.right, second.left, role="value", text="")
    picture.text(220, 39, "loses 2 nats after it", at="start", size=12)
    picture.text(220, 119, "follows the teacher", at="start", size=12)
    picture.text(220, 57, f"teacher 0.5, best {best:.2f}", at="start", size=12)
    picture.text(
        220, 137, f"teacher 0.5, best {1 - best:.2f}", at="start", size=12
    )
    return picture
