"""The exercises of *Experts*."""

import numpy as np

from . import Exercise, softmax

# 1: the bytes that a batch reads


def read(experts, count, tokens, size, rest):
    """Return the bytes of the experts that are asked, and of the rest."""
    return experts * (1 - (1 - count / experts) ** tokens) * size + rest


check_bytes_read = Exercise(
    number=1,
    right=read,
    cases=lambda: [(256, 8, 64, 3, 1000), (8, 2, 3, 10, 7), (16, 1, 5, 4, 9)],
    mistakes={
        "this is what one token reads": lambda e, k, n, size, rest: read(
            e, k, 1, size, rest
        ),
        "an expert that several tokens ask is read once": (
            lambda e, k, n, size, rest: n * k * size + rest
        ),
        "a batch cannot read more experts than there are, and even choices "
        "overlap before that": lambda e, k, n, size, rest: (
            min(e, n * k) * size + rest
        ),
        "some experts are asked by nobody": lambda e, k, n, size, rest: (
            e * size + rest
        ),
        "the rest is read once, not for each token": (
            lambda e, k, n, size, rest: read(e, k, n, size, n * rest)
        ),
        "the other weights are read, too": lambda e, k, n, size, rest: read(
            e, k, n, size, 0
        ),
        "these are the experts that nobody asks": (
            lambda e, k, n, size, rest: e * (1 - k / e) ** n * size + rest
        ),
    },
    otherwise="experts that are asked times their bytes, and the rest once",
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


# 4: a bias for the choice


def row(chosen, kept, to_one=True):
    """Return a row with what is kept of the chosen ones, and zeros."""
    found = np.zeros(len(kept))
    found[chosen] = kept[chosen] / (kept[chosen].sum() if to_one else 1)
    return found


def best(wish, count):
    return np.argsort(-wish)[:count]


def sigmoids():
    for seed, count in ((0, 2), (1, 1), (2, 3)):
        rng = np.random.default_rng(seed)
        yield rng.random(5), rng.normal(size=5), count


check_shares_with_bias = Exercise(
    number=4,
    right=lambda probs, bias, count: row(best(probs + bias, count), probs),
    cases=sigmoids,
    mistakes={
        "the bias is also in the shares": lambda probs, bias, count: row(
            best(probs + bias, count), probs + bias
        ),
        "the bias is missing in the choice": lambda probs, bias, count: row(
            best(probs, count), probs
        ),
        "the shares of the chosen ones sum to one": (
            lambda probs, bias, count: row(
                best(probs + bias, count), probs, to_one=False
            )
        ),
        "these are the worst, not the best": lambda probs, bias, count: row(
            best(-probs - bias, count), probs
        ),
        "experts that are not chosen get zero": lambda probs, bias, count: (
            probs / probs[best(probs + bias, count)].sum()
        ),
        "the bias is taken off, not added": lambda probs, bias, count: row(
            best(probs - bias, count), probs
        ),
        "sigmoids are divided by their sum, without a softmax": (
            lambda probs, bias, count: row(
                best(probs + bias, count), softmax(probs)
            )
        ),
    },
    otherwise="choose by probs + bias; divide what probs says of the chosen",
)
