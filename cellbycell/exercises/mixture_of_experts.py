"""The exercises of *Experts*."""

import numpy as np

from . import Exercise, softmax

# 1: pairs that are served


def serve(chosen, capacity, turns):
    """Serve pairs in turn until their expert is full."""
    found, counts = np.zeros(chosen.shape), np.zeros(chosen.max() + 1, int)
    for t, j in turns:
        found[t, j] = counts[chosen[t, j]] < capacity
        counts[chosen[t, j]] += 1
    return found


def in_turn(chosen, capacity):
    return serve(chosen, capacity, np.ndindex(chosen.shape))


def by_choice(chosen, capacity):
    turns = [(t, j) for j in range(2) for t in range(len(chosen))]
    return serve(chosen, capacity, turns)


def from_the_end(chosen, capacity):
    return serve(chosen, capacity, [*np.ndindex(chosen.shape)][::-1])


def choices():
    for seed, capacity in ((0, 2), (1, 1), (3, 3)):
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(3)[:2] for _ in range(7)]
        yield np.stack(rows), capacity


check_served_pairs = Exercise(
    number=1,
    right=in_turn,
    cases=choices,
    mistakes={
        "first choices go first; later tokens then push earlier ones out": (
            by_choice
        ),
        "one pair too many: count before you serve": lambda chosen, n: in_turn(
            chosen, n + 1
        ),
        "one pair too few": lambda chosen, n: in_turn(chosen, n - 1),
        "the last ones are served, not the first": from_the_end,
        "these are the pairs that are dropped": lambda chosen, n: (
            1 - in_turn(chosen, n)
        ),
        "nothing is dropped": lambda chosen, n: np.ones(chosen.shape),
    },
    otherwise="serve the pairs in turn until their expert is full",
)


# 2: back to the tokens


def pairs_of(rows, order):
    """Return the rows where their pairs are."""
    pairs = np.empty_like(rows)
    pairs[order] = rows
    return pairs


def add(pairs, shares):
    """Return the sum of each token's pairs by their shares, (T, D)."""
    return (pairs.reshape(*shares.shape, -1) * shares[..., None]).sum(1)


def one_addition(rows, order, shares):
    found = np.zeros((len(shares), rows.shape[1]))
    found[order // 2] += rows * shares.flatten()[order, None]
    return found


def slots_first(rows, order, shares):
    slots = pairs_of(rows, order).reshape(*shares.shape, -1).swapaxes(0, 1)
    return add(slots.reshape(rows.shape), shares)


def sorted_rows():
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        chosen = np.stack([rng.permutation(4)[:2] for _ in range(5)])
        order = np.argsort(chosen, None, kind="stable")  # (10,)
        yield rng.normal(size=(10, 3)), order, rng.random((5, 2))


check_put_back = Exercise(
    number=2,
    right=lambda rows, order, shares: add(pairs_of(rows, order), shares),
    cases=sorted_rows,
    mistakes={
        "this is indexed by the order; take its inverse": (
            lambda rows, order, shares: add(rows[order], shares)
        ),
        "the rows are still sorted": lambda rows, order, shares: add(
            rows, shares
        ),
        "the shares are not used": lambda rows, order, shares: add(
            pairs_of(rows, order), np.ones_like(shares)
        ),
        "pair p belongs to token p // count, not p % count": slots_first,
        "of equal indices only one is added": one_addition,
        "this is the mean of the pairs, not their sum": (
            lambda rows, order, shares: add(pairs_of(rows, order), shares) / 2
        ),
        "the shares are sorted, and the rows are not": (
            lambda rows, order, shares: add(
                pairs_of(rows, order),
                shares.flatten()[order].reshape(shares.shape),
            )
        ),
    },
    otherwise="write each row where its pair is, and add by shares",
)


# 3: the balance loss


def load(scores, count):
    """Return how often each expert is chosen, of all tokens, (C,)."""
    best = np.argsort(-scores, -1)[:, :count]
    counts = np.bincount(best.flatten(), minlength=scores.shape[1])
    return counts / len(scores)


def mean(scores, count):
    return softmax(scores).mean(0)


def balance(one=load, two=mean, factor=lambda scores, count: scores.shape[1]):
    """Return an answer that multiplies others, by another factor."""
    return lambda scores, count: (
        factor(scores, count) * (one(scores, count) * two(scores, count)).sum()
    )


def router_scores():
    for seed, count in ((0, 1), (1, 2)):
        scores = np.random.default_rng(seed).normal(size=(6, 4))
        yield scores + np.array([1.5, 0.5, 0, -1]), count


check_balance_of = Exercise(
    number=3,
    right=balance(),
    cases=router_scores,
    mistakes={
        "the factor C is missing": balance(factor=lambda scores, count: 1),
        "the load is a count of choices, not a probability": balance(mean),
        "the mean probability is not the load": balance(two=load),
        "divide by the number of tokens": lambda scores, count: (
            len(scores) * balance()(scores, count)
        ),
        "the softmax runs over the tokens": balance(
            two=lambda scores, count: softmax(scores, 0).mean(0)
        ),
        "scores are no probabilities; take the softmax": balance(
            two=lambda scores, count: scores.mean(0)
        ),
        "divided by the number of choices": lambda scores, count: (
            balance()(scores, count) / count
        ),
        "only first choices are counted": balance(
            lambda scores, count: load(scores, 1)
        ),
    },
    otherwise="C times the sum over experts of load times mean probability",
)


# 4: the bytes of latents


def cache_bytes(length, layers, heads, latent, turned, bits):
    return length * layers * (latent + turned) * bits / 8


check_latent_bytes = Exercise(
    number=4,
    right=cache_bytes,
    cases=lambda: [(100, 61, 128, 512, 64, 16), (7, 2, 6, 10, 4, 4)],
    mistakes={
        "one latent is both key and value; do not count it twice": (
            lambda *given: 2 * cache_bytes(*given)
        ),
        "the rotated part is stored, too": lambda n, y, h, c, r, b: (
            cache_bytes(n, y, h, c, 0, b)
        ),
        "one latent serves all heads": lambda n, y, h, c, r, b: (
            h * cache_bytes(n, y, h, c, r, b)
        ),
        "one rotated part serves all heads": lambda n, y, h, c, r, b: (
            cache_bytes(n, y, h, c, h * r, b)
        ),
        "these are bits; a byte has eight": lambda *given: (
            8 * cache_bytes(*given)
        ),
        "each layer has a cache of its own": lambda n, y, *rest: cache_bytes(
            n, 1, *rest
        ),
        "each token leaves a latent": lambda n, *rest: cache_bytes(1, *rest),
    },
    otherwise="a latent and a rotated part for each token and layer",
)
