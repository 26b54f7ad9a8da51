"""The drawings of *Training a Transformer*."""

import numpy as np

from .draw import Box, Picture, colour
from .training import stored_training

_LEFT = 52  # where a row of tokens begins, behind what it is


def draw_question(source):
    """Return a word to be reversed, and a first look that is not known.

    source: its letters, as many as it is long.
    """
    p = Picture(
        158,
        f"The letters of {source} in a row, and below them as many empty "
        "places. From the first of these, dashed lines go to all letters.",
    )
    p.text(0, 37, "reads", at="start")
    p.text(0, 133, "writes", at="start")
    above = p.tokens(20, source, left=_LEFT)
    below = p.tokens(116, len(source) * "?", role="mask", left=_LEFT)
    p.rect(below[0], f"stroke:{colour('query')};stroke-width:2", 12)
    for box in above:
        p.line(below[0].top, box.bottom, role="query", dashed=True)
    return p


def _columns(first, middle, last, count):
    """Return where the columns of a shifted sentence begin and end."""
    edges, left = [], _LEFT
    for i in range(count):
        wide = first if i == 0 else last if i == count - 1 else middle
        edges.append((left, wide))
        left += wide
    return edges


def _rows(p, y, inputs, targets, role, gap=78):
    """Draw what is read above what is written; return both rows' boxes."""
    rows = []
    edges = _columns(62, 28, 62, len(inputs))
    for at, name, row in ((y, "reads", inputs), (y + gap, "writes", targets)):
        p.text(0, at + 17, name, at="start")
        rows.append(
            [
                p.token(x + 2, at, text, role, width=wide - 4)
                for (x, wide), text in zip(edges, row, strict=True)
            ]
        )
    return rows


def draw_shift(inputs, targets):
    """Return a target whose tokens are the inputs of the next position.

    inputs, targets: the same number of tokens each.
    """
    p = Picture(
        122,
        f"Two rows of tokens: it reads {' '.join(inputs)}, and writes "
        f"{' '.join(targets)}. An arrow goes from each token that is written "
        "to the same token one place to the right in the row that is read.",
    )
    above, below = _rows(p, 10, inputs, targets, "token")
    for wrote, read in zip(below, above[1:], strict=False):
        p.arrow(wrote.top, read.bottom, role="query")
    return p


def draw_not_shifted(inputs, targets):
    """Return targets that are read one place later, and at their own place.

    inputs, targets: as they should be, the same number of tokens each.
    """
    p = Picture(
        292,
        "Two drawings. Correct: each token that is written is read one place "
        "later. Not shifted: each token that is written is read at its own "
        "place, by an arrow straight down.",
    )
    p.text(0, 14, "correct", at="start", bold=True)
    above, below = _rows(p, 26, inputs, targets, "token")
    for wrote, read in zip(below, above[1:], strict=False):
        p.arrow(wrote.top, read.bottom, role="query")
    p.text(0, 172, "not shifted", at="start", bold=True, role="wrong")
    above, below = _rows(p, 184, targets, targets, "token")
    for wrote, read in zip(below, above, strict=True):
        p.arrow(read.bottom, wrote.top, role="wrong")
    return p


def draw_keys(source, target, keys):
    """Return who should look where: a line from each letter to its key.

    keys: for each letter of the target its place in the source.
    """
    p = Picture(
        172,
        f"The letters of {source} in a row, numbered from 0, and {target} "
        "below. A line goes from each letter below to the letter above that "
        "it needs; the lines cross in the middle.",
    )
    p.text(0, 43, "reads", at="start")
    p.text(0, 141, "writes", at="start")
    above = p.tokens(26, source, "key", left=_LEFT)
    below = p.tokens(124, target, "query", left=_LEFT)
    for i, box in enumerate(above):
        p.text(box.top[0], 16, i, role="mask", size=12)
    for t, box in enumerate(below):
        p.text(box.top[0], 166, t, role="mask", size=12)
    for t, key in enumerate(keys):
        wide = 2.5 if t == 0 else 1.5
        p.arrow(below[t].top, above[key].bottom, role="query", width=wide)
    return p


def draw_rule(lengths):
    """Return where the model looks in a shorter and in a longer source.

    lengths: {letters of the source: (should look, looks)}, two lists of
    places; what is no number is left out.
    """
    p = Picture(
        224,
        "Two maps side by side, for "
        + " and ".join(map(str, lengths))
        + " letters, a row for each letter to write and a column for each "
        "that is read. The needed cells, framed, are the diagonal; the "
        "filled ones, where the model looks, lie beside it.",
    )
    side, x = 18, 24
    for count, (should, looks) in lengths.items():
        letters = "abcdefghi"[:count]
        box = p.matrix(
            x, 40, np.zeros((count, count)), "mask", cell=side, height=side,
            texts=count * [count * [""]], rows=letters[::-1], columns=letters,
        )  # fmt: skip
        p.text(box.top[0], 15, f"{count} letters", bold=True)
        for t, key in enumerate(looks[:count]):
            if isinstance(key, int):
                cell = Box(x + key * side, 40 + t * side, side, side)
                p.rect(cell, f"fill:{colour('wrong')};fill-opacity:.55", 0)
        for t, key in enumerate(should[:count]):
            cell = Box(x + key * side, 40 + t * side, side, side)
            p.rect(cell, f"stroke:{colour('query')};stroke-width:2", 2)
        x = box.right[0] + 40
    p.rect(Box(24, 194, 12, 12), f"stroke:{colour('query')};stroke-width:2", 2)
    p.text(42, 205, "needed", at="start")
    p.rect(
        Box(110, 194, 12, 12), f"fill:{colour('wrong')};fill-opacity:.55", 0
    )
    p.text(128, 205, "looks", at="start")
    return p


def draw_smoothing(vocabulary, target, smoothing):
    """Return the probabilities to predict, without and with smoothing.

    vocabulary: the tokens, three special ones first; target: one of them.
    """
    size, hit = len(vocabulary), vocabulary.index(target)
    other = smoothing / size
    p = Picture(
        140,
        f"Two rows of {size} cells, a cell for each token. Without smoothing "
        f"the cell of {target} has 1 and all others 0; with smoothing it has "
        f"{1 - smoothing + other:.3f} and each other cell {other:.3f}.",
    )
    columns = [*3 * [""], *vocabulary[3:]]
    p.text(14 + 1.5 * 27, 17, "special", role="mask")
    for y, share, name in (
        (24, 0, f"without smoothing: 1 for {target}"),
        (84, smoothing, f"smoothed: {1 - smoothing + other:.3f} for {target}, "
                        f"and {other:.3f} for each other"),
    ):  # fmt: skip
        numbers = [
            (1 - share) * (i == hit) + share / size for i in range(size)
        ]
        texts = [""] * size if share else [f"{x:g}" for x in numbers]
        p.matrix(
            14, y, [numbers], "value", texts=[texts], cell=27, height=26,
            columns=() if share else columns,
        )  # fmt: skip
        p.text(14, y + 43, name, at="start")
    return p


_TOP, _FLOOR, _UNIT = 20, 180, 46  # of the losses: pixels, and for a nat


def _level(loss):
    """Return the height at which a loss is drawn."""
    return _FLOOR - _UNIT * loss


def _loss_axes(p, steps):
    """Draw the axes of losses over the steps of a training."""
    p.line((30, _TOP - 6), (30, _FLOOR), (372, _FLOOR))
    for loss in range(4):
        p.text(23, _level(loss) + 4.5, loss, at="end", size=12)
    p.text(36, _TOP, "loss", at="start", size=12)
    p.text(30, _FLOOR + 16, "step 0", size=12)
    p.text(372, _FLOOR + 16, steps, at="end", size=12)


def draw_prediction(start, guessing, floor):
    """Return the two ends of a loss that is still to be learned.

    start, guessing, floor: losses of the new model, of one that gives all
    tokens the same probability, and of a perfect one.
    """
    p = Picture(
        204,
        f"An empty plot of the loss over the steps. A dot at the left, "
        f"{start:.2f}, is the start; a dashed line at {guessing:.2f} is "
        f"guessing, and one at {floor:.2f} is the floor. Between them stands "
        "a question mark.",
    )
    _loss_axes(p, "end")
    p.line((30, _level(guessing)), (372, _level(guessing)), role="mask",
           dashed=True)  # fmt: skip
    p.line((30, _level(floor)), (372, _level(floor)), role="value",
           dashed=True)  # fmt: skip
    p.add(
        f'<circle cx="30" cy="{_level(start):.1f}" r="5" '
        f'style="fill:{colour("query")}"/>'
    )
    p.text(42, _level(start) + 5, f"start: {start:.2f}", role="query",
           at="start")  # fmt: skip
    p.text(372, _level(guessing) - 6, f"every token alike: {guessing:.2f}",
           at="end")  # fmt: skip
    p.text(372, _level(floor) - 6, f"floor: {floor:.2f}", role="value",
           at="end")  # fmt: skip
    p.text(200, _level(1.45), "?", size=30, role="query")
    return p


def draw_plateaus(stops):
    """Return the loss of the stored training, and where it can stop.

    stops: {what a model knows: its loss}, the largest first.
    """
    _, losses = stored_training()
    told = ", ".join(f"{knows} {loss:.2f}" for knows, loss in stops.items())
    p = Picture(
        276,
        f"The loss over 200 steps. It starts at {losses[0]:.2f}, falls to "
        "the second of five levels and stays there for a while, slows down "
        "again below the third, and falls to the last. The levels, by what "
        f"a model knows: {told}.",
    )
    floor, unit = 252, 70

    def level(loss):
        return floor - unit * loss

    p.line((30, 14), (30, floor), (372, floor))
    for loss in range(4):
        p.text(23, level(loss) + 4.5, loss, at="end", size=12)
    p.text(36, 20, "loss", at="start", size=12)
    p.text(30, floor + 16, "step 0", size=12)
    p.text(372, floor + 16, 5 * (len(losses) - 1), at="end", size=12)
    for i, (knows, loss) in enumerate(stops.items()):
        role = "value" if "floor" in knows else "mask" if i == 0 else "key"
        p.line((30, level(loss)), (372, level(loss)), role=role, width=1,
               dashed=True)  # fmt: skip
        lift = -5 if i == 0 else -14 if "floor" in knows else 14
        p.text(372, level(loss) + lift,
               f"{knows}: {loss:.2f}".replace(": the", ", the"), role=role,
               at="end", size=12)  # fmt: skip
    across = 342 / (len(losses) - 1)
    p.line(
        *((30 + across * i, level(loss)) for i, loss in enumerate(losses)),
        role="query",
        width=2.5,
    )
    return p


def draw_rate(rate_of, warmup, steps=300):
    """Return the learning rate over the steps.

    rate_of: a function of a step, from one on; warmup: where it is largest.
    """
    most = rate_of(warmup)
    p = Picture(
        150,
        f"The rate over {steps} steps. It rises in a straight line up to "
        f"{most:.3f} at step {warmup}, and then falls more and more slowly.",
    )

    def place(step):
        return 30 + 342 * step / steps, 122 - 84 * rate_of(step) / most

    p.line((30, 14), (30, 122), (372, 122))
    p.text(36, 20, "rate", at="start", size=12)
    p.text(30, 138, "step 0", size=12)
    p.text(372, 138, steps, at="end", size=12)
    peak = place(warmup)
    p.line(peak, (peak[0], 122), role="mask", dashed=True)
    p.text(peak[0], 138, warmup, size=12)
    points = [place(s) for s in (1, *range(warmup, steps + 1, 5))]
    p.line(*points, role="query", width=2.5)
    p.text(peak[0], 30, f"{most:.3f}", role="query", bold=True)
    p.text(92, 112, "warm-up", role="query")
    p.text(265, 112, "finer and finer steps", role="query")
    return p


def draw_loop():
    """Return the circle of a training: batch, loss, gradients, step."""
    p = Picture(
        176,
        "A circle of boxes: a new batch goes into the model, whose logits "
        "give the loss; the loss gives gradients, and Adam takes a step with "
        "them and the rate, which gives the model new weights.",
    )
    batch = p.layer(2, 16, 84, "new batch", "key")
    model = p.layer(130, 8, 104, "model", "query", height=44)
    loss = p.layer(296, 16, 82, "loss", "wrong")
    back = p.layer(284, 116, 94, "gradients", "wrong")
    step = p.layer(130, 108, 104, "Adam's step", "value", height=44)
    rate = p.layer(2, 116, 84, "rate", "value")
    p.arrow(batch.right, model.left)
    p.arrow(model.right, loss.left)
    p.text(265, 22, "logits", size=12)
    p.arrow((338, 44), (338, 116), role="wrong")
    p.arrow(back.left, step.right, role="wrong")
    p.arrow(rate.right, step.left, role="value")
    p.arrow(step.top, model.bottom, role="value", text="new weights")
    p.text(42, 160, "of this step", size=12)
    return p


def draw_reading():
    """Return one wrong letter with teacher forcing, and in use."""
    p = Picture(
        282,
        "Two drawings of four positions that should write e h c a. With "
        "teacher forcing the third writes d, and the fourth reads the "
        "correct c. In use the fourth reads the d, and may go wrong, too.",
    )
    for y, title, third, last, role in (
        (14, "teacher forcing: reads the correct letters", "c", "a", "value"),
        (160, "in use: reads what it has written", "d", "?", "wrong"),
    ):
        p.text(0, y, title, at="start", bold=True)
        p.text(0, y + 33, "reads", at="start")
        p.text(0, y + 107, "writes", at="start")
        places = [_LEFT + 6 + 82 * i for i in range(4)]
        reads, wrote = [], []
        for x, read, letter in zip(
            places, ("<start>", "e", "h", third), ("e", "h", "d", last),
            strict=True,
        ):  # fmt: skip
            is_third = read == third
            kind = role if is_third else "token"
            reads.append(p.token(x, y + 16, read, kind, width=68))
            kind = "wrong" if letter in "d?" else "token"
            wrote.append(p.token(x, y + 90, letter, kind, width=68))
        for read, letter in zip(reads, wrote, strict=True):
            p.arrow(read.bottom, letter.top, role="mask")
        if role == "wrong":
            for letter, read in zip(wrote, reads[1:], strict=False):
                kind = "wrong" if letter is wrote[2] else "query"
                x, top = letter.right
                p.arrow((x, top), (x + 7, top), (x + 7, read.left[1]),
                        read.left, role=kind)  # fmt: skip
    return p
