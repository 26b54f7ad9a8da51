"""The drawings of *One model, several machines*: who has what, who sends."""

import numpy as np

from .draw import Box, Picture, colour

MACHINES = "query", "key", "value", "output"  # a colour for each machine


def draw_stages(size, kinds, stages):
    """Return what each machine holds of a weight's bytes, stage by stage.

    size: how many machines; kinds: {name: bytes} of weights, gradients and
    the optimiser; stages: names, each of which cuts one kind more, from the
    last one on.
    """
    total, unit, wide = sum(kinds.values()), 5, 94
    held = [
        sum(
            count / size if i >= len(kinds) - stage else count
            for i, count in enumerate(kinds.values())
        )
        for stage in range(len(stages))
    ]
    told = [f"{n}: {b:g} bytes" for n, b in zip(stages, held, strict=True)]
    picture = Picture(
        52 + 48 * len(stages),
        f"{size} machines beside each other, and what each holds of a "
        f"weight's {total} bytes: " + "; ".join(told) + ". What is cut is "
        "held in pieces, each by one machine.",
    )
    for m in range(size):
        x, role = 6 + wide * m, MACHINES[m]
        picture.text(x, 14, f"machine {m}", role=role, at="start", size=12)
        for stage in range(len(stages)):
            y, left = 40 + 48 * stage, x
            for i, count in enumerate(kinds.values()):
                box = Box(left, y, unit * count, 20)
                paint = f"fill:{colour(role)};fill-opacity:{0.8 - 0.25 * i:g}"
                own = box
                if i >= len(kinds) - stage:
                    share = box.width / size
                    own = Box(left + m * share, y, share, 20)
                picture.rect(own, paint, 0)
                picture.rect(box, f"stroke:{colour(role)};fill:none", 0)
                left += box.width
    for stage, name in enumerate(stages):
        y = 34 + 48 * stage
        picture.text(6, y, name, at="start", size=12)
        text = f"{held[stage]:g} bytes each"
        picture.text(374, y, text, at="end", bold=True, size=12)
    y = 48 + 48 * len(stages)
    named = ", ".join(f"{name} {count}" for name, count in kinds.items())
    picture.text(190, y, f"from left to right: {named}", size=12)
    return picture


def draw_swap(size):
    """Return tokens and heads on machines, before and after an all-to-all."""
    picture = Picture(
        66 + 22 * size,
        "Two squares of tokens by heads. On the left each machine has a row, "
        "all heads of a token; on the right a column, a head of all tokens.",
    )
    names = [str(i) for i in range(size)]
    ones, y = np.ones(size), 44
    for m, role in enumerate(MACHINES[:size]):
        picture.matrix(
            62, y + 22 * m, ones[None], role, texts=[[m] * size], rows=[m]
        )
        picture.matrix(
            250 + 30 * m, y, ones[:, None], role, texts=[[m]] * size
        )
    for left in (62, 250):
        picture.text(left + 15 * size, 14, "heads", size=12)
        for i, name in enumerate(names):
            picture.text(left + 15 + 30 * i, 36, name, size=12)
    middle = y + 11 * size
    picture.text(22, middle + 4, "tokens", size=12)
    picture.arrow((62 + 30 * size + 6, middle), (244, middle))
    picture.text(190, y + 22 * size + 18, "in a cell: its machine", size=12)
    return picture


def draw_means(first, second):
    """Return the numbers of two machines, and two means of their means.

    first, second: what each machine has, whole numbers.
    """
    means = [np.mean(part) for part in (first, second)]
    whole = np.mean([*first, *second])
    between = np.mean(means)
    low = min(first)

    def place(number):
        return 40 + 60 * (number - low)

    picture = Picture(
        142,
        f"A number line. Machine 0 has {len(first)} numbers with the mean "
        f"{means[0]:g}, machine 1 has {len(second)} with the mean "
        f"{means[1]:g}. Midway lies {between:g}; the mean of all numbers, "
        f"nearer to the larger part, is {whole:g}.",
    )
    for m, part in enumerate((first, second)):
        role, middle = MACHINES[m], place(means[m])
        picture.text(middle, 14, f"machine {m}", role=role)
        for number in part:
            box = Box(place(number) - 13, 22, 26, 22)
            look = f"stroke:{colour(role)};fill:{colour(role)};"
            picture.rect(box, look + "fill-opacity:.2", radius=2)
            picture.text(box.top[0], 38, f"{number:g}")
            start = box.bottom[0], 46
            picture.line(start, (middle, 72), role=role, width=1)
        picture.add(
            f'<circle cx="{middle:g}" cy="78" r="6" '
            f'style="fill:{colour(role)}"/>'
        )
        picture.text(middle, 102, f"mean {means[m]:g}", role=role, size=12)
    ends = (place(means[0]), 78), (place(means[1]), 78)
    picture.line(*ends, width=1)
    for at, role, text, end in (
        (between, "wrong", f"midway: {between:g}", "end"),
        (whole, None, f"mean of all: {whole:g}", "start"),
    ):
        picture.arrow((place(at), 116), (place(at), 83), role=role)
        shift = 8 if end == "end" else -8
        x = place(at) + shift
        picture.text(x, 132, text, role=role, at=end)
    return picture


def draw_all_reduce(numbers):
    """Return three machines in a circle that add up what they have.

    numbers: the one that each of the three repeats.
    """
    count, total = len(numbers), sum(numbers)
    picture = Picture(
        204,
        "Three machines in a circle, three times. At first each has its own "
        "three numbers; then each has added up one third; at the end all "
        f"have {total}, {total}, {total}.",
    )
    titles = "its own", "a third added up", "the sums to all"
    for step, title in enumerate(titles):
        middle = 63 + 127 * step
        picture.text(middle, 14, title)
        places = (middle - 24, 48), (middle + 12, 130), (middle - 60, 130)
        boxes = []
        for m, (x, y) in enumerate(places):
            own = [
                total if step == 2 or step and i == m else numbers[m]
                for i in range(count)
            ]
            shown = [float(number == total) for number in own]
            box = picture.matrix(
                x, y, shown, MACHINES[m], texts=[own], cell=16
            )
            boxes.append(box)
            name = box.top[0], box.y - 6 if m == 0 else box.bottom[1] + 16
            told = f"machine {m}" if m == 0 else m
            picture.text(*name, told, role=MACHINES[m], size=12)
        if step:
            _all_to_all(picture, boxes)
    picture.text(190, 196, "an arrow: one number of 4 bytes", size=12)
    return picture


def _all_to_all(picture, boxes):
    """Draw an arrow from each of three machines to both others."""
    top, right, left = boxes
    for sign, low, m in ((1, right, 1), (-1, left, 2)):
        x, y = top.bottom
        up = low.top
        inner, outer = 10 * sign, 20 * sign
        picture.arrow(
            (x + outer, y + 3), (up[0] + 8 * sign, up[1] - 3),
            role=MACHINES[0], width=1,
        )  # fmt: skip
        picture.arrow(
            (up[0] - 4 * sign, up[1] - 3), (x + inner, y + 3),
            role=MACHINES[m], width=1,
        )  # fmt: skip
    for height, a, b, m in ((6, left, right, 2), (16, right, left, 1)):
        y = left.y + height
        ends = (a.right[0], b.x) if m == 2 else (a.x, b.right[0])
        picture.arrow(
            (ends[0] + (2 if m == 2 else -2), y),
            (ends[1] - (2 if m == 2 else -2), y),
            role=MACHINES[m], width=1,
        )  # fmt: skip


def draw_columns(x, up, down):
    """Return a feed-forward layer on two machines, number by number.

    x (D,), up (D, F), down (F,): small whole numbers.
    """
    half = len(down) // 2
    products = x @ up  # (F,)
    hidden = np.maximum(products, 0)  # (F,)
    sums = [hidden[:half] @ down[:half], hidden[half:] @ down[half:]]
    picture = Picture(
        212,
        "Two machines, one above the other. Each has two columns of the "
        "first matrix and two rows of the second; from the same input they "
        f"get {sums[0]:g} and {sums[1]:g}, which add up to {sum(sums):g}.",
    )
    heads = ((29, "x"), (112, "columns"), (196, "ReLU"), (272, "rows"))
    for at, text in heads:
        picture.text(at, 14, text, size=12)
    given = picture.matrix(14, 84, x[:, None])
    total = picture.plus(356, 106)
    for m, cut in enumerate((slice(0, half), slice(half, None))):
        y, role = 26 + 92 * m, MACHINES[m]
        frame = Box(74, y, 256, 78)
        look = f"stroke:{colour(role)};fill:{colour(role)};fill-opacity:.07"
        picture.rect(frame, look, radius=6)
        picture.text(86, y + 16, f"machine {m}", role=role, at="start")
        first = picture.matrix(82, y + 26, up[:, cut], role)
        made = picture.matrix(174, y + 37, [hidden[cut]], role, cell=22)
        last = picture.matrix(258, y + 26, down[cut][:, None], role)
        middle = y + 48
        picture.arrow((given.right[0] + 3, 106), (79, middle), role="token")
        for a, b in ((first, made), (made, last)):
            picture.arrow(
                (a.right[0] + 3, middle), (b.x - 3, middle), role=role
            )
        picture.text(310, middle + 5, f"{sums[m]:g}", bold=True)
        end = total.top if m == 0 else total.bottom
        picture.arrow((318, middle), (356, middle), end, role=role)
    picture.text(356, 206, f"= {sum(sums):g}", bold=True)
    return picture


def draw_both_ways():
    """Return the two ends of a cut layer, forwards and backwards."""
    picture = Picture(
        214,
        "Above, forwards: x is copied to two machines, and their outputs are "
        "added. Below, backwards: the gradient of the output is copied to "
        "both, and what comes back is added.",
    )
    for way, y in (("forwards", 24), ("backwards", 132)):
        picture.text(6, y - 10, way, at="start", bold=True)
        back = way == "backwards"
        middle = y + 36
        boxes = [
            picture.machine(142, y + 40 * m - 6, 96, f"machine {m}", role, 28)
            for m, role in enumerate(MACHINES[:2])
        ]
        ends = [
            picture.token(6, middle - 12, "x", width=36),
            picture.token(338, middle - 12, "y", width=36),
        ]
        if back:
            ends = ends[::-1]
        start, end = ends
        flip = -1 if back else 1
        fork = 116 if not back else 264
        join = 290 if not back else 90
        begin = start.right if not back else start.left
        picture.line(begin, (fork, middle))
        total = picture.plus(join, middle)
        for box, role in zip(boxes, MACHINES, strict=False):
            near, far = (
                (box.right, box.left) if back else (box.left, box.right)
            )
            picture.arrow((fork, middle), near, role=role)
            into = total.top if box is boxes[0] else total.bottom
            picture.arrow(far, (join, far[1]), into, role=role)
        near = end.right if back else end.left
        picture.arrow((join + 8 * flip, middle), near)
    return picture


def draw_vocabulary(exponentials, target):
    """Return exponentials of logits on two machines, and what both send.

    exponentials: whole numbers, half of them on each machine; target: the
    place of the target among them.
    """
    half = len(exponentials) // 2
    parts = exponentials[:half], exponentials[half:]
    total = sum(exponentials)
    found = exponentials[target]
    picture = Picture(
        170,
        f"Machine 0 has the exponentials {parts[0]} with the sum "
        f"{sum(parts[0])}, machine 1 has {parts[1]} with the sum "
        f"{sum(parts[1])}, and the target. Together: {found} of {total}.",
    )
    unit = 14
    for m, part in enumerate(parts):
        left, role = 12 + 130 * m, MACHINES[m]
        picture.text(left + 50, 14, f"machine {m}", role=role)
        picture.line((left, 90), (left + 100, 90), role="mask", width=1)
        for i, number in enumerate(part):
            tall = unit * number
            box = Box(left + 10 + 44 * i, 90 - tall, 36, tall)
            is_target = m * half + i == target
            look = f"fill:{colour(role)};fill-opacity:"
            picture.rect(box, look + (".75" if is_target else ".3"), 1)
            picture.text(box.top[0], 106, number)
            if is_target:
                picture.text(box.top[0], 122, "target", size=12)
        picture.text(left + 50, 146, f"sum {sum(part)}", role=role, bold=True)
    picture.arrow((252, 66), (290, 66))
    picture.text(336, 58, f"{found}")
    picture.line((306, 65), (366, 65))
    sums = " + ".join(str(sum(part)) for part in parts)
    picture.text(336, 81, sums)
    picture.text(336, 106, f"= {found / total:.1f}", bold=True)
    picture.text(
        190, 164, "sent: a sum and a target, whatever the width", size=12
    )
    return picture


def draw_step():
    """Return one step of training on two machines."""
    picture = Picture(
        196,
        "Two machines with the same weights read different rows and get "
        "different gradients; the all-reduce gives both the same sum, so "
        "both take the same step, and have the same weights again.",
    )
    total = picture.plus(246, 98)
    for m, role in enumerate(MACHINES[:2]):
        y = 24 + 118 * m
        title = y - 8 if m == 0 else y + 46
        picture.text(4, title, f"machine {m}", role=role, at="start")
        boxes = [
            picture.layer(4, y, 64, "weights"),
            picture.layer(92, y, 76, "own rows", role),
            picture.layer(192, y, 68, "gradient", role),
            picture.layer(312, y, 64, "weights"),
        ]
        for a, b in zip(boxes[:2], boxes[1:3], strict=True):
            picture.arrow(a.right, b.left, role=role)
        low = m == 0
        x = 246
        start, end = (
            ((x, y + 28), total.top) if low else ((x, y), total.bottom)
        )
        picture.arrow(start, end, role=role)
        x = boxes[3].top[0]
        end = boxes[3].bottom if low else boxes[3].top
        picture.arrow(total.right, (x, 98), end)
    picture.text(300, 92, "same step", size=12)
    picture.line((36, 54), (36, 140), role="mask", dashed=True)
    picture.text(44, 102, "the same", at="start", size=12)
    return picture


def draw_batch(names, letters):
    """Return a batch of names on two machines, and their shares.

    names: of both machines together, half of them on each; letters: how many
    letters and ends each machine has to predict.
    """
    half, total = len(names) // 2, sum(letters)
    wide = 19
    picture = Picture(
        26 + 23 * len(names),
        f"Names in cells, a dot at the end: {', '.join(names[:half])} on "
        f"machine 0, {letters[0]} cells; {', '.join(names[half:])} on "
        f"machine 1, {letters[1]} cells of {total}.",
    )
    for r, name in enumerate(names):
        m = r // half
        y, role = 4 + 23 * r + 14 * m, MACHINES[m]
        for i, sign in enumerate([*name, "."]):
            box = Box(4 + wide * i, y, wide, 20)
            look = f"stroke:{colour(role)};fill:{colour(role)};"
            picture.rect(box, look + "fill-opacity:.15", 0)
            picture.text(box.top[0], y + 15, sign)
    for m, count in enumerate(letters):
        y, role = 40 + m * (23 * half + 14), MACHINES[m]
        picture.text(376, y, f"machine {m}", role=role, at="end")
        text = f"counts {count}/{total}"
        picture.text(376, y + 20, text, role=role, at="end", bold=True)
    return picture


def draw_cut_layer(heads, d_ff):
    """Return a layer of a Llama on two machines: what is cut, and two sums.

    heads, d_ff: of the whole layer.
    """
    picture = Picture(
        206,
        f"A layer on two machines. Each has {heads // 2} of {heads} heads "
        f"and {d_ff // 2} of {d_ff} hidden numbers; after the attention and "
        "after the feed-forward layer, their outputs are added up.",
    )
    picture.text(190, 14, "embedding and norms: whole on both", size=12)
    sums = [picture.plus(172, 110), picture.plus(338, 110)]
    for m, role in enumerate(MACHINES[:2]):
        y = 30 + 124 * m
        title = y + 46 if m == 0 else y - 8
        picture.text(86, title, f"machine {m}", role=role, size=12)
        own = [str(m * heads // 2 + h) for h in range(heads // 2)]
        picture.head(28, y, 116, "heads " + " and ".join(own), role)
        block = picture.layer(212, y, 96, f"{d_ff // 2} of {d_ff}", role)
        x = 172
        end = sums[0].top if m == 0 else sums[0].bottom
        picture.arrow((140, y + 14), (x, y + 14), end, role=role)
        end = sums[1].top if m == 0 else sums[1].bottom
        picture.arrow(block.right, (338, y + 14), end, role=role)
        picture.arrow((196, 110), (196, y + 14), block.left, role=role)
        picture.arrow((14, 110), (14, y + 14), (32, y + 14), role=role)
    picture.line(sums[0].right, (196, 110))
    picture.arrow(sums[1].right, (376, 110))
    picture.text(84, 114, "x on both", size=12)
    picture.line((14, 110), (50, 110))
    picture.text(260, 114, "feed-forward", size=12)
    picture.text(190, 200, "+ is an all-reduce", size=12)
    return picture
