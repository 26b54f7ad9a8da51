"""The exercises of *One evening*."""

import numpy as np

from . import Exercise, softmax

# 1: draw a letter


def draws():
    probs = np.array([0.1, 0.5, 0.15, 0.25])  # (N,)
    for u in (0.2, 0.05, 0.7, 0.9):
        yield probs, u


check_next_letter = Exercise(
    number=1,
    right=lambda probs, u: (np.cumsum(probs) < u).sum(),
    cases=draws,
    mistakes={
        "this is always the likeliest; u should decide": (
            lambda probs, u: probs.argmax()
        ),
        "this is the letter before; count the sums below u, from 0 on": (
            lambda probs, u: (np.cumsum(probs) < u).sum() - 1
        ),
        "this is the letter after; the sums below u are as many as its id": (
            lambda probs, u: (np.cumsum(probs) < u).sum() + 1
        ),
        "all letters are equally likely here; add up the probabilities": (
            lambda probs, u: int(u * len(probs))
        ),
        "single probabilities are compared with u; add them up first": (
            lambda probs, u: (probs < u).sum(),
            lambda probs, u: (probs >= u).argmax(),
        ),
        "the sums above u are counted": (
            lambda probs, u: (np.cumsum(probs) >= u).sum()
        ),
        "the probabilities are sorted; a letter keeps its place": (
            lambda probs, u: (np.cumsum(np.sort(probs)[::-1]) < u).sum(),
            lambda probs, u: (np.cumsum(np.sort(probs)) < u).sum(),
        ),
    },
    otherwise="count how many of the sums so far are below u",
)


# 2: what a head takes home


def read(scale=lambda query, keys: len(query) ** 0.5, weigh=softmax):
    """Return an answer with another scale, or other weights."""

    def read_from(query, keys, values):
        return weigh(keys @ query / scale(query, keys)) @ values

    return read_from


def one_query():
    rng = np.random.default_rng(0)
    query, keys = rng.normal(size=4), rng.normal(size=(3, 4))
    return [
        (2 * query, keys, rng.normal(size=(3, 2))),
        (query[:3], keys[:2, :3], rng.normal(size=(2, 5))),
        (1e5 * query, keys, rng.normal(size=(3, 2))),
    ]


check_read_from = Exercise(
    number=2,
    right=read(),
    cases=one_query,
    mistakes={
        "the scores are not divided": read(lambda query, keys: 1),
        "the scores are divided by the width, not by its root": read(
            lambda query, keys: len(query)
        ),
        "the scores are divided by the root of the number of keys": read(
            lambda query, keys: len(keys) ** 0.5
        ),
        "the scores are multiplied by the root": read(
            lambda query, keys: len(query) ** -0.5
        ),
        "the weights are the scores; a softmax is missing": read(
            weigh=lambda scores: scores
        ),
        "the weights do not sum to one; divide by their sum": read(
            weigh=np.exp
        ),
        "the likeliest key gets all the weight": read(
            weigh=lambda scores: np.eye(len(scores))[scores.argmax()]
        ),
        "all values count the same": read(
            weigh=lambda scores: np.ones(len(scores)) / len(scores)
        ),
        "large scores overflow; subtract the largest first": read(
            weigh=lambda scores: np.exp(scores) / np.exp(scores).sum()
        ),
    },
    otherwise="scores over the root of the width, a softmax, times the values",
)


# 3: count


def counted(
    heads=1, tables=1, gates=3, norms=2, last=1, shared=True, layers=True
):
    """Return an answer that counts other parts."""

    def count_numbers(
        vocab_size, num_layers, d_model, num_heads, key_heads, d_ff
    ):
        narrow = d_model // num_heads * key_heads if shared else d_model
        attention = (1 + heads) * d_model**2 + 2 * d_model * narrow
        block = attention + gates * d_model * d_ff + norms * d_model
        blocks = (num_layers if layers else 1) * block
        return tables * vocab_size * d_model + blocks + last * d_model

    return count_numbers


def sizes():
    return [(30, 2, 64, 4, 2, 128), (49152, 30, 576, 9, 3, 1536)]


check_count_numbers = Exercise(
    number=3,
    right=counted(),
    cases=sizes,
    mistakes={
        "keys and values are counted with all heads; they share some": counted(
            shared=False
        ),
        "the table is counted twice; the logits use the same rows": counted(
            tables=2
        ),
        "the table is missing": counted(tables=0),
        "attn_output is missing": counted(heads=0),
        "one of the three matrices of a hidden row is missing": counted(
            gates=2
        ),
        "the norms of the blocks are missing": (
            counted(norms=0),
            counted(norms=0, last=0),
        ),
        "the last norm is missing": counted(last=0),
        "a block has two norms": counted(norms=1),
        "one block is counted, not all": counted(layers=False),
    },
    otherwise="go through __init__ line by line, of Block and of Model",
)
