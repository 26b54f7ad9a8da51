"""The drawings of *The decoder*."""

from .draw import WIDTH, Box, Picture, colour
from .encoder_drawn import STREAM, draw_branch, draw_stream


def _plain(tokens):
    """Return tokens without brackets, which are too wide for a box."""
    return [token.strip("<>") for token in tokens]


def draw_shift(reads, predicts):
    """Return inputs and targets, and where a target is read next.

    Parameters
    ----------
    reads, predicts
        Two rows of T tokens, the second one position ahead.
    """
    reads, predicts = _plain(reads), _plain(predicts)
    alt = (
        f"Two rows of tokens. The decoder reads {', '.join(reads)}; below, it "
        f"should predict {', '.join(predicts)}. From each prediction an "
        "arrow leads up to the next position, where the same token is read."
    )
    picture = Picture(156, alt)
    picture.text(6, 16, "reads", at="start", size=12)
    picture.text(6, 148, "should predict", at="start", size=12)
    step, above, below = (WIDTH - 4) / len(reads), [], []
    for t, (token, target) in enumerate(zip(reads, predicts, strict=True)):
        place = 3 + t * step
        above.append(picture.token(place, 24, token, width=step - 2))
        one = picture.token(place, 106, target, "output", width=step - 2)
        below.append(one)
    for one, other in zip(above, below, strict=True):
        (x, y), (_, z) = one.bottom, other.top
        picture.arrow((x - 10, y + 1), (x - 10, z - 1))
    for one, other in zip(below, above[1:], strict=False):
        (x, y), (a, b) = one.top, other.bottom
        ends = (x + 4, y - 1), (a - 16, b + 1)
        picture.arrow(*ends, role="output", dashed=True)
    return picture


def draw_two(source, written, asks):
    """Return what one position reads, in the memory and in the past.

    Parameters
    ----------
    source, written
        The tokens of the source, and those that the decoder reads.
    asks
        The place of the position that asks.
    """
    source, written = _plain(source), _plain(written)
    past = written[: asks + 1]
    alt = (
        f"The source {', '.join(source)} above, and below it what the decoder "
        f"reads: {', '.join(written)}. From {written[asks]}, arrows lead up "
        f"to all of the source, and back to {', '.join(past)}, but to no "
        "later token."
    )
    picture = Picture(208, alt)
    picture.text(6, 16, "cross-attention: the memory", at="start", size=12)
    picture.text(
        6, 200, "self-attention: the past", at="start", size=12, role="query"
    )
    memory = picture.tokens(24, source, "key", left=48, right=WIDTH - 48)
    step = (WIDTH - 8) / len(written)
    row = []
    for t, token in enumerate(written):
        role = "mask" if t > asks else "query" if t == asks else "token"
        x = 4 + t * step
        row.append(picture.token(x + 2, 112, token, role, width=step - 4))
    x, y = row[asks].top
    for s, one in enumerate(memory):
        shift = 5 * (s - (len(memory) - 1) / 2)
        a, b = one.bottom
        picture.arrow((x + shift, y - 1), (a, b + 1), role="key")
    x, y = row[asks].bottom
    for t, one in enumerate(row[: asks + 1]):
        a, b = one.bottom
        low = b + 16 + 10 * (asks - t)
        start = x + 10 if t == asks else x - 2
        end = a - 10 if t == asks else a
        picture.arrow(
            (start, y + 1), (start, low), (end, low), (end, b + 1),
            role="query",
        )  # fmt: skip
    return picture


def draw_decoder_layer():
    """Return a decoder layer: two attentions, the memory, feed-forward."""
    alt = (
        "A decoder layer, from bottom to top beside a thick arrow, the "
        "residual stream: self-attention under the causal mask; "
        "cross-attention, whose keys and values come from the memory at the "
        "right, under the memory's mask; feed-forward. Each returns to a "
        "plus on the stream, and a norm stands after each plus."
    )
    picture = Picture(376, alt)
    stream, x, gaps = 52, 160, []
    for low, name, role in [
        (342, "self-attention", "query"), (238, "cross-attention", "key"),
        (134, "feed-forward", "value"),
    ]:  # fmt: skip
        parts = [(name, role, 28)]
        draw_branch(picture, stream, low, low - 64, x, parts, wide=120)
        gaps.append((low - 72, low - 56))
        gaps.append((low - 98, low - 76))
        picture.layer(stream - 28, low - 98, 56, "norm", "output", 22)
    draw_stream(picture, stream, 356, 12, gaps)
    picture.text(stream, 372, "x", role="query", bold=True)
    memory = picture.layer(302, 196, 72, "memory", "key")
    picture.arrow(memory.left, (x + 61, 210), role="key", text="k, v")
    picture.text(stream + 12, 232, "q", at="start", size=12)
    picture.text(stream + 8, 336, "q, k, v", at="start", size=12)
    picture.text(x + 66, 319, "causal_mask", at="start", role="mask")
    picture.text(374, 242, "memory_mask", at="end", role="mask")
    return picture


def draw_whole(num_layers):
    """Return an encoder-decoder, from ids to logits.

    Parameters
    ----------
    num_layers
        On each side.
    """
    alt = (
        "The ids of source and target pass one table of embeddings. The "
        f"source goes up through {num_layers} encoder layers and a norm; "
        "what comes out, the memory, goes to each of the "
        f"{num_layers} decoder layers. Above them a norm and a linear layer "
        "give the logits."
    )
    base = 120 + 40 * num_layers
    picture = Picture(base + 70, alt)
    sides = [(12, "encoder", "source ids"), (228, "decoder", "input ids")]
    picture.layer(12, base - 4, 356, "embedding, and positions", height=28)
    for left, name, ids in sides:
        x, role = left + 70, "key" if left == 12 else "query"
        picture.text(x, base + 62, ids)
        picture.arrow((x, base + 46), (x, base + 26))
        y = base - 4
        for i in range(num_layers):
            top = base - 44 - 40 * i
            text = f"{name} layer {i}"
            picture.arrow((x, y), (x, top + 27))
            picture.layer(left, top, 140, text, role, 26)
            y = top
        picture.arrow((x, y), (x, y - 14))
        picture.layer(left + 40, y - 38, 60, "norm", "output", 23)
    norm = y - 38
    turn, middle = 190, norm + 11
    picture.line((112, middle), (turn, middle), role="key", width=STREAM)
    low = base - 31
    picture.line((turn, middle), (turn, low), role="key", width=STREAM)
    for i in range(num_layers):
        at = low - 40 * i
        picture.arrow((turn, at), (227, at), role="key")
    picture.text(158, middle - 8, "memory", role="key")
    x = 298
    picture.arrow((x, norm), (x, norm - 14))
    picture.layer(x - 40, norm - 41, 80, "linear", "output", 26)
    picture.arrow((x, norm - 41), (x, norm - 55), role="output")
    picture.text(x, norm - 62, "logits", role="output")
    return picture


def draw_moves(changes, reads, changed):
    """Return how much the logits move at each position.

    Parameters
    ----------
    changes
        {what is another: T numbers}.
    reads
        The T tokens that the decoder reads.
    changed
        The place of the input that is another.
    """
    told = "; ".join(
        f"{name}: {', '.join(f'{n:g}' for n in row)}"
        for name, row in changes.items()
    )
    alt = f"How far the logits move at each position, in blue. {told}."
    picture = Picture(56 + 62 * len(changes), alt)
    reads, step = _plain(reads), 53
    for t, token in enumerate(reads):
        role = "wrong" if t == changed else "token"
        picture.token(6 + step * t, 8, token, role, width=step - 4)
        picture.text(6 + step * t + 24.5, 50, t, size=12)
    for r, (name, row) in enumerate(changes.items()):
        y = 82 + 62 * r
        picture.text(6, y - 6, name, at="start", size=12)
        texts = [[f"{n:.2f}" for n in row]]
        picture.matrix(
            6, y, [row], "query", texts=texts, cell=step - 1, height=26
        )
    return picture


def draw_steps(tokens):
    """Return greedy decoding, a row for each step.

    Parameters
    ----------
    tokens
        From the start to the end, as the decoder should write them.
    """
    tokens = _plain(tokens)
    alt = (
        "A row for each step. In each the decoder reads one token more, and "
        f"writes the next in purple: from {tokens[0]} to {tokens[-1]}."
    )
    count = len(tokens)
    step, tall = (WIDTH - 8) / count, 42
    picture = Picture(tall * (count - 1) + 6, alt)
    for t in range(1, count):
        y = 6 + tall * (t - 1)
        for i, token in enumerate(tokens[: t + 1]):
            role = "output" if i == t else "token"
            x = 4 + i * step
            wide = step - 14
            box = picture.token(x, y, token, role, width=wide)
            if i == t:
                (a, b) = box.left
                picture.arrow((a - 13, b), (a - 1, b), role="output")
                if t < count - 1:
                    (a, b) = box.bottom
                    ends = (a, b + 1), (a, b + tall - 25)
                    picture.arrow(*ends, role="output", dashed=True)
    return picture


def draw_passes(tokens):
    """Return the positions that single steps compute, and one pass.

    Parameters
    ----------
    tokens
        That are read.
    """
    tokens, count = _plain(tokens), len(tokens)
    alt = (
        f"Left, {count} steps, each a row that is one token longer than the "
        "one before; the last cell of each is purple. Right, one pass over "
        "all tokens, a row of purple cells. A line leads from each step to "
        "its cell in the pass."
    )
    cell, tall = 28, 30
    picture = Picture(36 + tall * count, alt)
    picture.text(8 + cell * count / 2, 16, "one by one", bold=True)
    picture.text(308, 16, "one pass", bold=True)
    for t in range(count):
        y = 28 + tall * t
        for s in range(t + 1):
            box = Box(8 + s * cell, y, cell - 2, 22)
            role = "output" if s == t else "token"
            style = f"stroke:{colour(role)};fill:{colour(role)};"
            picture.rect(box, style + f"fill-opacity:{0.05 + 0.3 * (s == t)}")
        picture.token(264, y - 1, tokens[t], "output", width=88)
        picture.line((box.right[0] + 4, y + 11), (258, y + 11), role="output",
                     dashed=True)  # fmt: skip
        picture.text(238, y + 6, "=?", role="output", bold=True)
    return picture
