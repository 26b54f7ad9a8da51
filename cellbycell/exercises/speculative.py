"""The exercises of *A draft and a judge*."""

import numpy as np

from . import Exercise, softmax


def tokens_a_call(alpha, count):
    """Return how many tokens a call of the target brings."""
    return powers(alpha, count + 1)


def powers(alpha, last, first=0):
    return (alpha ** np.arange(first, last)).sum()


# 1: after a rejection


def over_sum(row):
    return row / row.sum()


def cut(p, q):
    return np.maximum(p - q, 0)


def with_guard(p, q):
    left = cut(p, q)
    return over_sum(left) if left.any() else p


def struck_out(p, q):
    return over_sum(p * (np.arange(len(p)) != (p / q).argmin()))


def rows():
    for p, q in (
        ([0.5, 0.3, 0.15, 0.05], [0.25, 0.45, 0.2, 0.1]),
        ([0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.2, 0.3]),
        ([0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
    ):
        yield np.array(p), np.array(q)


check_missing = Exercise(
    number=1,
    right=with_guard,
    cases=rows,
    mistakes={
        "this is drawn from p again; what q has is counted twice": (
            lambda p, q: p
        ),
        "these do not sum to one; divide by their sum": cut,
        "this is what q has too much of": lambda p, q: with_guard(q, p),
        "what q has too much of is no probability; cut at zero": (
            lambda p, q: over_sum(abs(p - q))
        ),
        "what is missing of a token is p - q, not p": lambda p, q: (
            over_sum(p * (p > q)) if (p > q).any() else p
        ),
        "only a proposal that was certain is struck out of p": struck_out,
        "negative numbers are no probabilities; cut at zero": lambda p, q: (
            p - q
        ),
        "if p is q, nothing is missing, and 0 / 0 is NaN; return p": (
            lambda p, q: over_sum(cut(p, q)),
            lambda p, q: cut(p, q) / max(cut(p, q).sum(), 1e-9),
        ),
    },
    otherwise="cut p - q at zero, and divide by the sum",
)


# 2: what a round adds


def round_adds(drafted, wanted, end_id):
    for i, token in enumerate(wanted):
        if token == end_id or i == len(drafted) or drafted[i] != token:
            return i + 1


check_added = Exercise(
    number=2,
    right=round_adds,
    cases=lambda: [
        (np.array(drafted), np.array(wanted), 0)
        for drafted, wanted in [
            ([5, 6, 7, 8], [5, 6, 7, 8, 9]),
            ([5, 6, 7, 8], [5, 3, 7, 8, 9]),
            ([5, 6, 7, 8], [4, 6, 7, 2, 9]),
            ([5, 6, 0, 8], [5, 6, 0, 8, 9]),
            ([5, 6, 7], [5, 0, 7, 9]),
            ([5, 0, 7], [4, 0, 7, 9]),
            ([5, 6, 0], [5, 6, 0, 9]),
        ]
    ],
    mistakes={
        "the target's own token is forgotten": lambda *given: (
            round_adds(*given) - 1
        ),
        "the end itself is a token of the text": lambda drafted, wanted, end: (
            round_adds(drafted, wanted, end)
            - (wanted[round_adds(drafted, wanted, end) - 1] == end)
        ),
        "what comes after the end is counted": lambda drafted, wanted, end: (
            int((drafted == wanted[:-1]).cumprod().sum()) + 1
        ),
        "count up to the first that differs, and no further": (
            lambda drafted, wanted, end: (drafted == wanted[:-1]).sum() + 1
        ),
        "rejected tokens are counted": lambda drafted, wanted, end: len(
            wanted
        ),
    },
    otherwise="count those that agree from the first on, and one more",
)


# 3: how many times as fast


def times(brought, time=lambda count, cost: 1 + count * cost):
    """Return an answer that brings other tokens, in another time."""
    return lambda alpha, count, cost: brought(alpha, count) / time(count, cost)


def in_closed_form(alpha, count):
    return (1 - np.float64(alpha) ** (count + 1)) / (1 - alpha)


check_speedup = Exercise(
    number=3,
    right=times(tokens_a_call),
    cases=lambda: [(0.75, 4, 0.1), (0.5, 2, 0.25), (1.0, 3, 0.0)],
    mistakes={
        "the free token is forgotten": times(lambda a, k: powers(a, k + 1, 1)),
        "one token too many: the powers go up to alpha ** count": times(
            lambda a, k: powers(a, k + 2)
        ),
        "after a rejection the later tokens are lost, too": times(
            lambda a, k: 1 + a * k
        ),
        "the draft takes time, too": times(tokens_a_call, lambda k, cost: 1),
        "the draft is called for each drafted token": times(
            tokens_a_call, lambda k, cost: 1 + cost
        ),
        "this is how many times as slow": lambda *given: (
            1 / times(tokens_a_call)(*given)
        ),
        "a round is also a call of the target": times(
            tokens_a_call, lambda k, cost: k * cost
        ),
        "for alpha = 1 the closed formula is 0 / 0; add up the powers": times(
            in_closed_form
        ),
    },
    otherwise="divide what a round brings by the time that it takes",
)


# 4: the share that is accepted


def shared(of_target, of_draft, join=np.minimum):
    """Return an answer with other probabilities, of logits, temperature."""
    return lambda target_logits, draft_logits, temperature: join(
        of_target(target_logits, temperature),
        of_draft(draft_logits, temperature),
    ).sum()


def plain(logits, temperature):
    return softmax(logits)


def tempered(logits, temperature):
    return softmax(logits / temperature)


def judged_by_plain(target_logits, draft_logits, temperature):
    p, q = softmax(target_logits), softmax(draft_logits)
    ratio = np.minimum(1, p / q)
    return (tempered(draft_logits, temperature) * ratio).sum()


def logits_of_both():
    for seed, temperature in ((0, 0.5), (1, 2.0)):
        both = np.random.default_rng(seed).normal(size=(2, 5)) * 1.5
        yield *both, temperature


check_share_accepted = Exercise(
    number=4,
    right=shared(plain, tempered),
    cases=logits_of_both,
    mistakes={
        "the temperature is not used": shared(plain, plain),
        "q is what was drawn from, at the temperature": judged_by_plain,
        "the target has no temperature": shared(tempered, tempered),
        "this is the probability of a rejection": lambda *given: (
            1 - shared(plain, tempered)(*given)
        ),
        "accepted is not only what the target would draw, too": shared(
            plain, tempered, np.multiply
        ),
        "divide the logits by the temperature": shared(
            plain, lambda logits, t: softmax(logits * t)
        ),
        "a tempered q has to sum to one again": shared(
            plain, lambda logits, t: softmax(logits) / t
        ),
    },
    otherwise="sum the smaller of p and q, with q at the temperature",
)
