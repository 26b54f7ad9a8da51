"""The exercises of *The key-value cache*."""

import numpy as np

from . import Exercise


def cache_bytes(num_layers, key_heads, d_head, length, bits=16):
    """Return how many bytes a cache holds: keys and values of all layers."""
    return 2 * num_layers * key_heads * d_head * length * bits // 8


# 1: one step


def attended(query, keys, values, root=2):
    scores = np.array(keys) @ query / root
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ np.array(values)


def step(position=len, new_query=True, new_key=True, root=2, again=False):
    """Return an answer with one thing changed.

    position: of the new token, by the keys; new_query, new_key: whether they
    are turned; root: what divides scores; again: old keys are turned, too.
    """

    def one_step(query, key, value, keys, values, turn):
        at = position(keys)
        query = turn(query, at) if new_query else query
        key = turn(key, at) if new_key else key
        if again:
            keys = [turn(row, s) for s, row in enumerate(keys)]
        return attended(query, [*keys, key], [*values, value], root)

    return one_step


def in_another_order(query, key, value, keys, values, turn):
    at = len(keys)
    keys = [*keys, turn(key, at)]
    return attended(turn(query, at), keys, [value, *values])


def turn(vector, position):
    """Return a vector turned to a position, pair by pair, (K,)."""
    pairs = np.array(vector, dtype="float64").view(complex)  # (C,)
    turned = pairs * np.exp(position * np.array([1j, 0.01j]))  # (C,)
    return turned.view(float)


def step_cases():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(5, 4))  # (S, K)
    values = rng.normal(size=(5, 3))  # (S, V)
    query = 2 * rng.normal(size=4)  # (K,)
    past = np.array([turn(row, s) for s, row in enumerate(plain[:4])])
    yield query, plain[4], values[4], past, values[:4], turn


check_one_step = Exercise(
    number=1,
    right=step(),
    cases=step_cases,
    mistakes={
        "the new token is not turned, or by position 0; count the cache": step(
            lambda keys: 0
        ),
        "the new query is not turned, only its key": step(new_query=False),
        "the new key is not turned, only its query": step(new_key=False),
        "positions count from 0, so the new one is S, not S + 1": step(
            lambda keys: len(keys) + 1
        ),
        "the keys of the cache are turned again; they are already": step(
            again=True
        ),
        "the new token does not see itself": (
            lambda query, key, value, keys, values, turn: attended(
                turn(query, len(keys)), keys, values
            )
        ),
        "it sees the first key only: one row of a whole mask": (
            lambda query, key, value, keys, values, turn: values[0]
        ),
        "keys and values are not in the same order": in_another_order,
        "divide the scores by the square root of the width": step(root=1),
    },
    faults={"larger dtype": "turn query and key, (K,), and not the value"},
    otherwise="turn query and key by S, append key and value, and attend",
)


# 2: how many tokens fit


def fit(scale=1.0, count=np.floor):
    """Return an answer that is scaled, or counted in another way."""

    def tokens_that_fit(memory, num_layers, key_heads, d_head, bits):
        one = cache_bytes(num_layers, key_heads, d_head, 1, bits)
        return count(scale * memory / one)

    return tokens_that_fit


check_tokens_that_fit = Exercise(
    number=2,
    right=fit(),
    cases=lambda: [(10**7, 32, 8, 64, 16), (10**7, 5, 3, 64, 8)],
    mistakes={
        "a part of a token does not fit; round down": fit(count=float),
        "it is rounded up; the last token does not fit": fit(count=np.ceil),
        "only keys are counted, and values are kept as well": fit(2),
        "these are bits; eight of them are a byte": fit(1 / 8),
        "each layer keeps its own keys and values": lambda m, n, h, w, b: (
            fit()(m, 1, h, w, b)
        ),
        "each key head keeps its own keys and values": lambda m, n, h, w, b: (
            fit()(m, n, 1, w, b)
        ),
    },
    otherwise="divide the memory by the bytes of one token",
)


# 3: a ring


def ring(count, slots, window):
    """Return the position in each of the first slots, (W,)."""
    held = np.full(slots, -1)
    for position in range(count):
        held[position % slots] = position
    return held[:window]


check_in_ring = Exercise(
    number=3,
    right=lambda n, w: ring(n, w, w),
    cases=lambda: [(10, 4), (11, 5), (3, 5)],
    mistakes={
        "these are sorted; nothing is moved in a ring": lambda n, w: np.arange(
            n - w, n
        ),
        "these are slots, or rows kept, not positions": lambda n, w: np.arange(
            w
        ),
        "the ring has W slots, not W + 1": lambda n, w: ring(n, w + 1, w),
        "positions count from 0, so the last is count - 1": lambda n, w: ring(
            n + 1, w, w
        ),
        "positions count from 0, not from 1": lambda n, w: ring(n, w, w) + 1,
        "the last token is missing": lambda n, w: ring(n - 1, w, w),
        "an empty slot is -1": lambda n, w: ring(n, w, w).clip(min=0),
    },
    otherwise="slot p % W holds the last position that was written there",
)
