"""The drawings of *Experts in earnest*: a router, and its rows."""

import numpy as np

from .draw import Box, Picture, colour

_EXPERTS = "query", "key", "value", "output"  # a role's colour for each


def draw_router(asked):
    """Return the arrows of a router, and the rows that each expert gets.

    asked: two experts for each token.
    """
    got = [[t for t, pair in enumerate(asked) if e in pair] for e in range(4)]
    told = "; ".join(
        f"expert {e} gets {', '.join(map(str, tokens))}"
        for e, tokens in enumerate(got)
    )
    picture = Picture(
        274,
        f"Six tokens with two arrows each, to four experts. Below stand the "
        f"rows of each expert, by token: {told}.",
    )
    tokens = picture.tokens(10, [f"token {t}" for t in range(len(asked))])
    for e, rows in enumerate(got):
        x, role = 6 + 95 * e, _EXPERTS[e]
        box = picture.layer(x, 124, 83, f"expert {e}", role)
        for i, t in enumerate(rows):
            start = tokens[t].bottom
            end = box.x + 16 + 51 * i / max(1, len(rows) - 1), 122
            picture.arrow(start, end, role=role, width=1.3)
            row = Box(x, 164 + 25 * i, 83, 22)
            style = f"stroke:{colour(role)};fill:{colour(role)};"
            picture.rect(row, style + "fill-opacity:.22", radius=2)
            picture.text(row.top[0], row.y + 16, f"token {t}", size=12)
    return picture


def draw_sum(number, factors, chosen):
    """Return one token's output: the halves of two experts, added up.

    number: the token; factors: by which each expert multiplies; chosen: the
    two experts that it asks.
    """
    found = [factors[e] * number for e in chosen]
    total = sum(found) / 2
    picture = Picture(
        178,
        f"The token {number:g} goes to two of three experts, which make "
        f"{found[1]:g} and {found[0]:g} of it; the sum of both halves is "
        f"{total:g}.",
    )
    token = picture.token(4, 76, f"x = {number:g}", width=62)
    picture.plus(286, 88)
    for e, factor in enumerate(factors):
        y, used = 14 + 59 * e, e in chosen
        role = _EXPERTS[e] if used else "mask"
        box = picture.layer(120, y, 74, f"× {factor:g}", role, 30)
        if not used:
            style = f"stroke:{colour('mask')};stroke-dasharray:4 3"
            picture.text(204, y + 20, "not asked", role="mask", at="start")
            picture.rect(box, style)
            continue
        picture.arrow(token.right, (118, y + 15), role=role)
        sign = -1 if y < 70 else 1
        picture.line((196, y + 15), (286, y + 15), role=role)
        picture.arrow((286, y + 15), (286, 88 + 10 * sign), role=role)
        text = f"½ · {factor * number:g}"
        picture.text(240, y + 8 + 28 * (sign > 0), text, role=role)
    picture.arrow((296, 88), (316, 88))
    picture.token(318, 76, f"{total:g}", width=58)
    return picture


def draw_sorting(asked, inputs, factors):
    """Return pairs, sorted by expert, computed in blocks, and put back.

    asked: two experts for each token; inputs: a number for each token;
    factors: by which each expert multiplies.
    """
    flat = np.ravel(asked)  # (C,)
    order = np.argsort(flat, kind="stable")
    picture = Picture(
        40 + 26 * len(flat),
        f"Pairs 0 to {len(flat) - 1} in the order of the tokens, then sorted "
        f"by expert: {', '.join(map(str, order))}. Each expert multiplies one "
        "block, and arrows back lead each result to its pair.",
    )
    for x, text in (
        (52, "pair: input"), (190, "sorted, computed"), (330, "put back"),
    ):  # fmt: skip
        picture.text(x, 18, text, bold=True)

    def row(x, width, place, text, e):
        box = Box(x, 30 + 26 * place, width, 22)
        style = f"stroke:{colour(_EXPERTS[e])};fill:{colour(_EXPERTS[e])};"
        picture.rect(box, style + "fill-opacity:.2", radius=2)
        picture.text(box.top[0], box.y + 16, text, size=12)
        return box

    for place, pair in enumerate(order):
        e, given = flat[pair], inputs[pair // 2]
        made = factors[e] * given
        left = row(8, 88, pair, f"{pair}:  {given:g}", e)
        text = f"{pair}:  {given:g} × {factors[e]:g}"
        middle = row(140, 100, place, text, e)
        right = row(286, 88, pair, f"{pair}:  {made:g}", e)
        picture.line(left.right, middle.left, role=_EXPERTS[e])
        picture.arrow(middle.right, right.left, role=_EXPERTS[e], width=1.2)
    return picture


def draw_even(loads, losses):
    """Return bars of two loads, and what the balance loss says of each.

    loads: two rows, a share for each expert; losses: of the two.
    """
    picture = Picture(
        176,
        "Bars for the loads of four experts. Left, each has a quarter, and "
        f"the loss is {losses[0]:g}; right, the first has all, and the loss "
        f"is {losses[1]:g}.",
    )
    for side, (load, loss) in enumerate(zip(loads, losses, strict=True)):
        x = 20 + 190 * side
        for e, share in enumerate(load):
            place = Box(x + 40 * e, 124 - 96 * share, 30, 96 * share)
            style = f"fill:{colour(_EXPERTS[e])};fill-opacity:.55"
            picture.rect(place, style, radius=1)
            text = f"{share:g}"
            picture.text(x + 40 * e + 15, place.y - 5, text, size=12)
            picture.text(x + 40 * e + 15, 140, str(e), size=12)
        picture.line((x - 6, 124), (x + 156, 124), role="mask")
        picture.text(x + 75, 166, f"loss {loss:g}", bold=True)
    return picture


def draw_bias(scores, biases, count):
    """Return a choice that a bias changes, and shares that it leaves alone.

    scores and biases: of each expert; count: of experts that are chosen.
    """
    wish = np.round(np.add(scores, biases), 2)  # (C,)
    plain, chosen = (
        sorted(int(e) for e in np.argsort(x)[::-1][:count])
        for x in (np.asarray(scores), wish)
    )
    total = sum(scores[e] for e in chosen)
    shares = " and ".join(f"{scores[e]:g} / {total:g}" for e in chosen)
    picture = Picture(
        208,
        f"Scores {list(scores)} choose experts {plain}; with the biases "
        f"{list(biases)} the choice is {chosen}. The shares are {shares}.",
    )
    for e in range(len(scores)):
        picture.text(136 + 66 * e, 18, f"expert {e}", size=12)
    rows = (
        ("score", scores, plain),
        ("+ bias", biases, []),
        ("sum", wish, chosen),
    )
    for r, (name, numbers, lit) in enumerate(rows):
        y = 32 + 44 * r
        picture.text(4, y + 18, name, at="start", bold=r != 1)
        for e, number in enumerate(numbers):
            box = Box(108 + 66 * e, y, 56, 28)
            role = "value" if e in lit else "mask"
            style = f"stroke:{colour(role)};fill:{colour(role)};"
            style += f"fill-opacity:{0.3 if e in lit else 0};"
            if r != 1:
                picture.rect(box, style + f"stroke-width:{1 + (e in lit)}")
            text = f"{number:+g}" if r == 1 and number else f"{number:g}"
            picture.text(box.top[0], y + 19, text.replace("-", "−"))
    picture.text(4, 186, "share", at="start", bold=True)
    for e in chosen:
        x = 136 + 66 * e
        picture.arrow((x, 150), (x, 168), role="value")
        picture.text(x, 186, f"{scores[e]:g} / {total:g}", role="value")
    picture.text(236, 204, "of the scores, not of the sums", size=12)
    return picture


def draw_read(read, num_experts):
    """Return bars of how many experts batches read.

    read: {tokens of the batch: experts, on average}, the smallest first.
    """
    told = ", ".join(f"with {n}, {size:.0f}" for n, size in read.items())
    picture = Picture(
        34 * len(read) + 36,
        f"Bars: of {num_experts} experts, so many are read by tokens; {told}.",
    )
    for i, (tokens, size) in enumerate(read.items()):
        y = 26 + 34 * i
        name = f"{tokens} token{'s' * (tokens > 1)}"
        picture.text(82, y + 14, name, at="end")
        whole, part = (
            Box(92, y, 240, 20),
            Box(92, y, 240 * size / num_experts, 20),
        )
        picture.rect(whole, f"stroke:{colour('mask')};fill:none", radius=1)
        style = f"fill:{colour('value')};fill-opacity:.55"
        picture.rect(part, style, radius=1)
        picture.text(340, y + 14, f"{size:.0f}", at="start")
    picture.text(
        92, 16, f"of {num_experts} experts are read", at="start", size=12
    )
    return picture
