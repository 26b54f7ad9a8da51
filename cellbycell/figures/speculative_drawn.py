"""The drawings of *A draft and a judge*: a round, its law, its caches."""

from .draw import Box, Picture, colour


def _filled(role, share, edge=True):
    """Return the style of a box of a role, filled in part."""
    look = f"fill:{colour(role)};fill-opacity:{share:.2f}"
    return f"stroke:{colour(role)};{look}" if edge else look


def draw_round(text, guess, wanted):
    """Return a round over time: guesses one by one, and one check of all.

    text: that both models have; guess: the draft's letters; wanted: the
    target's at the same places, and one more.
    """
    same = 0
    while same < len(guess) and guess[same] == wanted[same]:
        same += 1
    brought = guess[:same] + wanted[same]
    picture = Picture(
        236,
        f"Time goes to the right. A draft guesses {guess} after {text}, a "
        "letter a call; then one call of the target reads all of them and "
        f"wants {wanted}. They agree up to {guess[:same]}, so the round "
        f"brings {brought}.",
    )
    picture.text(4, 30, "draft", role="key", at="start")
    picture.text(4, 96, "target", role="query", at="start")
    left, step = 62, 38
    for i, letter in enumerate(guess):
        box = Box(left + step * i, 14, 30, 24)
        picture.rect(box, _filled("key", 0.15))
        picture.text(box.top[0], 31, letter)
        picture.arrow(box.bottom, (box.bottom[0], 58), role="key")
        if i:
            x = box.x - 8
            picture.arrow((x, 26), (box.x, 26), role="key")
    wide = left + step * len(guess)
    picture.text(left + 75, 54, "", size=12)
    call = Box(wide + 4, 78, 62, 28)
    picture.rect(call, _filled("query", 0.2))
    picture.text(call.top[0], 97, "one call")
    picture.line((left + 15, 60), (wide - 23, 60), role="key")
    x = call.top[0]
    picture.arrow((wide - 23, 60), (x, 60), (x, 78), role="key")
    picture.arrow((4, 120), (376, 120), role="mask", text="")
    picture.text(376, 114, "time", role="mask", at="end", size=12)
    columns = [142 + 34 * i for i in range(len(wanted))]
    for name, y, letters, role in (
        ("guessed", 138, guess, "key"), ("wanted", 168, wanted, "query"),
    ):  # fmt: skip
        picture.text(130, y + 17, name, role=role, at="end")
        for i, (x, letter) in enumerate(zip(columns, letters, strict=False)):
            look = "mask" if i > same else role
            picture.rect(Box(x, y, 28, 24), _filled(look, 0.12))
            picture.text(x + 14, y + 17, letter)
    picture.text(130, 222, "added", at="end", bold=True)
    for i, letter in enumerate(brought):
        role = "query" if i == same else "key"
        picture.rect(Box(columns[i], 205, 28, 24), _filled(role, 0.35))
        picture.text(columns[i] + 14, 222, letter, bold=True)
    x = columns[same] + 42
    picture.text(x, 222, "of the target", role="query", at="start", size=12)
    return picture


def draw_law(tokens, p, q):
    """Return how what is rejected makes the target's law of the draft's.

    tokens: four words; p, q: probabilities of target and draft, (N,).
    """
    over = [max(float(b - a), 0) for a, b in zip(p, q, strict=True)]
    both = [float(min(a, b)) for a, b in zip(p, q, strict=True)]
    rest = [float(a) - c for a, c in zip(p, both, strict=True)]
    moved = sum(over)
    picture = Picture(
        206,
        f"Left, the draft's bars; what is above the target's is rejected, "
        f"{moved:.2f} in all. An arrow brings it to the right, on top of the "
        "tokens that were proposed too rarely: the bars of the target.",
    )
    tall, floor = 250, 164
    names = ("proposed, q", 0), ("in the end, p", 206)
    for (name, left), tops, role in zip(
        names, (over, rest), ("mask", "value"), strict=True
    ):
        picture.text(left + 84, 16, name)
        picture.line((left + 2, floor), (left + 172, floor), role="mask")
        for i, token in enumerate(tokens):
            x = left + 8 + 41 * i
            low = Box(x, floor - tall * both[i], 32, tall * both[i])
            picture.rect(low, _filled("query", 0.55, False), 0)
            picture.text(x + 16, floor + 16, token, size=12)
            if tops[i] > 0:
                top = Box(x, low.y - tall * tops[i], 32, tall * tops[i])
                picture.rect(top, _filled(role, 0.45), 0)
                text = f"{tops[i]:.2f}"
                if tall * tops[i] >= 16:
                    picture.text(x + 16, top.left[1] + 4, text, size=11)
                else:
                    picture.text(x + 16, top.y - 4, text, size=11)
    picture.arrow((150, 84), (212, 66), role="value")
    picture.text(172, 62, f"{moved:.2f}", role="value", size=12)
    note = "blue is accepted, grey is rejected and drawn anew as green"
    picture.text(190, 200, note, size=12)
    return picture


def draw_tokens_a_call(alpha, count):
    """Return how likely each token of a round stands, and their sum."""
    chances = [float(alpha) ** i for i in range(count + 1)]
    told = ", ".join(f"{chance:.2f}" for chance in chances)
    picture = Picture(
        176,
        f"Bars that fall from left to right: {told}. Each drafted token "
        "stands only if all before it do. Together the bars are "
        f"{sum(chances):.2f} tokens a call.",
    )
    floor, step = 130, 250 / len(chances)
    picture.line((8, floor), (262, floor), role="mask", width=1)
    for i, chance in enumerate(chances):
        x, tall = 12 + step * i, 100 * chance
        role = "key" if i else "query"
        box = Box(x, floor - tall, step - 10, tall)
        picture.rect(box, _filled(role, 0.45), 1)
        picture.text(box.top[0], box.y - 6, f"{chance:.2f}", size=12)
        name = str(i) if i else "target's"
        picture.text(box.top[0], floor + 16, name, size=12)
    x = 12 + step * 1.5 + 2 * step
    picture.text(x - step / 2, floor + 36, "drafted", role="key")
    picture.text(322, 66, "together", size=12)
    picture.text(322, 88, f"{sum(chances):.2f}", bold=True, size=17)
    picture.text(322, 108, "tokens a call", size=12)
    return picture


def draw_caches(text, guess, brought):
    """Return what both models have read before and after a cut.

    text: before the round; guess: letters that were drafted; brought: those
    that the round adds, the last of them the target's.
    """
    kept = len(brought) - 1
    picture = Picture(
        226,
        f"After {text} the draft guessed {guess}. The target's cache holds "
        "all of it, the draft's all but the last letter. Then both are cut, "
        f"and hold {text + brought[:kept]}: all but the last letter of the "
        "text.",
    )
    whole = text + guess
    left, cell = 118, 30

    def row(y, name, letters, role, shown, crossed=()):
        picture.text(108, y + 16, name, role=role, at="end")
        for i in range(shown):
            box = Box(left + cell * i, y, cell, 22)
            look = "wrong" if i in crossed else role
            picture.rect(box, _filled(look, 0.16), 0)
            picture.text(box.top[0], y + 16, letters[i])
            if i in crossed:
                ends = (box.x, y + 22), (box.x + cell, y)
                picture.line(*ends, role="wrong")

    after = text + brought
    length = len(text) + kept
    picture.text(4, 14, "the guesses are read", at="start", bold=True)
    row(22, "text, guesses", whole, "token", len(whole))
    row(
        50,
        "target's cache",
        whole,
        "query",
        len(whole),
        range(length, len(whole)),
    )
    row(
        78,
        "draft's cache",
        whole,
        "key",
        len(whole) - 1,
        range(length, len(whole) - 1),
    )
    picture.text(4, 130, "the round is over", at="start", bold=True)
    row(138, "text", after, "token", len(after))
    row(166, "target's cache", after, "query", length)
    row(194, "draft's cache", after, "key", length)
    x = left + cell * length
    picture.rect(
        Box(x, 166, cell, 50), f"stroke:{colour('mask')};stroke-dasharray:4 3"
    )
    picture.text(x + cell + 8, 196, "to be read", at="start", size=12)
    return picture


def draw_rounds(names):
    """Return names in rounds: a box for each call of the target.

    names: with a bar after each round; the last letter of a round is the
    target's.
    """
    calls = [name.count("|") for name in names]
    told = "; ".join(
        f"{name.replace('|', '')} took {count}"
        for name, count in zip(names, calls, strict=True)
    )
    picture = Picture(
        30 + 40 * len(names),
        f"Names as letters, those of the draft in orange, those of the "
        f"target in blue, a box around each call: {told} calls.",
    )
    picture.text(4, 14, "the draft's", role="key", at="start")
    picture.text(84, 14, "the target's", role="query", at="start")
    picture.text(376, 14, "calls", at="end")
    for r, name in enumerate(names):
        x, y = 6, 26 + 40 * r
        for part in name.strip("|").split("|"):
            wide = 26 * len(part)
            for i, letter in enumerate(part):
                role = "query" if i == len(part) - 1 else "key"
                box = Box(x + 2 + 26 * i, y + 3, 22, 22)
                picture.rect(box, _filled(role, 0.3, False), 2)
                picture.text(box.top[0], y + 19, letter)
            look = f"stroke:{colour(None)};stroke-width:1.2"
            picture.rect(Box(x, y, wide, 28), look)
            x += wide + 6
        picture.text(372, y + 19, calls[r], at="end", bold=True)
    return picture


def draw_calls(calls, length):
    """Return how many calls some drafts take for a text of this length.

    calls: {noise: calls of the target}.
    """
    told = ", ".join(
        f"{count} with {level:g}" for level, count in calls.items()
    )
    picture = Picture(
        34 + 32 * (len(calls) + 1),
        f"Bars of the calls for {length} letters: {length} without a draft, "
        f"and with drafts of a noise, {told}.",
    )
    picture.text(112, 14, "noise of the draft", at="end", size=12)
    picture.text(122, 14, "calls of the target", at="start", size=12)
    rows = [("no draft", length), *((f"{x:g}", n) for x, n in calls.items())]
    for i, (name, count) in enumerate(rows):
        y, role = 24 + 32 * i, "query" if i else "mask"
        picture.text(112, y + 16, name, at="end")
        box = Box(122, y, 8.8 * count, 22)
        picture.rect(box, _filled(role, 0.4), 2)
        for c in range(1, count):
            x = 122 + 8.8 * c
            picture.line((x, y), (x, y + 22), role=role, width=0.7)
        picture.text(box.right[0] + 6, y + 16, count, at="start", bold=True)
    return picture


def draw_full_rounds(length, count):
    """Return rounds in which every proposal is accepted.

    length: tokens to write; count: drafted ones in a round.
    """
    calls = -(-length // (count + 1))
    picture = Picture(
        84,
        f"{length} tokens in {calls} boxes, a call each: {count} of the "
        "draft and one of the target, and fewer in the last.",
    )
    x, wide = 6, 11
    for call in range(calls):
        size = min(count + 1, length - call * (count + 1))
        for i in range(size):
            role = "query" if i == size - 1 else "key"
            box = Box(x + 2 + wide * i, 31, wide - 2, 22)
            picture.rect(box, _filled(role, 0.45, False), 1)
        whole = Box(x, 27, wide * size + 2, 30)
        picture.rect(whole, f"stroke:{colour(None)};stroke-width:1.2")
        picture.text(whole.top[0], 74, call + 1, size=12)
        x = whole.right[0] + 7
    picture.text(6, 16, "the draft's", role="key", at="start")
    picture.text(86, 16, "the target's", role="query", at="start")
    picture.text(374, 16, "a box: a call", at="end", size=12)
    return picture


def draw_wrong_law(tokens, p, law):
    """Return the target's bars beside those that likeliest guesses give.

    tokens: four words; p, law: probabilities (N,).
    """
    p, law = [float(x) for x in p], [float(x) for x in law]
    told = "; ".join(
        f"{token} {a:.2f} and {b:.2f}"
        for token, a, b in zip(tokens, p, law, strict=True)
    )
    picture = Picture(
        180,
        f"Two bars for each token, the target's and that of the likeliest "
        f"guesses: {told}.",
    )
    floor, tall = 150, 160
    picture.line((10, floor), (370, floor), role="mask")
    picture.text(190, 16, "the target's", role="query", at="start")
    text = "with the likeliest guesses"
    picture.text(190, 34, text, role="wrong", at="start")
    for i, token in enumerate(tokens):
        left = 18 + 90 * i
        for x, value, role in (
            (left, p[i], "query"), (left + 36, law[i], "wrong"),
        ):  # fmt: skip
            if value:
                box = Box(x, floor - tall * value, 32, tall * value)
                picture.rect(box, _filled(role, 0.45), 1)
            y = floor - tall * value - 6
            picture.text(x + 16, y, f"{value:.2f}", size=12)
        picture.text(left + 34, floor + 18, token)
    return picture


def draw_lookup(words, size, count):
    """Return guesses that are looked up in the text itself.

    words: of the text; size: of its end, which stands earlier, too; count:
    how many words to guess.
    """
    end = words[-size:]
    at = next(i for i in range(len(words)) if words[i : i + size] == end)
    guessed = words[at + size : at + size + count]
    picture = Picture(
        112,
        f"The text {' '.join(words)}. Its end, {' '.join(end)}, stood there "
        f"before, and what came after it then is guessed: "
        f"{' '.join(guessed)}.",
    )
    places, x = [], 36
    for i, word in enumerate([*words, *guessed]):
        wide = 12 + 7.6 * len(word)
        is_end = at <= i < at + size or i in range(
            len(words) - size, len(words)
        )
        role = "key" if i >= len(words) else "query" if is_end else "token"
        box = Box(x, 62, wide, 24)
        if i >= len(words):
            look = f"stroke:{colour(role)};stroke-dasharray:4 3"
            picture.rect(box, look, 12)
        else:
            picture.rect(box, _filled(role, 0.15 if is_end else 0), 12)
        picture.text(box.top[0], 79, word)
        places.append(box)
        x += wide + 4
    found, last = places[at], places[len(words) - size]
    picture.arc(last.top, found.top, 0.25, "query")
    picture.text(
        (found.top[0] + last.top[0]) / 2, 44, "stood here", role="query",
        size=12,
    )  # fmt: skip
    first, final = places[len(words)], places[-1]
    middle = (first.x + final.right[0]) / 2
    picture.text(middle, 106, "guessed", role="key", size=12)
    return picture


def draw_batch(faster):
    """Return how many times as fast drafting is, for texts at once.

    faster: {texts: times}.
    """
    told = ", ".join(
        f"{times:.2f} with {rows}" for rows, times in faster.items()
    )
    picture = Picture(
        184,
        f"Bars of how many times as fast drafting is: {told} texts at once. "
        "A line at 1 is plain decoding; the last two bars stay below it.",
    )
    floor, tall = 140, 66
    for i, (rows, times) in enumerate(faster.items()):
        x, role = 34 + 56 * i, "query" if times > 1.02 else "wrong"
        role = "mask" if abs(times - 1) <= 0.02 else role
        box = Box(x, floor - tall * times, 40, tall * times)
        picture.rect(box, _filled(role, 0.4), 1)
        picture.text(box.top[0], box.y - 6, f"{times:.2f}", size=12)
        picture.text(box.top[0], floor + 17, rows)
    picture.line((20, floor), (372, floor), role="mask", width=1)
    y = floor - tall
    picture.line((20, y), (372, y), role="mask", dashed=True)
    picture.text(16, y + 4, "1", at="end", role="mask")
    picture.text(196, 180, "texts at once", size=12)
    return picture


def draw_rows(held):
    """Return the columns of a cache whose rows accepted unequally.

    held: for each row, the position of each column; -1 for a rejected one.
    """
    told = "; ".join(
        f"row {r}: " + " ".join("x" if at < 0 else str(at) for at in row)
        for r, row in enumerate(held, 1)
    )
    wide = (380 - 46) / max(map(len, held))
    picture = Picture(
        28 + 32 * len(held),
        "The columns of a cache, each with the position it has in its row, "
        f"or a cross for a rejected token. {told}.",
    )
    for r, row in enumerate(held):
        y = 8 + 32 * r
        picture.text(40, y + 16, f"row {r + 1}", at="end")
        for c, at in enumerate(row):
            box = Box(46 + wide * c, y, wide, 22)
            role = "wrong" if at < 0 else "query"
            picture.rect(box, _filled(role, 0.16), 0)
            if at < 0:
                picture.line(
                    (box.x, y + 22), (box.x + wide, y), role="wrong", width=1
                )
            else:
                picture.text(box.top[0], y + 15.5, at, size=11)
    picture.text(
        46, 22 + 32 * len(held), "columns, in the order in which they were "
        "read", at="start", size=12,
    )  # fmt: skip
    return picture
