"""The drawings of *A model at work*: its training, and what is saved."""

import math

from .draw import Box, Picture, colour


def draw_share(rate_share, num_steps, warmup):
    """Return the rate over the steps, a share of the largest.

    rate_share: a function of step, num_steps and warmup.
    """
    p = Picture(
        150,
        f"The rate over {num_steps} steps: it rises in a straight line for "
        f"about {warmup} steps, until it meets half a cosine, and follows it "
        "down to zero. The rest of both lines is dashed.",
    )

    def place(step, share):
        return 34 + 336 * step / num_steps, 124 - 92 * share

    p.line((34, 14), (34, 124), (374, 124))
    p.text(28, 36, "1", at="end", size=12)
    p.text(28, 128, "0", at="end", size=12)
    p.text(40, 20, "rate", at="start", size=12)
    p.text(34, 141, "step 0", size=12)
    p.text(374, 141, num_steps, at="end", size=12)
    cosine = [
        place(s, (1 + math.cos(math.pi * s / num_steps)) / 2)
        for s in range(0, num_steps + 1, 10)
    ]
    p.line(*cosine, role="mask", dashed=True)
    p.line(place(0, 0), place(warmup * 1.1, 1.1), role="mask", dashed=True)
    steps = [0, *range(10, num_steps + 1, 10)]
    shares = [rate_share(step, num_steps, warmup) for step in steps]
    p.line(*map(place, steps, shares), role="query", width=2.5)
    p.text(86, 104, "warm-up", role="query", at="start")
    p.text(248, 56, "half a cosine", role="query", at="start")
    return p


def draw_parts(tokens):
    """Return a batch in parts, each with its share of the tokens.

    tokens: how many tokens the rows of each part have, a list for each.
    """
    total = sum(map(sum, tokens))
    shares = ", ".join(f"{sum(part)} of {total}" for part in tokens)
    p = Picture(
        4 + 84 * len(tokens),
        f"A batch in {len(tokens)} parts. Each gives a gradient, which is "
        f"multiplied by its share of the tokens, {shares}; a sum of both is "
        "the gradient of the batch.",
    )
    p.text(64, 16, "tokens", size=12)
    middle = 26 + 42 * len(tokens) - 21
    add = p.plus(262, middle)
    for i, part in enumerate(tokens):
        y = 26 + 84 * i
        box = Box(2, y, 124, 12 + 16 * len(part))
        p.frame(box)
        for r, count in enumerate(part):
            for c in range(count):
                cell = Box(10 + 14 * c, y + 8 + 16 * r, 12, 12)
                p.rect(cell, f"fill:{colour('key')};fill-opacity:.7", 2)
        mean = p.layer(150, y + 4, 62, "mean", "query", height=26)
        p.arrow((126, y + 17), mean.left)
        y = mean.right[1]
        side = -9 if i == 0 else 9
        p.arrow(mean.right, (240, y), (256, middle + side), role="query")
        text = f"× {sum(part)}/{total}"
        p.text(
            222, y - 9 if i == 0 else y + 20, text, role="query", at="start"
        )
    whole = p.layer(292, middle - 22, 84, "", "value", height=44)
    p.text(334, middle - 3, "gradient", size=13)
    p.text(334, middle + 13, "of the batch", size=12)
    p.arrow(add.right, whole.left, role="value")
    return p


def draw_checkpoint():
    """Return what a checkpoint holds, and how it is written."""
    p = Picture(
        214,
        "A checkpoint holds weights, optimiser, step, losses, and the best "
        "weights. It is written to a new file, which then takes the place of "
        "the old one; a kill in between leaves the old file whole.",
    )
    p.text(76, 16, "a training", bold=True)
    names = "weights", "optimiser", "step", "losses", "best weights"
    for i, name in enumerate(names):
        p.layer(12, 26 + 36 * i, 128, name, "query")
    p.frame(Box(4, 2, 144, 208))
    new = p.layer(214, 24, 120, "run.pt.new", "key", height=40)
    old = p.layer(214, 146, 120, "run.pt", "value", height=40)
    p.arrow((148, 44), new.left, role="key")
    p.text(181, 36, "write", role="key", size=12)
    p.arrow(new.bottom, old.top, role="value", text="replace")
    p.text(262, 82, "✗", role="wrong", at="end", size=15, bold=True)
    p.text(252, 100, "killed here:", role="wrong", at="end", size=12)
    p.text(252, 115, "run.pt is whole", role="wrong", at="end", size=12)
    p.arrow(old.left, (148, 166), role="value")
    p.text(181, 158, "load", role="value", size=12)
    return p


def draw_patience(losses, patience):
    """Return validation losses, the best one, and where the training ends.

    losses: of the validations, one after another.
    """
    best = min(range(len(losses)), key=losses.__getitem__)
    p = Picture(
        176,
        f"Validation losses as dots: {', '.join(map(str, losses))}. The "
        f"lowest is kept; after {patience} more without a lower one the "
        "training stops.",
    )
    p.line((30, 12), (30, 140), (374, 140))
    p.text(36, 22, "validation loss", at="start", size=12)
    p.text(374, 158, "validations", at="end", size=12)
    top = max(losses)

    def place(i):
        return 62 + 296 * i / (len(losses) - 1), 132 - 92 * losses[i] / top

    p.line(*map(place, range(len(losses))), role="mask")
    for i in range(len(losses)):
        role = "value" if i == best else "wrong" if i > best else "query"
        (x, y), size = place(i), 7 if i == best else 5
        p.add(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" '
            f'style="fill:{colour(role)}"/>'
        )
        if i > best:
            p.text(x, y - 12, i - best, role="wrong", size=12)
    x, y = place(best)
    p.text(x, y + 24, "best: kept", role="value")
    x, y = place(len(losses) - 1)
    p.text(x, y + 20, "stop", role="wrong")
    return p


def draw_killed(last, end, every):
    """Return a training in one go, and one that is killed and goes on.

    last: the last step before the kill; every: how often it is saved.
    """
    saved = last // every * every
    p = Picture(
        226,
        f"Two time lines of {end} steps, saved every {every}. The first runs "
        f"through. The second is killed after step {last}; a new process "
        f"loads step {saved} and runs to {end}. Both end with equal weights.",
    )

    def x(step):
        return 40 + 290 * step / end

    def save(step, y):
        box = Box(x(step) - 6, y - 6, 12, 12)
        style = f"fill:{colour('value')};stroke:{colour('value')}"
        p.rect(box, style, 2)

    p.text(0, 18, "in one go", at="start", bold=True)
    p.line((x(0), 50), (x(end), 50), role="query", width=3)
    p.text(0, 90, "killed, and resumed", at="start", bold=True)
    p.line((x(0), 122), (x(last), 122), role="query", width=3)
    p.arrow((x(saved), 130), (x(saved), 163), role="value", width=2)
    p.line((x(saved), 170), (x(end), 170), role="query", width=3)
    for step in range(0, end + 1, every):
        save(step, 50)
        p.text(x(step), 36, step, size=12)
        if step <= last:
            save(step, 122)
        if step >= saved:
            save(step, 170)
    p.text(x(last), 128, "✗", role="wrong", bold=True, size=18)
    p.text(x(last), 108, f"after {last}", role="wrong", size=12)
    p.text(x(saved) - 10, 152, f"load step {saved}", role="value", at="end")
    p.text(x(saved) - 10, 175, "a new process", at="end")
    p.line((x(end) + 10, 50), (370, 50), (370, 170), (x(end) + 10, 170),
           role="mask")  # fmt: skip
    p.text(364, 115, "equal", at="end", size=12)
    p.rect(Box(2, 200, 12, 12), f"fill:{colour('value')}", 2)
    p.text(20, 211, "saved", at="start", size=12)
    return p


def draw_late():
    """Return why a validation loss can be the lower one."""
    p = Picture(
        172,
        "A loss that falls over 100 steps. A dashed line is its mean, high "
        "up; a dot at the end, lower, is where validation measures.",
    )
    p.line((30, 12), (30, 146), (374, 146))
    p.text(36, 20, "loss", at="start", size=12)
    p.text(30, 163, "step 0", size=12)
    p.text(374, 163, "100", at="end", size=12)
    heights = [math.exp(-i / 12) for i in range(41)]
    points = [(30 + 8.4 * i, 142 - 116 * h) for i, h in enumerate(heights)]
    p.line(*points, role="query", width=2.5)
    mean = 142 - 116 * sum(heights) / len(heights)
    p.line((30, mean), (366, mean), role="key", dashed=True)
    p.text(
        366, mean - 7, "training: the mean of all steps", role="key", at="end"
    )
    x, y = points[-1]
    p.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" '
          f'style="fill:{colour("value")}"/>')  # fmt: skip
    p.text(x - 8, y - 7, "validation", role="value", at="end")
    return p
