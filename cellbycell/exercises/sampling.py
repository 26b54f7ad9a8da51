"""The exercises of *Which token next?*."""

import numpy as np

from . import Exercise, softmax

# 1: a temperature


def logits_and_temperature():
    given = np.array([2.0, 0.5, -1.0, 1.0])  # (N,)
    return [(given, 0.5), (given, 2.0), (1000 * given, 0.5)]


check_tempered_probs = Exercise(
    number=1,
    right=lambda z, t: softmax(z / t),
    cases=logits_and_temperature,
    mistakes={
        "the slider does nothing: divide the logits, before the softmax": (
            lambda z, t: softmax(z) / t / (softmax(z) / t).sum()
        ),
        "the probabilities are divided; they do not sum to one": (
            lambda z, t: softmax(z) / t
        ),
        "it is inverted: a high temperature must flatten": (
            lambda z, t: softmax(z * t)
        ),
        "these are no probabilities yet; take the softmax": lambda z, t: z / t,
        "they do not sum to one; divide by the sum": lambda z, t: np.exp(
            z / t
        ),
        "take off the largest first, for large logits": lambda z, t: (
            np.exp(z / t) / np.exp(z / t).sum()
        ),
    },
    otherwise="divide the logits by the temperature, then take the softmax",
)


# 2: a nucleus


def before(row, p):
    """Keep a token if those before it have less than p, and the first."""
    return (row.cumsum() - row < p) | (np.arange(len(row)) == 0)


def cut(probs, p, keep=before, back=True, least=False):
    """Return which tokens are kept.

    keep: of the sorted probabilities and p; back: sorted back; least: sorted
    upwards.
    """
    order = np.argsort(probs if least else -probs, kind="stable")
    kept = keep(probs[order], p)
    return kept[np.argsort(order)] if back else kept


def shared_out(probs, kept):
    return probs * kept / (probs * kept).sum()


def nucleus_by(**changed):
    """Return an answer that cuts in another way."""

    def nucleus(logits, temperature, p):
        probs = softmax(logits / temperature)
        return shared_out(probs, cut(probs, p, **changed))

    return nucleus


def cut_first(logits, temperature, p):
    kept = cut(softmax(logits), p)
    return softmax(np.where(kept, logits / temperature, -np.inf))


def filled_with_zero(logits, temperature, p):
    logits = logits / temperature
    return softmax(np.where(cut(softmax(logits), p), logits, 0.0))


def nucleus_cases():
    given = np.array([0.3, 2.0, -1.0, 1.1, 1.6, -0.4])  # (N,)
    ways = (2.0, 0.7), (0.5, 0.8), (4.0, 0.3), (1.0, 0.0)
    return [(given, *way) for way in ways]


check_nucleus = Exercise(
    number=2,
    right=nucleus_by(),
    cases=nucleus_cases,
    mistakes={
        "the token that crosses p is lost": nucleus_by(
            keep=lambda row, p: row.cumsum() <= p
        ),
        "what is kept is not sorted back": nucleus_by(back=False),
        "the temperature comes after the cut": cut_first,
        "the temperature is not used": lambda z, t, p: nucleus_by()(z, 1.0, p),
        "the kept probabilities are not shared out anew": lambda z, t, p: (
            softmax(z / t) * cut(softmax(z / t), p)
        ),
        "p is the share that is kept, not the one that is dropped": (
            lambda z, t, p: nucleus_by()(z, t, 1 - p)
        ),
        "this is min-p; top-p adds up": nucleus_by(
            keep=lambda row, p: row >= p * row[0]
        ),
        "the least likely tokens are kept": nucleus_by(least=True),
        "nothing is dropped": lambda z, t, p: softmax(z / t),
        "dropped logits are 0, and e^0 is one": filled_with_zero,
        "at p = 0 keep the most likely token, and no other": (
            nucleus_by(keep=lambda row, p: row.cumsum() - row < p),
            lambda z, t, p: nucleus_by()(z, t, p) if p else np.zeros(6),
            lambda z, t, p: nucleus_by()(z, t, p or 1.0),
        ),
    },
    otherwise="keep a token if those before it have less than p",
)


# 3: a step of a beam


def best(total, by=5):
    """Return the three largest entries as pairs, (C, 2)."""
    flat = np.argsort(-total, axis=None, kind="stable")[:3]
    return np.stack(np.divmod(flat, by), axis=1)


def own_best(scores, logs, width):
    total = scores[:, None] + logs
    beams = np.argsort(-total.max(1))
    return np.stack([beams, total.argmax(1)[beams]], axis=1)


def own_beam(scores, logs, width):
    """Return the best beam of each token, and of these the best."""
    total = scores[:, None] + logs
    tokens = np.argsort(-total.max(0))[:width]
    return np.stack([total.argmax(0)[tokens], tokens], axis=1)


def beams():
    probs = [
        [0.05, 0.5, 0.3, 0.1, 0.05],
        [0.1, 0.1, 0.1, 0.1, 0.6],
        [0.96, 0.01, 0.01, 0.01, 0.01],
    ]  # (B, N)
    scores, logs = np.array([-1.0, -1.5, -3.5]), np.log(probs)
    shared = np.log([[0.1, 0.5, 0.1, 0.2, 0.1], [0.1, 0.6, 0.1, 0.1, 0.1]])
    return [
        (scores, logs, 3),
        (scores[:1], logs[:1], 3),
        (np.array([-1.0, -1.2]), shared, 3),  # both go on with token 1
    ]


check_beam_step = Exercise(
    number=3,
    right=lambda scores, logs, width: best(scores[:, None] + logs),
    cases=beams,
    mistakes={
        "each beam keeps its best token; let them compete": own_best,
        "two beams may go on with the same token": own_beam,
        "return width pairs, not as many as there are beams": (
            lambda s, z, w: best(s[:, None] + z)[: len(s)]
        ),
        "the scores so far are forgotten": lambda s, z, w: best(z),
        "beam and token are exchanged": lambda s, z, w: best(s[:, None] + z)[
            :, ::-1
        ],
        "these are the worst; sort downwards": lambda s, z, w: best(
            -s[:, None] - z
        ),
        "divide by the number of tokens, not of beams": lambda s, z, w: best(
            s[:, None] + z, 3
        ),
        "logarithms are added to logarithms, not to probabilities": (
            lambda s, z, w: best(s[:, None] + np.exp(z))
        ),
        "the best three, but not in their order": lambda s, z, w: best(
            s[:, None] + z
        )[::-1],
    },
    otherwise="add the scores to the rows, and take the largest of them all",
)
