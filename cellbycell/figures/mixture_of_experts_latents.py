"""The drawings of *Experts in earnest*: a collapse, latents, chosen keys."""

import numpy as np

from .draw import Box, Picture, colour


def draw_circle():
    """Return the two circles in which a busy and an idle expert turn."""
    picture = Picture(
        200,
        "Two circles of arrows. A busy expert gets rows, then gradients, "
        "becomes better and is asked more. An idle one gets no rows, no "
        "gradients, becomes no better and is not asked.",
    )
    for side, (title, role, steps) in enumerate((
        ("a busy expert", "value",
         ("many rows", "gradients", "better", "asked more")),
        ("an idle expert", "wrong",
         ("no rows", "no gradients", "no better", "not asked")),
    )):  # fmt: skip
        x = 4 + 192 * side
        picture.text(x + 90, 18, title, bold=True)
        places = (x + 40, 34), (x + 90, 88), (x + 40, 142), (x - 2, 88)
        wide = 92, 92, 92, 82
        top, right, bottom, left = (
            picture.layer(x, y, width, text, role, 30)
            for (x, y), width, text in zip(places, wide, steps, strict=True)
        )
        picture.arrow((top.x + 72, 64), (right.x + 48, 86), role=role)
        picture.arrow((right.x + 48, 118), (bottom.x + 72, 140), role=role)
        picture.arrow((bottom.x + 20, 142), (left.x + 40, 120), role=role)
        picture.arrow((left.x + 40, 88), (top.x + 20, 66), role=role)
    return picture


def draw_latent(heads):
    """Return one latent a token, and the keys and values made of it.

    heads: how many are drawn.
    """
    picture = Picture(
        216,
        "A token's row is made short, the latent, and only the latent is "
        f"stored. Matrices U and W make a key and a value of it for each of "
        f"{heads} heads.",
    )
    blank = [[""] * 8]
    row = picture.matrix(
        4, 92, np.ones((1, 8)), "token", texts=blank, cell=10, height=20
    )
    picture.text(row.top[0], 82, "x")
    cell = picture.matrix(
        142, 92, np.ones((1, 3)), "output", texts=[[""] * 3], cell=14,
        height=20,
    )  # fmt: skip
    picture.text(cell.top[0], 82, "latent c", role="output", bold=True)
    picture.arrow((row.right[0] + 4, 102), (cell.x - 4, 102))
    store = Box(cell.x - 22, 58, cell.width + 44, 84)
    picture.frame(store)
    picture.text(store.bottom[0], 134, "the cache", role="mask", size=12)
    for h in range(heads):
        y = 34 + 66 * h
        picture.text(372, y + 8, f"head {h + 1}", size=12, at="end")
        for role, up, shift in (
            ("key", "k", -13), ("value", "v", 13)
        ):  # fmt: skip
            height = y + 4 + shift
            picture.arrow(
                (store.right[0] + 4, 102), (252, height), role=role, width=1.2
            )
            picture.text(262, height + 4, up, role=role, bold=True)
            picture.matrix(
                272, height - 8, np.ones((1, 4)), role, texts=[[""] * 4],
                cell=13, height=16,
            )  # fmt: skip
    said = "k = U c and v = W c, with a U and a W for each head"
    picture.text(190, 208, said, size=12)
    return picture


def draw_absorbed(query, up, latent):
    """Return one score on two ways: by the key, and by the query.

    query (K,), up (K, C), latent (C,): small whole numbers.
    """
    query, up, latent = map(np.asarray, (query, up, latent))
    key, asks = up @ latent, up.T @ query
    score = query @ key
    picture = Picture(
        226,
        f"Above, the latent {latent.tolist()} becomes the key {key.tolist()},"
        f" which meets the query {query.tolist()}. Below, the query becomes "
        f"{asks.tolist()} and meets the latent. Both give {score}.",
    )
    picture.text(4, 18, "plain: a key for each token", at="start", bold=True)
    picture.text(4, 134, "absorbed: the query, once", at="start", bold=True)
    for y, (start, role, text), (made, other), (meets, last) in (
        (50, (latent, "output", "c"), (key, "key"), (query, "query")),
        (166, (query, "query", "q"), (asks, "query"), (latent, "output")),
    ):
        cell = 28
        first = picture.matrix(20, y, [start], role, cell=cell)
        picture.text(first.x - 5, y + 15, text, role=role, at="end",
                     bold=True)  # fmt: skip
        second = picture.matrix(160, y, [made], other, cell=cell)
        name = "U c" if y < 100 else "Uᵀ q"
        picture.text(second.top[0], y - 7, name, role=other, bold=True)
        picture.arrow(
            (first.right[0] + 4, y + 11), (second.x - 4, y + 11), role=other,
            text="U" if y < 100 else "Uᵀ",
        )  # fmt: skip
        third = picture.matrix(160, y + 34, [meets], last, cell=cell)
        name = "q" if y < 100 else "c"
        picture.text(third.x - 5, y + 49, name, role=last, at="end",
                     bold=True)  # fmt: skip
        terms = " + ".join(
            f"{a}·{b}" for a, b in zip(made, meets, strict=True)
        )
        picture.text(256, y + 32, f"{terms}", at="start", size=12)
        picture.text(256, y + 50, f"= {score}", at="start", bold=True)
    return picture


def draw_stored(stored):
    """Return bars of the bytes that a token leaves in a cache.

    stored: {what is stored: bytes}, the least first.
    """
    least, most = min(stored.values()), max(stored.values())
    told = ", ".join(f"{name}: {n / 1000:.0f}" for name, n in stored.items())
    picture = Picture(
        46 * len(stored) + 8, f"Bars of thousands of bytes a token. {told}."
    )
    for i, (name, size) in enumerate(stored.items()):
        y = 16 + 46 * i
        role = "output" if size == least else "key"
        picture.text(4, y, name, at="start")
        bar = Box(4, y + 6, 270 * size / most, 16)
        picture.rect(bar, f"fill:{colour(role)};fill-opacity:.6", radius=1)
        text = f"{size / 1000:.0f} kB"
        picture.text(bar.right[0] + 6, y + 19, text, at="start", size=12)
    return picture


def draw_imitation(letters):
    """Return a network that eight experts imitate, row by row.

    letters: a name, of which each letter is a row.
    """
    picture = Picture(
        212,
        f"The rows of the letters of {' '.join(letters)} go into the Llama's "
        "network, which makes y of them, and into a router, which sends each "
        "to one of eight experts; what comes out should be y, too.",
    )
    chips = picture.tokens(178, list(letters), left=60, right=320)
    picture.text(190, 168, "a row x for each letter", size=12)
    network = picture.layer(20, 84, 120, "the network")
    router = picture.layer(216, 116, 128, "router", "query", 24)
    y = chips[0].y
    picture.arrow((112, y - 4), (80, 116))
    picture.arrow((268, y - 4), (280, 142))
    for e in range(8):
        x = 198 + 21 * e
        picture.layer(x, 66, 17, str(e), "value", 22)
        ends = (router.x + 16 * e + 8, 114), (x + 8.5, 90)
        if e == 4:
            picture.arrow(*ends, role="query")
        else:
            picture.line(*ends, role="mask", width=1)
    picture.arrow(network.top, (80, 34))
    picture.arrow((290.5, 64), (290.5, 34), role="value")
    picture.text(80, 24, "y", bold=True)
    picture.text(290, 24, "as near to y as it can", role="value")
    return picture


def draw_chosen(scores, count):
    """Return the scores of an indexer, and the keys that are chosen by them.

    scores (T, T): whole numbers; count: of keys for each query.
    """
    scores = np.array(scores, float)
    size = len(scores)
    future = np.triu(np.ones((size, size), bool), 1)
    scores[future] = np.nan
    order = np.argsort(np.where(future, np.inf, -scores), 1)[:, :count]
    kept = np.zeros((size, size))
    np.put_along_axis(kept, order, 1, 1)
    kept[future] = np.nan
    told = "; ".join(
        f"query {t}: {', '.join(str(s) for s in np.flatnonzero(row == 1))}"
        for t, row in enumerate(kept)
    )
    picture = Picture(
        210,
        "Two maps of queries and keys, the future hatched. Left the indexer's "
        f"scores, right the {count} best keys of each query. {told}.",
    )
    ticks = [str(t) for t in range(size)]
    for x, title, numbers, texts, role in (
        (30, "the indexer's scores", scores / np.nanmax(scores),
         [[f"{n:g}" if n == n else "" for n in row] for row in scores],
         "query"),
        (226, "the keys that are read", kept,
         [["" if n != 1 else "k" for n in row] for row in kept], "key"),
    ):  # fmt: skip
        picture.text(x + 70, 18, title, bold=True)
        picture.matrix(
            x, 54, numbers, role, texts=texts, rows=ticks, columns=ticks,
            cell=28, height=26,
        )  # fmt: skip
    picture.text(190, 204, "rows are queries, columns keys", size=12)
    return picture
