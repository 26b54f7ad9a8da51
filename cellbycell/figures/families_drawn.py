"""The drawings of *Twenty models, one decoder*."""

import math

import numpy as np

from .draw import Box, Picture, colour
from .families import decoder_words

_LINES = "queries, keys", "biases", "rotation", "sees", "scores"
_NORMS = {
    "before attention": 15, "after attention": 40,
    "before feed-forward": 50, "after feed-forward": 72,
}  # fmt: skip


def draw_grid(configs):
    """Return twenty small decoders; what is not as in the first is filled.

    configs: {family: the config of its decoder}.
    """
    first, *_ = words = {
        name: decoder_words(config) for name, config in configs.items()
    }
    lines = math.ceil(len(configs) / 4)
    picture = Picture(
        58 * lines + 34,
        f"{len(configs)} small decoders from left to right: a table, norms, "
        "attention with five lines, a network, logits. Parts that differ "
        f"from those of {first} are filled; Gemma has the most.",
    )
    for i, (name, config) in enumerate(configs.items()):
        x, y = 95 * (i % 4), 58 * (i // 4) + 6
        differing = [
            part for part in words[name]
            if words[name][part] != words[first][part]
        ]  # fmt: skip
        _small(picture, x, y, config, differing)
        short = name.removesuffix("_dense").removesuffix("_text")
        picture.text(x + 47, y + 44, short, size=12)
    y = 58 * lines + 22
    for x, differs, text in (
        (40, False, f"as in {first}"),
        (200, True, "different"),
    ):
        _part(picture, Box(x, y - 11, 14, 14), differs)
        picture.text(x + 20, y, text, at="start", size=12)
    return picture


def _part(picture, box, differs):
    """Draw a part, filled if it differs."""
    ink = colour("key" if differs else "mask")
    style = f"stroke:{ink};stroke-width:1.2;fill:"
    picture.rect(box, style + (ink if differs else "none"), radius=1)


def _small(picture, x, y, config, differing):
    """Draw a decoder from left to right, 92 wide and 28 high."""
    picture.line((x + 13, y + 14), (x + 82, y + 14), role="mask", width=1)
    _part(picture, Box(x + 7, y + 4, 6, 20), "embedding" in differing)
    for (place, at), given in zip(_NORMS.items(), config.norms, strict=True):
        if given:
            _part(picture, Box(x + at, y + 4, 4, 20), place in differing)
    for i, line in enumerate(_LINES):
        box = Box(x + 21, y + 5.5 * i + 0.5, 17, 5)
        _part(picture, box, line in differing)
    wide = Box(x + 56, y + 4, 14, 20)
    if config.side_by_side:
        wide = Box(x + 40, y, 15, 28)
    _part(picture, wide, "feed-forward" in differing)
    if "residual" in differing:
        for at in (45, 77):
            _part(picture, Box(x + at, y + 11, 3, 6), True)
    _part(picture, Box(x + 81, y + 4, 6, 20), "logits" in differing)


def draw_squeeze(row, epsilon, cap):
    """Return a row of two numbers under two norms and a cap, as bars.

    row (2,); epsilon: of both norms; cap: of the soft cap.
    """
    row = np.asarray(row, float)
    centred = row - row.mean()
    found = {
        "the row": row,
        "RMSNorm": row / np.sqrt((row**2).mean() + epsilon),
        "LayerNorm": centred / np.sqrt((centred**2).mean() + epsilon),
        f"capped at {cap:g}": cap * np.tanh(row / cap),
    }
    told = "; ".join(
        f"{name} {a:.2f} and {b:.2f}" for name, (a, b) in found.items()
    )
    picture = Picture(198, f"Bars of two numbers. {told}.")
    for i, (name, numbers) in enumerate(found.items()):
        x = 8 + 94 * i
        unit = (4.5, 40, 40, 4.5)[i]
        picture.line((x, 116), (x + 80, 116), role="mask")
        for j, number in enumerate(numbers):
            long = unit * abs(number)
            bar = Box(x + 8 + 36 * j, 116 - long * (number > 0), 28, long)
            role = "value" if number > 0 else "wrong"
            style = f"fill:{colour(role)};fill-opacity:.55"
            picture.rect(bar, style, radius=1)
            at = bar.y - 5 if number > 0 else bar.bottom[1] + 13
            text = f"{number:.3g}" if i in (0, 3) else f"{number:.2f}"
            picture.text(bar.top[0], at, text.replace("-", "−"), size=12)
        picture.text(x + 40, 190, name, size=12, bold=True)
    return picture


def draw_moments():
    """Return the way of a query, with three moments for a norm."""
    picture = Picture(
        150,
        "A query's way from left to right: project, split into heads, turn. "
        "A norm can come after the projection, over all heads; after the "
        "split, for each head; or after the turn.",
    )
    x = 4
    for step, name, said in (
        ("project", "width", ("one row", "of all heads")),
        ("split", "head", ("each head", "by itself")),
        ("turn", "turned", ("each head,", "turned")),
    ):  # fmt: skip
        box = picture.layer(x, 16, 60, step)
        end = x + 122
        picture.arrow(box.right, (end - 1, 30))
        middle = x + 90
        picture.arrow((middle, 62), (middle, 36), role="key")
        picture.layer(middle - 30, 64, 62, "norm", "key", 24)
        picture.text(middle, 106, f'"{name}"', role="key", bold=True)
        for j, line in enumerate(said):
            picture.text(middle, 124 + 16 * j, line, size=12)
        x += 122
    return picture


def draw_windows(windows, size):
    """Return which keys each query may attend to, layer by layer.

    windows: of each layer, how many keys, or None for all; size: tokens.
    """
    told = " ".join(
        f"Layer {i + 1}: {f'the last {w} tokens' if w else 'all so far'}."
        for i, w in enumerate(windows)
    )
    picture = Picture(206, f"Masks, a row for each query. {told}")
    for i, window in enumerate(windows):
        x = 24 + 190 * i
        back = np.arange(size)[:, None] - np.arange(size)
        seen = (back >= 0) & (back < (window or size))
        numbers = np.where(seen, 1.0, np.nan)
        blank = [[""] * size] * size
        box = picture.matrix(
            x, 32, numbers, "query", texts=blank, cell=22, height=22
        )
        sees = f"the last {window}" if window else "all so far"
        picture.text(box.top[0], 18, f"layer {i + 1}: {sees}", bold=True)
    picture.text(190, 200, "rows: queries, columns: keys", size=12)
    return picture


def draw_switchboard():
    """Return a decoder with the names of its switches, part by part."""
    rows = [
        ("embedding", "token", "embedding_factor"),
        ("norm", "mask", "norms, centred, scale_offset, epsilon"),
        ("attention", "query", "biases, heads_norm, pairs, bases,",
         "windows, score_scale, score_cap"),
        ("norm", "mask", "norms"),
        ("+", "", "residual_factor, side_by_side"),
        ("norm", "mask", "norms"),
        ("network", "value", "activation, num_experts,",
         "experts_asked, to_one"),
        ("norm", "mask", "norms"),
        ("+", "", "residual_factor"),
        ("logits", "output", "logit_factor, logit_cap, tied"),
    ]  # fmt: skip
    picture = Picture(
        398,
        "A decoder from the embedding to the logits. Beside each part stand "
        "the names of the switches that change it; attention has seven.",
    )
    y, middle = 8, 58
    for name, role, *lines in rows:
        height = {"mask": 24, "": 20}.get(role, 40)
        if y > 8:
            picture.line((middle, y - 9), (middle, y), role="mask")
        if name == "+":
            for end in (y, y + 20):
                picture.line((middle, end), (middle, y + 10), role="mask")
            picture.plus(middle, y + 10)
        else:
            picture.layer(8, y, 100, name, role, height)
        for i, line in enumerate(lines):
            at = y + height / 2 + 4.5 + 16 * (i - (len(lines) - 1) / 2)
            picture.text(122, at, line, at="start", size=12)
        y += height + 9
    return picture


def draw_shares(scores, count):
    """Return a router's shares of experts, of which the best are kept.

    scores (C,); count: how many experts a token asks.
    """
    parts = np.exp(scores) / np.exp(scores).sum()  # (C,)
    kept = np.argsort(scores)[::-1][:count]
    total = parts[kept].sum()
    picture = Picture(
        196,
        f"Four experts with the scores {list(scores)}. The two best have "
        f"the shares {parts[kept[0]]:.2f} and {parts[kept[1]]:.2f}, divided "
        f"by their sum {parts[kept[0]] / total:.2f} and "
        f"{parts[kept[1]] / total:.2f}; the others get nothing.",
    )
    for y, text in ((24, "score"), (152, "softmax"), (184, "sum to one")):
        picture.text(4, y, text, at="start", bold=True)
    picture.layer(96, 40, 276, "router", "query", 24)
    for e, score in enumerate(scores):
        x, good = 96 + 72 * e, e in kept
        role = "value" if good else "mask"
        picture.text(x + 30, 24, f"{score:g}")
        ends = (x + 30, 66), (x + 30, 88)
        if good:
            picture.arrow(*ends, role=role, width=2)
        else:
            picture.line(*ends, role=role, dashed=True)
        picture.layer(x, 90, 60, f"expert {e + 1}", role, 36)
        picture.text(x + 30, 152, f"{parts[e]:.2f}", role=role)
        text = f"{parts[e] / total:.2f}" if good else "0"
        picture.text(x + 30, 184, text, role=role, bold=good)
    return picture


def draw_fields(fates):
    """Return where the fields of a config go.

    fates: (field and value, what becomes of it, a role for its colour).
    """
    told = ". ".join(f"{field} → {fate}" for field, fate, _ in fates)
    picture = Picture(
        52 + 36 * len(fates), f"Fields of a config.json: {told}."
    )
    picture.text(96, 18, "config.json", bold=True)
    picture.text(296, 18, "decoder_config", bold=True)
    picture.frame(Box(2, 28, 188, 36 * len(fates) + 8), role="token")
    for i, (field, fate, role) in enumerate(fates):
        y = 36 + 36 * i
        picture.text(10, y + 19, field, at="start", size=12)
        picture.arrow((194, y + 15), (224, y + 15), role=role)
        picture.layer(228, y, 148, fate, role, 30)
    return picture


def draw_table(differ, families):
    """Return a table: a row for each part, filled where families differ.

    differ: {part: the families in which it is not as in the first}.
    """
    picture = Picture(
        92 + 20 * len(differ),
        "A table of parts and families, filled where a part is not as in "
        "llama. "
        + "; ".join(f"{part}: {len(row)}" for part, row in differ.items()),
    )
    for c, family in enumerate(families):
        x = 112 + 13.2 * c
        short = family.removesuffix("_dense").removesuffix("_text")
        picture.add(
            f'<text transform="translate({x + 10.5:.1f} 78) rotate(-90)" '
            f'style="fill:{colour(None)};font-size:12px">{short}</text>'
        )
        for r, row in enumerate(differ.values()):
            box = Box(x, 86 + 20 * r, 13.2, 20)
            style = f"stroke:{colour('mask')};stroke-width:.8;fill:"
            style += colour("key") if family in row else "none"
            picture.rect(box, style + ";fill-opacity:.75", radius=0)
    for r, part in enumerate(differ):
        picture.text(104, 100.5 + 20 * r, part, at="end")
    return picture


def draw_reference():
    """Draw how a decoder is compared: one folder, two programs, one text.

    Returns
    -------
    Picture
        A folder, Hugging Face's model and the book's decoder, and logits.
    """
    picture = Picture(
        176, "one folder is read by the library and by our decoder; both get "
        "the same ids, and the logits are compared",
    )  # fmt: skip
    folder = picture.layer(4, 70, 84, "folder", "token", 36)
    for y, name, role in (
        (14, "Hugging Face", "key"), (126, "run_decoder", "query"),
    ):  # fmt: skip
        box = picture.layer(134, y, 116, name, role, 36)
        picture.arrow(folder.right, (110, 88), (110, y + 18), box.left)
        logits = picture.layer(296, y, 76, "logits", "output", 36)
        picture.arrow(box.right, logits.left)
        edge = (334, 50) if y < 88 else (334, 126)
        picture.line(edge, (334, 74 if y < 88 else 102), role="output")
    picture.text(334, 94, "equal?", role="output", bold=True)
    picture.text(192, 86, "token ids", bold=True)
    picture.arrow((192, 74), (192, 50), role="token")
    picture.arrow((192, 92), (192, 126), role="token")
    return picture
