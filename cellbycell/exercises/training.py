"""The exercises of *Training a Transformer*."""

import math

import numpy as np

from . import Exercise, Wrong, as_array

# 1: the floor of other targets


def entropy(right, other, count):
    """Return an answer: the entropy of a probability and so many others.

    Each is a function of N and the smoothing.
    """

    def floor_of_others(vocab_size, smoothing):
        a, b, n = (f(vocab_size, smoothing) for f in (right, other, count))
        return -a * math.log(a) - n * b * math.log(b)

    return floor_of_others


def sure(n, s):
    return 1 - s


def shared(n, s):
    return s / (n - 1)


def others(n, s):
    return n - 1


def of_targets(n, s):
    return entropy(sure, shared, others)(n, s)


check_floor_of_others = Exercise(
    number=1,
    right=of_targets,
    cases=lambda: [(13, 0.1), (5, 0.2), (100, 0.3)],
    mistakes={
        "this is the floor of equation (3)": entropy(
            lambda n, s: 1 - s + s / n, lambda n, s: s / n, others
        ),
        "the entropy has a minus in front": lambda n, s: -of_targets(n, s),
        "the wrong tokens are missing": entropy(sure, shared, lambda n, s: 0),
        "the target is missing": lambda n, s: -s * math.log(s / (n - 1)),
        "there are N - 1 wrong tokens, not one": entropy(
            sure, shared, lambda n, s: 1
        ),
        "there are N - 1 wrong tokens, not N": entropy(
            sure, shared, lambda n, s: n
        ),
        "the probabilities have to add up to one": entropy(
            sure, lambda n, s: s / n, others
        ),
        "this is a logarithm to base 2": lambda n, s: (
            of_targets(n, s) / math.log(2)
        ),
        "this is the plain loss of the target": lambda n, s: -math.log(1 - s),
    },
    otherwise="{} is not the entropy of a target and N - 1 wrong tokens",
)


# 2: a rate from zero


def rate(step, d_model, warmup, best=min):
    """Return equation (4), or the larger of its two parts."""
    return d_model**-0.5 * best(step**-0.5, step * warmup**-1.5)


def from_one(change=rate):
    """Return an answer with another formula, of the step from one on."""
    return lambda step, done, d_model, warmup: change(
        step + done + 1, d_model, warmup
    )


check_rate_from_zero = Exercise(
    number=2,
    right=from_one(),
    cases=lambda: [
        (0, 0, 16, 99),
        (7, 3, 12, 5),
        (49, 20, 64, 50),
        (4, 20, 64, 50),
        (9, 80, 512, 9),
    ],
    mistakes={
        "the width is missing": from_one(lambda s, d, w: rate(s, 1, w)),
        "the exponent of the width is -1/2, not 1/2": from_one(
            lambda s, d, w: rate(s, 1 / d, w)
        ),
        "the larger of the two is taken": from_one(
            lambda s, d, w: rate(s, d, w, max)
        ),
        "the warm-up has the exponent -3/2": from_one(
            lambda s, d, w: d**-0.5 * min(s**-0.5, s * w**-0.5)
        ),
        "it never rises": from_one(lambda s, d, w: (d * s) ** -0.5),
        "it never falls": from_one(lambda s, d, w: d**-0.5 * s * w**-1.5),
        "the first step is 0 here; add one": lambda step, done, d, w: (
            rate(step + done, d, w) if step + done else 0
        ),
        "max(step, 1) takes the first rate twice; add one": (
            lambda step, done, d, w: rate(max(step + done, 1), d, w)
        ),
        "the steps before are forgotten": lambda step, done, d, w: rate(
            step + 1, d, w
        ),
    },
    otherwise="these are other rates",
    faults={
        "ZeroDivisionError": "the first step divides by zero; count from one"
    },
)


# 3: the mean of two batches


def mean(mix):
    """Return an answer: a mix of all losses and of those of tokens."""
    return lambda losses, targets, more_losses, more_targets: mix(
        losses,
        losses[targets != 0],
        more_losses,
        more_losses[more_targets != 0],
    )


def two_batches():
    """Return losses and targets of two batches, some of them pads."""
    for seed, shapes in enumerate([((2, 5), (3, 4)), ((1, 3), (2, 6))]):
        rng, given = np.random.default_rng(seed), []
        for number, shape in enumerate(shapes):
            targets = rng.integers(1, 5, shape)
            targets[0, 1 + number :] = 0
            targets[-1, -1] = 0
            given += [rng.uniform(1, 3, shape), targets]
        yield given


check_joint_mean = Exercise(
    number=3,
    right=mean(lambda a, b, c, d: (b.sum() + d.sum()) / (b.size + d.size)),
    cases=lambda: [tuple(given) for given in two_batches()],
    mistakes={
        "the pads are counted": mean(
            lambda a, b, c, d: (a.sum() + c.sum()) / (a.size + c.size)
        ),
        "the pads are divided by": mean(
            lambda a, b, c, d: (b.sum() + d.sum()) / (a.size + c.size)
        ),
        "this is a mean of means": mean(
            lambda a, b, c, d: (b.mean() + d.mean()) / 2
        ),
        "a batch counts by its tokens, not by its positions": mean(
            lambda a, b, c, d: (
                (a.size * b.mean() + c.size * d.mean()) / (a.size + c.size)
            )
        ),
        "this is a sum": mean(lambda a, b, c, d: b.sum() + d.sum()),
        "the first batch only": mean(lambda a, b, c, d: b.mean()),
        "the second batch only": mean(lambda a, b, c, d: d.mean()),
        "the losses of pads are added": mean(
            lambda a, b, c, d: (a.sum() + c.sum()) / (b.size + d.size)
        ),
    },
    otherwise="{} is not the mean of all tokens",
)


# 4: the keys of every second letter


def row(found):
    """Read one row of keys."""
    keys = as_array(found)
    if keys.ndim != 1:
        raise Wrong(f"return one row of keys; the shape is {keys.shape}")
    return keys


def once_more(key_len):
    keys = np.arange(key_len)[::-2]
    return np.append(keys, keys[-1])


check_keys_of_every_second = Exercise(
    number=4,
    right=lambda key_len: np.arange(key_len)[::-2],
    cases=lambda: [(8,), (5,), (1,)],
    mistakes={
        "the last letter is at key_len - 1": lambda m: np.arange(m, 0, -2),
        "these are in the order of the source": lambda m: np.arange(m)[::-2][
            ::-1
        ],
        "every letter is written": lambda m: np.arange(m)[::-1],
        "this begins with the second last": lambda m: np.arange(m - 1)[::-2],
        "these are the positions of the target": lambda m: np.arange(
            (m + 1) // 2
        ),
        "not backwards, and from the first": lambda m: np.arange(0, m, 2),
        "the last position predicts the end; leave it out": once_more,
    },
    otherwise="{}: from the last letter down, in steps of two",
    reads=row,
)


# 5: the best shares


def shares(mix):
    """Return an answer: a mix of m, the share of letters, of sequences."""
    return lambda m: mix(
        m, sum(1 / k for k in range(1, m + 1)) / m, 1 / math.factorial(m)
    )


check_best_shares = Exercise(
    number=5,
    right=shares(lambda m, a, b: (a, b)),
    cases=lambda: [(8,), (3,), (5,)],
    mistakes={
        "the shares are exchanged": shares(lambda m, a, b: (b, a)),
        "letters: with t letters read, m - t are left": shares(
            lambda m, a, b: (1 / m, b)
        ),
        "letters: divide by the number of positions": shares(
            lambda m, a, b: (m * a, b)
        ),
        "letters: the end is not a letter": shares(
            lambda m, a, b: ((m * a + 1) / (m + 1), b)
        ),
        "sequences: all orders are equally likely": shares(
            lambda m, a, b: (a, m**-m)
        ),
        "sequences: the first letter does not decide": shares(
            lambda m, a, b: (a, 1 / m)
        ),
        "sequences: a share of letters is not one": shares(
            lambda m, a, b: (a, a)
        ),
        "sequences: some order is right": shares(lambda m, a, b: (a, 0)),
    },
    otherwise="{}: the mean of the bounds, and one order out of all",
)
