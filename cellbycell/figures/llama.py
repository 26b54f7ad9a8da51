"""The drawings of *A Llama*: its block, its attention, and its weights."""

from .draw import Box, Picture, colour

NEW, OLD = "output", "token"  # the roles of what has changed, and what has not


def _flow(picture, x, steps, role=None):
    """Draw arrows up the middle, from each height to the next."""
    for below, above in steps:
        picture.arrow((x, below), (x, above), role=role, width=1.2)


def _around(picture, x, side, below, plus):
    """Draw a residual connection from the main line around to a sum."""
    points = (x, below), (side, below), (side, plus), (x + 8, plus)
    picture.arrow(*points, width=1.2)


def _numbered(picture, box, number):
    """Write the number of a change beside its box."""
    x, y = box.x + 12, box.left[1] + 4.5
    picture.text(x, y, number, role=NEW, bold=True)


def draw_blocks():
    """Return the decoder of 2017 beside a Llama, the changes numbered."""
    picture = Picture(
        404,
        "Two decoders side by side, from the embedding at the bottom to "
        "linear and softmax at the top. 2017: positions are added, then N "
        "times attention, sum, LayerNorm, ReLU layer, sum, LayerNorm. Llama: "
        "N times RMSNorm, attention with turned queries and keys and shared "
        "key heads, sum, RMSNorm, SwiGLU, sum; then a last RMSNorm.",
    )
    wide = 140
    for x, name in ((22, "2017"), (214, "Llama")):
        picture.text(x + wide / 2, 18, name, bold=True)
        picture.layer(x, 28, wide, "linear, softmax", OLD, 24)
        picture.layer(x, 356, wide, "embedding", OLD, 24)
    x = 22
    middle = x + wide / 2
    picture.frame(Box(x - 14, 66, wide + 34, 218))
    for y, name in (
        (82, "LayerNorm"), (142, "feed-forward, ReLU"), (184, "LayerNorm"),
        (244, "attention"),
    ):  # fmt: skip
        picture.layer(x, y, wide, name, OLD, 24)
    for plus, below in ((124, 175), (226, 277)):
        picture.plus(middle, plus)
        _around(picture, middle, x + wide + 10, below, plus)
        picture.text(x + 10, plus + 5, "× N" if plus == 124 else "", size=12)
    picture.plus(middle, 320)
    picture.text(x - 14, 325, "positions", at="start")
    picture.arrow((x + 50, 320), (middle - 8, 320), width=1.2)
    _flow(
        picture, middle,
        ((356, 328), (312, 268), (244, 234), (218, 208), (184, 166),
         (142, 132), (116, 106), (82, 52)),
    )  # fmt: skip
    x = 214
    middle = x + wide / 2
    picture.frame(Box(x - 14, 106, wide + 34, 238))
    for y, number, name in (
        (72, 1, "RMSNorm"), (142, 2, "SwiGLU"), (178, 1, "RMSNorm"),
        (306, 1, "RMSNorm"),
    ):  # fmt: skip
        box = picture.layer(x, y, wide, name, NEW, 24)
        _numbered(picture, box, number)
    picture.layer(x, 240, wide, "", OLD, 56)
    picture.text(middle, 256, "attention")
    for y, number, text in (
        (273, 3, "q and k turned"), (290, 4, "key heads shared"),
    ):  # fmt: skip
        picture.text(x + 9, y, number, role=NEW, bold=True)
        picture.text(x + 18, y, text, role=NEW, at="start")
    for plus, below in ((124, 213), (226, 337)):
        picture.plus(middle, plus)
        _around(picture, middle, x + wide + 10, below, plus)
        picture.text(x + 10, plus + 5, "× N" if plus == 124 else "", size=12)
    _flow(
        picture, middle,
        ((356, 330), (306, 296), (240, 234), (218, 202), (178, 166),
         (142, 132), (116, 96), (72, 52)),
    )  # fmt: skip
    picture.text(x, 397, "5", role=NEW, bold=True, at="start")
    picture.text(x + 14, 397, "no biases anywhere", at="start")
    return picture


def draw_heads(config):
    """Return the way through attention whose key heads are shared.

    config: of at most nine heads.
    """
    heads, keys, wide = config.num_heads, config.key_heads, config.d_head
    share = heads // keys
    picture = Picture(
        344,
        f"x, of width {config.d_model}, becomes {heads} heads of queries and "
        f"{keys} heads of keys and of values. Queries and keys are turned, "
        "keys and values go into the cache. Then each key head serves "
        f"{share} heads, and the last matrix mixes their outputs.",
    )
    top = picture.token(154, 6, f"x: {config.d_model}", width=72)
    columns = [
        (4, 180, "query", heads), (196, 86, "key", keys),
        (290, 86, "value", keys),
    ]  # fmt: skip
    x, y = top.bottom
    picture.line((x, y), (x, 40))
    picture.line((94, 40), (333, 40))
    for left, width, role, count in columns:
        text = f"{config.d_model} → {count * wide}"
        box = picture.layer(left, 52, width, text, role)
        middle = box.bottom[0]
        picture.arrow((middle, 40), box.top, width=1.2)
        step = width / count
        for i in range(count):
            chip = left + i * step + 1
            name = f"{role[0]}{i + 1}" if step > 24 else i + 1
            picture.token(chip, 94, name, role, width=step - 2)
        picture.arrow((middle, 80), (middle, 92), role=role, width=1.2)
        if role != "value":
            picture.arrow((middle, 118), (middle, 130), role=role, width=1.2)
            picture.layer(left, 132, width, "turn", role, 24)
            picture.arrow((middle, 156), (middle, 172), role=role, width=1.2)
        else:
            picture.arrow((middle, 118), (middle, 172), role=role, width=1.2)
    picture.layer(196, 174, 180, "append to the cache", "token", 24)
    picture.arrow((94, 172), (94, 216), role="query", width=1.2)
    picture.arrow((286, 198), (286, 216), width=1.2)
    room = 372 / keys
    for i in range(keys):
        left = 4 + i * room
        picture.frame(Box(left, 218, room - 6, 60))
        middle = left + room / 2 - 3
        for j in range(share):
            name = f"q{share * i + j + 1}"
            at = middle + 34 * (j - share / 2) + 1
            picture.token(at, 223, name, "query", width=32)
        picture.token(middle - 33, 251, f"k{i + 1}", "key", width=32)
        picture.token(middle + 1, 251, f"v{i + 1}", "value", width=32)
        picture.arrow((middle, 278), (middle, 292), width=1.2)
    text = f"{heads * wide} → {config.d_model}"
    last = picture.layer(4, 294, 372, text, "output", 26)
    picture.arrow(last.bottom, (190, 340), role="output", width=1.2)
    return picture


def draw_names(shapes):
    """Return the parts of a Llama with their names in a checkpoint.

    shapes: {name: shape}.
    """
    rows = [
        ("embed_tokens", "embedding"), ("input_layernorm", "norm"),
        ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"),
        ("o_proj", "output"), ("post_attention_layernorm", "norm"),
        ("gate_proj", "gate"), ("up_proj", "up"), ("down_proj", "down"),
        ("norm", "norm"), ("lm_head", "linear"),
    ]  # fmt: skip
    found = {}
    for name, shape in shapes.items():
        part = name.split(".")[-2]
        if "layers" not in name or ".0." in name:
            found[part] = str(tuple(shape))
    rows = [row for row in rows if row[0] in found]  # a tied one has no head
    told = ", ".join(f"{name} {found[name]}" for name, _ in rows)
    count = sum(name.endswith("q_proj.weight") for name in shapes)
    picture = Picture(
        32 + 30 * len(rows),
        "The parts of a Llama in the order of the data, each with its name "
        f"in a checkpoint and its shape: {told}.",
    )
    picture.frame(Box(36, 40, 338, 278))
    picture.text(18, 184, f"× {count}", size=12)
    last = 0
    for i, (name, part) in enumerate(rows):
        y = 30 * i + 6 + 12 * (i > 0) + 12 * (i > 9)
        roles = {"query", "key", "value", "output"}
        role = part if part in roles else "token"
        if part in ("gate", "up"):
            role = "wrong"
        box = picture.layer(44, y, 80, part, role, 22)
        look = "wrong" if "post" in name or role == "wrong" else None
        picture.text(134, y + 16, name, role=look, at="start")
        picture.text(368, y + 16, found[name], at="end")
        if i:
            x = box.top[0]
            picture.line((x, last), (x, y), width=1)
        last = box.bottom[1]
    return picture


def draw_file(name, entry):
    """Return a file of safetensors, with one tensor's place in it.

    name: of the tensor; entry: its shape and offsets, as the header has it.
    """
    begin, end = entry["data_offsets"]
    rows, columns = entry["shape"]
    picture = Picture(
        206,
        "A file as a long strip: 8 bytes with the header's length, the "
        f"header, then the bytes of all tensors. The header sends {name} to "
        f"the bytes from {begin} to {end}, which are {rows} rows of "
        f"{columns} numbers.",
    )
    y = 84
    size = picture.layer(4, y, 46, "8", "token", 34)
    head = picture.layer(50, y, 110, "header", "query", 34)
    picture.layer(160, y, 216, "", "value", 34)
    picture.text(size.bottom[0], y + 52, "length", size=12)
    picture.text(head.bottom[0], y + 52, "names, shapes", size=12)
    picture.text(336, y + 22, "bytes")
    style = f"fill:{colour('value')};fill-opacity:.45"
    part = Box(236, y, 54, 34)
    picture.rect(part, style, radius=0)
    x = head.top[0]
    picture.line(head.top, (x, 58))
    picture.arrow((x, 58), (part.top[0], 58), part.top, role="query")
    picture.text(4, 22, name, at="start")
    text = f"{entry['dtype']}, ({rows}, {columns}), {begin} to {end}"
    picture.text(4, 42, text, role="query", at="start")
    picture.arrow(part.bottom, (part.bottom[0], 150), role="value")
    count = end - begin
    text = f"{end} − {begin} = {count} bytes"
    picture.text(376, 168, text, at="end")
    each = count // rows // columns
    text = f"= {rows} × {columns} numbers of {each} bytes"
    picture.text(376, 188, text, at="end")
    return picture


def draw_layer():
    """Return a layer with the names of its equation."""
    picture = Picture(
        116,
        "From left to right x goes through RMSNorm and attention and is "
        "added to itself, which gives x'; x' goes through RMSNorm and SwiGLU "
        "and is added to itself, which gives x''.",
    )
    y = 76
    picture.text(10, y + 5, "x", bold=True)
    parts = ((38, 44, "norm"), (94, 66, "attention"))
    more = ((222, 44, "norm"), (278, 54, "SwiGLU"))
    for start, boxes, plus, name in (
        (18, parts, 176, "x′"), (196, more, 348, "x″"),
    ):  # fmt: skip
        at = start
        for x, wide, text in boxes:
            role = OLD if text == "attention" else NEW
            box = picture.layer(x, y - 14, wide, text, role)
            picture.arrow((at, y), box.left, width=1.2)
            at = box.right[0]
        picture.arrow((at, y), (plus - 8, y), width=1.2)
        picture.plus(plus, y)
        points = (start + 6, y), (start + 6, 32), (plus, 32), (plus, y - 8)
        picture.arrow(*points, width=1.2)
        picture.text(plus + 2, y + 28, name, bold=True)
    picture.line((184, y), (196, y), width=1.2)
    picture.arrow((356, y), (376, y), width=1.2)
    return picture


def draw_sorted_rows(pairs=4):
    """Return the rows of a head as a file has them, and as a Llama does.

    pairs: of rows that are turned together.
    """
    count = 2 * pairs
    picture = Picture(
        146,
        f"A head's {count} rows. In the file the two of a pair are "
        "neighbours; in the model the first ones of all pairs come first, "
        "then the second ones, and arrows lead from place to place.",
    )
    roles = "query", "key", "value", "output"
    step = 296 / count
    for y, name, order in (
        (8, "in the file", [(i, j) for i in range(pairs) for j in (0, 1)]),
        (112, "in the model", [(i, j) for j in (0, 1) for i in range(pairs)]),
    ):
        picture.text(76, y + 18, name, at="end", size=12)
        for at, (i, j) in enumerate(order):
            box = Box(82 + at * step, y, step - 3, 26)
            role = roles[i % len(roles)]
            style = f"fill:{colour(role)};fill-opacity:{0.2 + 0.3 * j:.1f}"
            picture.rect(box, style, radius=2)
            picture.text(box.top[0], y + 18, f"{i}{'ab'[j]}", size=12)
    for i in range(pairs):
        for j in (0, 1):
            start = 82 + (2 * i + j + 0.5) * step - 1.5
            end = 82 + (j * pairs + i + 0.5) * step - 1.5
            picture.arrow((start, 36), (end, 110), role=roles[i % len(roles)])
    return picture


def token_losses(model, before, ids):
    """Return the loss of each of ids after what stands before, a list.

    model: a Llama of PyTorch; before, ids: token ids.
    """
    import torch

    row = torch.tensor([[*before, *ids]])
    with torch.no_grad():
        logits = model(row)[0, len(before) - 1 : -1].float()
    wanted = row[0, len(before) :]
    losses = torch.nn.functional.cross_entropy(
        logits, wanted, reduction="none"
    )
    return losses.tolist()


def draw_costs(tokens, costs):
    """Return what each token of an answer costs, for several prompts.

    tokens: of the answer; costs: {prompt: the loss of each token}.
    """
    told = "; ".join(
        f"{name}: " + ", ".join(f"{cost:.1f}" for cost in losses)
        for name, losses in costs.items()
    )
    picture = Picture(
        24 + 66 * len(costs), f"Loss of each token of an answer. {told}."
    )
    largest = max(cost for losses in costs.values() for cost in losses)
    step = 372 / len(tokens)
    for k, (name, losses) in enumerate(costs.items()):
        y = 20 + 66 * k
        picture.text(4, y - 6, name, at="start", size=12)
        for i, (token, cost) in enumerate(zip(tokens, losses, strict=True)):
            box = Box(4 + i * step, y, step - 3, 40)
            style = f"fill:{colour('wrong')};fill-opacity:"
            style += f"{0.03 + 0.5 * cost / largest:.2f};stroke:"
            picture.rect(box, style + colour("token"), radius=2)
            picture.text(box.top[0], y + 16, token, size=11)
            picture.text(box.top[0], y + 33, f"{cost:.1f}", size=12)
    return picture


def draw_proof():
    """Return what equal logits speak for, and what they cannot see."""
    picture = Picture(
        150,
        "A file's rows are sorted once; the sorted weights go into two "
        "classes, ours and theirs, and their logits are compared. The "
        "comparison sees the classes, and not the sorting before them.",
    )
    file = picture.layer(4, 60, 60, "file", "token")
    sort = picture.layer(92, 60, 92, "sort rows", "wrong")
    ours = picture.layer(226, 20, 70, "ours", "query")
    theirs = picture.layer(226, 100, 70, "theirs", "key")
    picture.arrow(file.right, sort.left)
    for box, role, end in ((ours, "query", 68), (theirs, "key", 84)):
        _, y = box.left
        picture.arrow(sort.right, (204, 74), (204, y), box.left)
        picture.arrow(box.right, (348, y), (348, end), role=role)
    picture.text(348, 80, "=", bold=True, size=16)
    picture.frame(Box(214, 6, 162, 136))
    picture.text(138, 112, "not compared", role="wrong", size=12)
    return picture
