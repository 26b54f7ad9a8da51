"""The exercises of *Attention without softmax*."""

import numpy as np

from . import Exercise

# 1: the gated delta rule


def written_by(rule):
    """Return an answer whose rule makes the next state.

    rule: of the state, a key, a value, the factor of the decay, and beta.
    """

    def write_all(keys, values, decays, betas):
        state = np.zeros((keys.shape[1], values.shape[1]))  # (K, V)
        for k, v, g, b in zip(keys, values, decays, betas, strict=True):
            state = rule(state, k, v, np.exp(g), b)
        return state

    return write_all


def out(k, v):
    return np.outer(k, v)


def keys_and_values():
    keys = np.array([[0.6, 0.8, 0.0], [0.0, 0.6, 0.8], [0.8, 0.0, 0.6]])
    values = np.array([[1.0, 2.0], [-1.0, 3.0], [2.0, 0.5]])  # (T, V)
    decays, betas = [-0.3, -0.7, -0.2], [0.9, 0.5, 0.7]
    rest = values, np.array(decays), np.array(betas)
    return [(keys, *rest), (keys / 2, *rest)]


check_write_all = Exercise(
    number=1,
    right=written_by(
        lambda s, k, v, g, b: g * s + out(k, b * (v - k @ (g * s)))
    ),
    cases=keys_and_values,
    mistakes={
        "the error is computed before the fading": written_by(
            lambda s, k, v, g, b: g * s + out(k, b * (v - k @ s))
        ),
        "beta scales the value only; it scales the whole error": written_by(
            lambda s, k, v, g, b: g * s + out(k, b * v - k @ (g * s))
        ),
        "nothing is subtracted; this is a sum with fading": written_by(
            lambda s, k, v, g, b: g * s + out(k, b * v)
        ),
        "the new value fades, too; fade first": written_by(
            lambda s, k, v, g, b: g * (s + out(k, b * (v - k @ s)))
        ),
        "the state does not fade": written_by(
            lambda s, k, v, g, b: s + out(k, b * (v - k @ s))
        ),
        "decays are logarithms; take exp": written_by(
            lambda s, k, v, g, b: (
                np.log(g) * s + out(k, b * (v - k @ (np.log(g) * s)))
            )
        ),
        "beta is not used": written_by(
            lambda s, k, v, g, b: g * s + out(k, v - k @ (g * s))
        ),
        "a key is taken as it is; do not give it the norm one": (
            lambda keys, *rest: check_write_all.right(
                keys / np.linalg.norm(keys, axis=1, keepdims=True), *rest
            )
        ),
    },
    otherwise="fade, subtract what the key reads, and write beta times the "
    "rest",
)


# 2: what is left


def differences(decays):
    """Return the sum of the decays after s up to t, (T, S)."""
    total = decays.cumsum()
    return total[:, None] - total


def left(decays):
    """Return the table; the future is masked before exp."""
    past = np.tri(len(decays), dtype=bool)
    return np.exp(np.where(past, differences(decays), -np.inf))


check_what_is_left = Exercise(
    number=2,
    right=left,
    cases=lambda: [
        (np.array([-0.3, -0.7, -0.2, -0.5]),),
        (np.full(300, -4.0),),
    ],
    mistakes={
        "a token's own decay fades what it writes": lambda g: (
            left(g) * np.exp(g)
        ),
        "the future is not zero": lambda g: np.exp(differences(g)),
        "rows are t and columns s; yours are exchanged": lambda g: left(g).T,
        "these are logarithms; take exp": lambda g: np.tril(differences(g)),
        "where the logarithm is 0 in the future, exp gives 1": lambda g: (
            np.exp(np.tril(differences(g)))
        ),
        "this is what is left at the start, not between s and t": lambda g: (
            np.tril(np.exp(g.cumsum())[:, None] * np.ones(len(g)))
        ),
        "the differences have the wrong sign": lambda g: np.tril(
            np.exp(-differences(g))
        ),
        "with strong decays exp overflows: mask first, then take exp": (
            lambda g: np.exp(differences(g)) * np.tri(len(g))
        ),
    },
    otherwise="take exp of the sum of the decays after s, up to t",
)


# 3: a chunk


def chunk(
    factor=lambda g: np.exp(g.cumsum()), table=left, inside=1, of_state=1
):
    """Return an answer with one part changed.

    factor: of the state, by the decays; table: of the chunk's tokens; inside,
    of_state: what these parts count.
    """

    def read_chunk(query, key, value, decays, state):
        old = factor(decays)[:, None] * (query @ state)
        new = (query @ key.T * table(decays)) @ value
        return of_state * old + inside * new

    return read_chunk


def chunks():
    rng = np.random.default_rng(0)
    shapes = (4, 3), (4, 3), (4, 2)
    query, key, value = map(rng.standard_normal, shapes)
    decays = np.array([-0.3, -0.7, -0.2, -0.5])  # (T,)
    return [(query, key, value, decays, rng.standard_normal((3, 2)))]


check_read_chunk = Exercise(
    number=3,
    right=chunk(),
    cases=chunks,
    mistakes={
        "the state does not fade on its way to a token": chunk(np.ones_like),
        "the state is forgotten": chunk(of_state=0),
        "each token fades the state by its own decay only": chunk(np.exp),
        "tokens of the chunk do not fade": chunk(
            table=lambda g: np.tri(len(g))
        ),
        "the future is read": chunk(table=lambda g: np.exp(differences(g))),
        "only the state is read, and not the chunk": chunk(inside=0),
    },
    otherwise="add what the faded state gives and what the chunk's tokens "
    "give",
)


# 4: parity

check_betas_for = Exercise(
    number=4,
    right=lambda bits: 2 * bits,
    cases=lambda: [(np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1]),)],
    mistakes={
        "with beta = 1 the state is 0, and stays 0": lambda bits: bits,
        "a negative beta triples the state": lambda bits: -2 * bits,
        "a zero changes the sign, too": lambda bits: 2 + 0 * bits,
        "zeros change the sign, and ones do not": lambda bits: 2 - 2 * bits,
        "these are the states; beta comes from a token alone": lambda bits: (
            1 - 2 * (bits.cumsum() % 2)
        ),
        "these are the factors 1 - beta": lambda bits: 1 - 2 * bits,
    },
    otherwise="one beta keeps a state, and another one turns its sign",
)
