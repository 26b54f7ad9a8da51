"""The drawings of *Testing a Transformer*."""

import numpy as np

from .draw import Box, Picture, colour


def draw_usual():
    """Return a model with a wrong line, and four checks that pass."""
    p = Picture(
        206,
        "A model of five lines, one of them red. Arrows lead to four checks: "
        "the shape, the first loss, the gradients and one batch learned by "
        "heart all pass. A fifth box is empty, with a question mark.",
    )
    box = p.layer(6, 26, 120, "", height=150)
    p.text(66, 18, "your model", bold=True)
    for i in range(5):
        role = "wrong" if i == 3 else "mask"
        wide = (86, 66, 92, 78, 58)[i]
        y = 48 + 26 * i
        p.line((20, y), (20 + wide, y), role=role, width=5)
    p.text(66, 196, "one line is wrong", role="wrong", size=12)
    checks = "the shape", "the first loss", "gradients", "one batch by heart"
    for i, name in enumerate([*checks, "?"]):
        y = 8 + 39 * i
        role = "wrong" if name == "?" else "value"
        text = name if name == "?" else f"✓  {name}"
        lamp = p.layer(200, y, 170, text, role, height=30)
        p.arrow((box.right[0], 101), lamp.left, role=role,
                dashed=name == "?")  # fmt: skip
    return p


def draw_open_answer(letters):
    """Return a model that reads its own answer, one place to the right.

    letters: of a name.
    """
    p = Picture(
        250,
        f"The letters of {letters} as input, and below each the letter that "
        "should follow. Without a causal mask an arrow goes from each answer "
        "to the next input, where this very letter stands; with the mask the "
        "arrow is gone, and arrows go to the input itself and those before.",
    )
    count = len(letters)
    for y, title, role in (
        (14, "without a causal mask: it copies", "wrong"),
        (142, "with it: it has to know", "value"),
    ):
        p.text(0, y, title, at="start", bold=True, role=role)
        p.text(0, y + 33, "reads", at="start")
        p.text(0, y + 99, "says", at="start")
        above = p.tokens(y + 16, letters, left=56)
        below = p.tokens(y + 82, [*letters[1:], "?"], left=56)
        for t in range(count):
            if role == "value":
                p.arrow(below[t].top, above[t].bottom, role=role)
                if t:
                    p.arrow(below[t].top, above[t - 1].bottom, role=role,
                            width=1)  # fmt: skip
            elif t + 1 < count:
                p.arrow(below[t].top, above[t + 1].bottom, role=role, width=2)
    return p


def draw_pair(source, whole):
    """Return a source and its target, with pads hatched.

    source, whole: tokens, of which the pads are "<pad>".
    """
    p = Picture(
        178,
        f"A source, {' '.join(source)}, and its target, {' '.join(whole)}. "
        "The decoder reads the target without its last token and predicts it "
        "without its first; pads are hatched.",
    )
    reads, says = whole[:-1], whole[1:]
    lefts = [62, *range(127, 380, 51)]
    for y, name, row in (
        (8, "source", source), (74, "reads", reads), (140, "predicts", says)
    ):  # fmt: skip
        p.text(0, y + 17.5, name, at="start")
        for i, token in enumerate(row):
            wide = 48 if i else 62
            role = "key" if name == "source" else "query"
            if token == "<pad>":
                box = p.token(lefts[i], y + 1, "pad", "mask", width=wide)
                p.rect(box, f"fill:{colour('mask')};fill-opacity:.25", 12)
            else:
                p.token(lefts[i], y + 1, token, role, width=wide)
    for i, token in enumerate(says):
        if token != "<pad>":
            ends = (lefts[i] + (24 if i else 31), 141), (lefts[i + 1] + 24, 99)
            p.arrow(*ends, role="query", width=1)
    return p


def _model(p, y, inputs, marked, outputs, title, role):
    """Draw a model: inputs, those that changed, and a role for each output.

    A role of "mask" is an output that stays.
    """
    p.text(0, y + 12, title, at="start", bold=True, role=role)
    step = 318 / len(inputs)
    p.layer(62, y + 62, 314, "the model", "token", height=26)
    p.text(0, y + 41, "outputs", at="start", size=12)
    p.text(0, y + 127, "inputs", at="start", size=12)
    for i, (token, kind) in enumerate(zip(inputs, outputs, strict=True)):
        x = 62 + step * i + 2
        mine = "key" if i in marked else "token"
        low = p.token(x, y + 110, token, mine, width=step - 4)
        p.arrow(low.top, (low.top[0], y + 88), role=mine)
        up = Box(x, y + 24, step - 4, 24)
        fill, stays = colour(kind), kind == "mask"
        style = f"stroke:{fill};fill:{fill};fill-opacity:"
        p.rect(up, style + (".08" if stays else ".4"))
        p.text(up.top[0], y + 41, "stays" if stays else "moves", size=12)
        p.arrow((up.top[0], y + 62), up.bottom, role=kind)


def draw_must_not(count, changed):
    """Return one model, correct and with a bug, whose input is changed.

    count: positions; changed: the one with another token.
    """
    p = Picture(
        300,
        f"A model of {count} positions, of which the token at {changed} is "
        "another one. In the correct model the outputs before it stay and "
        "the others move; with a bug the output before it moves as well.",
    )
    inputs = [str(i) for i in range(count)]
    inputs[changed] += "′"
    late = ["mask" if i < changed else "value" for i in range(count)]
    leaky = [*late[: changed - 1], "wrong", *late[changed:]]
    _model(p, 0, inputs, {changed}, late, "correct: the past stays", "value")
    _model(p, 156, inputs, {changed}, leaky, "a bug: the past moves", "wrong")
    return p


def draw_must(tokens, swapped):
    """Return one model, correct and with a bug, with two tokens swapped.

    tokens: of the source; swapped: the two places that change.
    """
    one, other = swapped
    tokens = list(tokens)
    tokens[one], tokens[other] = tokens[other], tokens[one]
    p = Picture(
        300,
        f"A model that reads {' '.join(tokens)}, of which the tokens at "
        f"{one} and {other} have changed places. In the correct model all "
        "outputs move; without positions all outputs stay.",
    )
    count = len(tokens)
    _model(p, 0, tokens, {*swapped}, count * ["value"],
           "correct: another order, other outputs", "value")  # fmt: skip
    _model(p, 156, tokens, {*swapped}, count * ["mask"],
           "a bug, no positions: all outputs stay", "wrong")  # fmt: skip
    return p


def draw_gradients():
    """Return a loss whose gradient reaches all parts but one."""
    p = Picture(
        150,
        "A loss at the right sends its gradient back through last layer, "
        "norm, attention and embedding. A part above, which nothing reads, "
        "gets no gradient.",
    )
    names = "embedding", "attention", "norm", "last layer"
    left, boxes = 2, []
    for name, wide in zip(names, (82, 76, 46, 76), strict=True):
        boxes.append(p.layer(left, 92, wide, name, "query"))
        left += wide + 16
    loss = p.layer(338, 92, 40, "loss", "wrong")
    for front, behind in zip(boxes, [*boxes[1:], loss], strict=True):
        p.arrow(behind.left, front.right, role="wrong")
    p.text(190, 142, "the gradient goes back, to every parameter", size=12)
    p.layer(100, 24, 154, "a layer, never called", "mask")
    p.text(262, 42.5, "no gradient: a bug", role="wrong", at="start", size=12)
    return p


def draw_off_by_one(length):
    """Return the causal mask, and the one that is off by one."""
    p = Picture(
        206,
        f"Two masks of {length} queries and {length} keys. The correct one "
        "allows the diagonal and what lies left of it. The other allows one "
        "more key in each row, red: the next token.",
    )
    side = 22
    for x, name in ((30, "correct"), (226, "off by one")):
        p.text(x + length * side / 2, 14, name, bold=True)
        numbers = np.where(np.tri(length, dtype=bool), 1.0, np.nan)
        numbers[0, 0] = 1
        p.matrix(
            x, 42, numbers, "query", cell=side, height=side,
            texts=length * [length * [""]], rows=range(length),
            columns=range(length),
        )  # fmt: skip
        if name != "correct":
            for t in range(length - 1):
                box = Box(x + (t + 1) * side, 42 + t * side, side, side)
                p.rect(box, f"fill:{colour('wrong')};stroke:{colour('wrong')};"
                       "fill-opacity:.6", 0)  # fmt: skip
    p.text(30, 196, "row: query, column: key", at="start", size=12)
    return p


def draw_row(bug, signs, checks):
    """Return how a row of the matrix is made.

    bug: its name; signs: of the checks, "x" where one sees it.
    """
    seen = [c for c, sign in zip(checks, signs, strict=True) if sign == "x"]
    p = Picture(
        180 + 20 * ((len(seen) - 1) // 2),
        f"A bug, {bug}, is planted in a correct model, and {len(checks)} "
        "checks are run. Each gives a cell of a row; a cross stands where "
        f"the check sees the bug: {', '.join(seen)}.",
    )
    good = p.layer(2, 30, 96, "correct", "value", height=40)
    bad = p.layer(152, 30, 96, "with the bug", "wrong", height=40)
    asked = p.layer(302, 30, 76, f"{len(checks)} checks", height=40)
    p.arrow(good.right, bad.left, role="wrong")
    p.text(125, 42, "plant", role="wrong", size=12)
    p.arrow(bad.right, asked.left)
    p.text(275, 42, "ask", size=12)
    p.text(190, 16, bug, role="wrong", bold=True)
    p.arrow(asked.bottom, (asked.bottom[0], 104))
    wide = 376 / len(checks)
    for i, sign in enumerate(signs):
        box = Box(2 + wide * i, 104, wide, 24)
        opacity = 0.6 if sign == "x" else 0
        p.rect(box, f"stroke:{colour('query')};fill:{colour('query')};"
               f"fill-opacity:{opacity}", 0)  # fmt: skip
        if sign == "x":
            p.text(box.top[0], 121, "×", bold=True)
    p.text(2, 150, "one row of the matrix; these checks see the bug:",
           at="start", size=12)  # fmt: skip
    for i, name in enumerate(seen):
        x, y = 2 + 190 * (i % 2), 172 + 20 * (i // 2)
        p.text(x, y, name, at="start", role="query")
    return p


def draw_coverage(sets, seen, bugs):
    """Return all bugs as squares, those filled that some checks see.

    sets: {name: checks}; seen: {check: names of bugs}; bugs: all names.
    """
    counts = {
        name: len(set().union(*(seen[c] for c in checks)))
        for name, checks in sets.items()
    }
    told = ", ".join(f"{name} see {n}" for name, n in counts.items())
    rows = -(-len(bugs) // 18)
    high = 40 + 20 * rows
    p = Picture(
        high * len(sets),
        f"A square for each of {len(bugs)} bugs, filled if it is seen: "
        f"{told}.",
    )
    for part, (name, checks) in enumerate(sets.items()):
        found = set().union(*(seen[c] for c in checks))
        y = 16 + high * part
        p.text(2, y, f"{name}: {counts[name]} of {len(bugs)}", at="start",
               bold=True)  # fmt: skip
        order = sorted(bugs, key=lambda bug: bug not in found)
        for i, bug in enumerate(order):
            box = Box(2 + 21 * (i % 18), y + 10 + 20 * (i // 18), 18, 17)
            share = 0.7 if bug in found else 0.0
            p.rect(box, f"stroke:{colour('query')};fill:{colour('query')};"
                   f"fill-opacity:{share}", 2)  # fmt: skip
    return p


def draw_constant_sum(rows):
    """Return vectors, their norms, and the sums of these: always zero.

    rows: vectors of one width, (C, D).
    """
    p = Picture(
        40 + 44 * len(rows),
        "Vectors of whole numbers go through a norm, and the entries that "
        "come out add up to zero for each of them, so their sum has no "
        "gradient.",
    )
    p.text(66, 16, "goes in")
    p.text(230, 16, "behind the norm")
    p.text(350, 16, "sum")
    for r, row in enumerate(np.asarray(rows, float)):
        y = 28 + 44 * r
        normed = (row - row.mean()) / row.std()
        left = p.matrix(6, y, [row], cell=40, height=28)
        texts = [[f"{x:.1f}" for x in normed]]
        right = p.matrix(170, y, [normed], "output", texts=texts, cell=40,
                         height=28)  # fmt: skip
        p.arrow(left.right, right.left)
        p.text(350, y + 19, "0", bold=True, role="wrong")
    return p


def draw_shift_of_norm(values, shift):
    """Return why a shift of zero hides that it is never added.

    values: behind a norm, (D,); shift: of a model that is not new, (D,).
    """
    values, shift = np.asarray(values, float), np.asarray(shift, float)
    p = Picture(
        190,
        "A norm's output with its shift added, and with the shift forgotten. "
        "With a shift of zeros both are equal, and nothing is seen; with "
        "other numbers they differ.",
    )
    p.text(84, 16, "shift")
    p.text(194, 16, "added")
    p.text(304, 16, "forgotten")
    for y, row, verdict, role in (
        (28, np.zeros_like(shift), "new: equal, the bug is not seen", "wrong"),
        (112, shift, "random: different, the bug is seen", "value"),
    ):
        for x, numbers, kind in (
            (40, row, "key"), (150, values + row, "token"),
            (260, values, "token"),
        ):  # fmt: skip
            texts = [[f"{n:g}" for n in numbers.round(1)]]
            p.matrix(x, y, [numbers], kind, texts=texts, cell=44, height=28)
        p.text(238 + 11, y + 19, "=" if not row.any() else "≠", role=role,
               bold=True)  # fmt: skip
        p.text(40, y + 48, verdict, at="start", role=role)
    return p


def draw_seen_by(groups):
    """Return all bugs as squares, by what it takes to see them.

    groups: {what it takes: how many bugs}, three.
    """
    total = sum(groups.values())
    told = ", ".join(f"{name} {count}" for name, count in groups.items())
    p = Picture(
        150,
        f"{total} squares, a square for each bug, in three colours: {told}.",
    )
    roles = "query", "key", "wrong"
    kinds = [
        role
        for role, count in zip(roles, groups.values(), strict=True)
        for _ in range(count)
    ]
    for i, role in enumerate(kinds):
        box = Box(2 + 21 * (i % 18), 6 + 20 * (i // 18), 18, 17)
        p.rect(box, f"stroke:{colour(role)};fill:{colour(role)};"
               "fill-opacity:.55", 2)  # fmt: skip
    for i, ((name, count), role) in enumerate(
        zip(groups.items(), roles, strict=True)
    ):
        y = 86 + 22 * i
        p.rect(Box(2, y - 11, 13, 13), f"fill:{colour(role)};"
               "fill-opacity:.55", 2)  # fmt: skip
        p.text(24, y, f"{count}: {name}", at="start")
    return p
