"""The drawings of *A model at work*: its rows, batches and answers."""

import numpy as np

from .draw import Box, Picture, colour


def draw_job(rows):
    """Return questions that go into a model, and what comes out.

    rows: pairs of a question and what is written, "?" where it is open.
    """
    p = Picture(
        30 + 62 * len(rows),
        "Questions on the left, a model in the middle, answers on the right: "
        + "; ".join(f"{one} gives {other}" for one, other in rows)
        + ".",
    )
    high = 62 * len(rows) - 14
    model = p.layer(222, 8, 40, "", "query", height=high)
    x, y = model.top[0] + 4.5, 8 + high / 2
    p.add(
        f'<text x="{x:g}" y="{y:g}" transform="rotate(-90 {x:g} {y:g})" '
        f'style="fill:{colour("")};text-anchor:middle">the model</text>'
    )
    for i, (question, answer) in enumerate(rows):
        y = 16 + 62 * i
        words, lines = question.split(" "), [""]
        for word in words:
            if len(lines[-1]) + len(word) > 22:
                lines.append("")
            lines[-1] = f"{lines[-1]} {word}".strip()
        box = Box(2, y, 188, 34)
        p.rect(box, f"stroke:{colour('key')}", 8)
        for k, line in enumerate(lines):
            step = 21 if len(lines) == 1 else 14 + 14 * k
            p.text(96, y + step, line)
        role = "wrong" if answer == "?" else "value"
        out = Box(292, y + 3, 86, 28)
        p.rect(out, f"stroke:{colour(role)}", 8)
        p.text(335, y + 21.5, answer, role=role, bold=answer == "?")
        p.arrow(box.right, (222, y + 17))
        p.arrow((262, y + 17), out.left, role=role)
    p.text(96, 24 + 62 * len(rows), "reads", role="mask", size=12)
    p.text(335, 24 + 62 * len(rows), "writes", role="mask", size=12)
    return p


def draw_fork(question, readings):
    """Return a question that two people answer differently.

    readings: {who asks: the answer}.
    """
    p = Picture(
        116,
        f"{question} leads by two arrows to two answers: "
        + ", ".join(f"{who} means {date}" for who, date in readings.items())
        + ".",
    )
    box = p.token(4, 46, question, "key", width=80)
    for (who, answer), y in zip(readings.items(), (14, 78), strict=True):
        role = "query" if y < 46 else "output"
        out = p.token(266, y, answer, role, width=110)
        p.arrow(box.right, (150, y + 12), out.left, role=role)
        p.text(202, y + 6, who, role=role, size=12)
    return p


def draw_split(count=9, ways=4):
    """Return rows of some dates, divided by dates and by rows."""
    p = Picture(
        206,
        f"Two grids of {count} columns, the dates, and {ways} rows, the ways "
        "to write them. By dates, whole columns go to training, validation "
        "or test. By rows, nearly every column is in two parts or three.",
    )
    roles = "query", "key", "output"

    def part(r, c, by_dates):
        if by_dates:
            return 1 if c == 3 else 2 if c == 6 else 0
        return (0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0)[(3 * r + 7 * c) % 11]

    for x, title, role in (
        (6, "by dates", "value"), (204, "by rows", "wrong")
    ):  # fmt: skip
        p.text(x, 16, title, at="start", bold=True, role=role)
        p.text(x, 152, "a column: one date", at="start", size=12)
        for r in range(ways):
            for c in range(count):
                fill = colour(roles[part(r, c, role == "value")])
                box = Box(x + 19 * c, 28 + 27 * r, 17, 25)
                p.rect(box, f"fill:{fill};fill-opacity:.55", 2)
    names = "training", "validation", "test"
    for name, role, x in zip(names, roles, (6, 104, 214), strict=True):
        box = Box(x, 178, 14, 14)
        p.rect(box, f"fill:{colour(role)};fill-opacity:.55", 2)
        p.text(x + 20, 190, name, at="start")
    return p


def draw_tokens(text, tokens, ids):
    """Return a text as tokens, and their ids.

    tokens, ids: of the text, as many each.
    """
    left, line, places = 2, 0, []
    for token in tokens:
        wide = max(28, 14 + 8 * len(token))
        if left + wide > 378:
            left, line = 2, line + 1
        places.append((left, line, wide))
        left += wide + 4
    p = Picture(
        66 + 62 * (line + 1),
        f"The text {text}, cut into {len(tokens)} tokens: "
        f"{' '.join(tokens)}. Below each stands its id.",
    )
    p.text(190, 18, text, bold=True)
    p.arrow((190, 26), (190, 48), role="mask")
    for token, number, (x, at, wide) in zip(tokens, ids, places, strict=True):
        box = p.token(x, 56 + 62 * at, token, width=wide)
        p.text(box.bottom[0], 98 + 62 * at, number, role="key", size=12)
    return p


def draw_padded(ids):
    """Return rows of ids of one length; pads, whose id is 0, are hatched."""
    ids = np.asarray(ids)
    count = (ids == 0).sum()
    p = Picture(
        34 * len(ids) + 34,
        f"{len(ids)} rows of {ids.shape[1]} cells, the ids of tokens. The "
        f"shorter rows end in hatched cells, {count} pads.",
    )
    texts = [[str(i) for i in row] for row in ids]
    numbers = np.where(ids == 0, np.nan, 1)
    box = p.matrix(8, 8, numbers, "key", texts=texts, cell=36, height=30)
    p.text(box.x, box.bottom[1] + 20, "ids of a question", at="start",
           role="key")  # fmt: skip
    p.text(box.right[0], box.bottom[1] + 20, "hatched: <pad>, id 0", at="end")
    return p


def draw_batches(batches):
    """Return the lengths in two batches, with the pads that they need.

    batches: {name: lengths of its rows}, two.
    """
    rows = max(map(len, batches.values()))
    p = Picture(
        58 + 8 * rows,
        "Two batches as bars, a bar for each row, filled up with grey pads "
        f"to the longest: {' and '.join(batches)}. At random about half of "
        "the area is grey, by length none or hardly any.",
    )
    longest = max(map(max, batches.values()))
    for x, (name, lengths) in zip((6, 200), batches.items(), strict=True):
        p.text(x, 18, name, at="start", bold=True)
        unit = 174 / longest
        for r, length in enumerate(lengths):
            y = 28 + 8 * r
            style = f"fill:{colour('key')};fill-opacity:.7"
            p.rect(Box(x, y, unit * length, 6), style, 1)
            pads = Box(x + unit * length, y, unit * (max(lengths) - length), 6)
            if pads.width:
                p.rect(pads, f"fill:{colour('mask')};fill-opacity:.35", 1)
    y = 36 + 8 * rows
    p.rect(Box(6, y, 14, 10), f"fill:{colour('key')};fill-opacity:.7", 2)
    p.text(26, y + 10, "tokens", at="start", size=12)
    p.rect(Box(92, y, 14, 10), f"fill:{colour('mask')};fill-opacity:.35", 2)
    p.text(112, y + 10, "pads", at="start", size=12)
    return p


def draw_copy(read, wrote, keys, wrong):
    """Return an answer that is copied, and the place where it is not.

    read, wrote: tokens; keys: the place in read of each token that is
    written; wrong: {place in wrote: the place that it should have}.
    """
    p = Picture(
        140,
        f"It reads {' '.join(read)} and writes {' '.join(wrote)}. Arrows lead "
        "from each token that is written to its source; the red one leads to "
        "the month, where a dashed line leads to the day.",
    )
    p.text(0, 27, "reads", at="start")
    p.text(0, 119, "writes", at="start")
    above = p.tokens(10, read, "key", left=56)
    below = [
        p.token(b.x, 102, text, "wrong" if i in wrong else "query", b.width)
        for i, (b, text) in enumerate(zip(above, wrote, strict=True))
    ]
    for i, key in enumerate(keys):
        role = "wrong" if i in wrong else "query"
        if i in wrong:
            ends = below[i].top, above[wrong[i]].bottom
            p.line(*ends, role="mask", dashed=True)
        p.arrow(below[i].top, above[key].bottom, role=role)
    return p


def draw_stranger(read, wrote, keys):
    """Return an answer, of which one part is guessed.

    read, wrote: tokens; keys: {place in wrote: place in read, or None for a
    token that the model cannot know}.
    """
    p = Picture(
        150,
        f"It reads {' '.join(read)} and writes {' '.join(wrote)}. Year and "
        "day have arrows to their digits; the month has a question mark.",
    )
    p.text(0, 27, "reads", at="start")
    p.text(0, 119, "writes", at="start")
    wide, left, above = [50, 120, 70], 72, []
    for text, w in zip(read, wide, strict=True):
        above.append(p.token(left, 10, text, "key", width=w))
        left += w + 24
    below = p.tokens(102, wrote, "query", left=64, right=376)
    for i, box in enumerate(below):
        key = keys.get(i, i)
        if i not in keys:
            continue
        if key is None:
            p.rect(box, f"stroke:{colour('wrong')};stroke-width:2", 12)
            p.line(box.top, above[1].bottom, role="wrong", dashed=True)
            p.text(box.bottom[0], 144, "a guess", role="wrong", size=12)
        else:
            p.arrow(box.top, above[key].bottom, role="query")
    return p


def draw_folder():
    """Return the three files that a program needs to write."""
    p = Picture(
        184,
        "A folder with three files, tokenizer, sizes and weights. A second "
        "program reads the folder, and 4. Mai 2027 becomes 2027-05-04.",
    )
    p.line((8, 20), (14, 8), (60, 8), (66, 20), role="token")
    p.rect(
        Box(4, 20, 168, 146),
        f"stroke:{colour('token')};fill:{colour('token')};fill-opacity:.08",
    )
    for i, (name, role) in enumerate(
        (("tokenizer.json", "key"), ("sizes.json", "output"),
         ("weights", "query"))
    ):  # fmt: skip
        p.layer(18, 36 + 42 * i, 140, name, role)
    p.machine(258, 66, 116, "another program", height=44)
    p.arrow((172, 88), (258, 88), text="load")
    p.token(268, 14, "4. Mai 2027", "key", width=98)
    p.arrow((317, 38), (317, 66), role="key")
    p.token(268, 148, "2027-05-04", "value", width=98)
    p.arrow((317, 118), (317, 148), role="value")
    return p
