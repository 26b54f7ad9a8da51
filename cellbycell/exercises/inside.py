"""The exercises of *Look inside a real model*."""

import numpy as np

from . import Exercise, softmax

# 1: who looks back


def diagonal(weights, offset=-1):
    """Return the mean of a diagonal of each head."""
    return np.diagonal(weights, offset, 1, 2).mean(-1)


def looks():
    for seed, shape in ((0, (2, 5, 5)), (1, (3, 4, 4))):
        scores = np.random.default_rng(seed).normal(size=shape) * 2
        seen = np.tri(shape[-1], dtype=bool)
        yield (softmax(np.where(seen, scores, -np.inf)),)


check_previous_score = Exercise(
    number=1,
    right=diagonal,
    cases=looks,
    mistakes={
        "this is the weight on the token itself; go one below": (
            lambda weights: diagonal(weights, 0)
        ),
        "this is the token after, which a causal mask blocks": (
            lambda weights: diagonal(weights, 1)
        ),
        "this is the token two before": lambda weights: diagonal(weights, -2),
        "the first row has no token before it; leave it out of the mean": (
            lambda weights: (
                np.diagonal(weights, -1, 1, 2).sum(-1) / weights.shape[1]
            )
        ),
        "this is the mean over the heads; each head has a score": (
            lambda weights: np.diagonal(weights, -1, 1, 2).mean(0)
        ),
        "this is the weight on the first token": (
            lambda weights: weights[:, 1:, 0].mean(-1)
        ),
        "take the mean over the tokens, too": (
            lambda weights: np.diagonal(weights, -1, 1, 2)
        ),
    },
    otherwise="take the mean of the diagonal below the main one",
)


# 2: the mean instead


def replaced(x, head, by):
    """Return x with a head replaced."""
    x = x.copy()
    x[:, :, head] = by(x[:, :, head])
    return x


def given_heads():
    for seed, head in ((0, 1), (1, 0)):
        x = np.random.default_rng(seed).normal(size=(3, 4, 2, 5))
        yield x, head


def all_heads(x, head):
    return np.broadcast_to(x.mean(0), x.shape)


check_mean_instead = Exercise(
    number=2,
    right=lambda x, head: replaced(x, head, lambda y: y.mean(0)),
    cases=given_heads,
    mistakes={
        "these are zeros; take the mean": lambda x, head: replaced(
            x, head, np.zeros_like
        ),
        "this is the mean over tokens, too; keep each token's own": (
            lambda x, head: replaced(x, head, lambda y: y.mean((0, 1)))
        ),
        "this is the mean over tokens; take it over prompts": (
            lambda x, head: replaced(
                x, head, lambda y: y.mean(1, keepdims=True)
            )
        ),
        "this is the mean of all numbers of the head": (
            lambda x, head: replaced(x, head, np.mean)
        ),
        "all heads are replaced; leave the others alone": all_heads,
        "this is the mean of the other heads": lambda x, head: replaced(
            x, head, lambda y: np.delete(x, head, 2).mean(2)
        ),
        "this is unchanged": lambda x, head: x,
    },
    otherwise="replace the head, and nothing else, by its mean over prompts",
)


# 3: who may be a control


def silenced_heads():
    chosen = np.zeros((4, 3), bool)
    chosen[1, 2] = chosen[3, 0] = True
    full = np.zeros((3, 2), bool)
    full[0] = full[2, 1] = True
    return [(chosen,), (full,)]


check_candidates_for = Exercise(
    number=3,
    right=lambda chosen: chosen.any(-1, keepdims=True) & ~chosen,
    cases=silenced_heads,
    mistakes={
        "the chosen heads themselves are no control": (
            lambda chosen: chosen.any(-1, keepdims=True) | chosen
        ),
        "heads of other layers are in it, too": lambda chosen: ~chosen,
        "these are the heads of the other layers": (
            lambda chosen: (
                ~chosen.any(-1, keepdims=True) & np.ones_like(chosen)
            )
        ),
        "this goes by the head's number, not by its layer": (
            lambda chosen: chosen.any(0, keepdims=True) & ~chosen
        ),
        "these are the chosen heads": lambda chosen: chosen,
        "the layers are right, and the heads have no axis of their own": (
            lambda chosen: chosen.any(-1)
        ),
    },
    otherwise="mark the heads that are not chosen, in layers that have some",
)


# 4: find the honey


LAYERS = 7


def toy(good, bad, at):
    """Return a finish that gives word 1, by what is exchanged.

    For the last row from layer `at` on, for the first from 4 on, for none
    from 5 on, and for the good prompt itself always.
    """

    def finish(layer, x):
        x, ours, theirs = np.asarray(x), good[layer], bad[layer]
        start = LAYERS
        if x.shape == ours.shape and np.allclose(x, ours):
            start = 0
        elif np.allclose(x[:-1], theirs[:-1]):
            start = at if np.allclose(x[-1], ours[-1]) else 5
        elif np.allclose(x[1:], theirs[1:]):
            start = 4
        return np.array([0.5, float(layer >= start), 0.2])

    return finish


def honey():
    for seed, lengths, at in ((0, (4, 6), 2), (1, (5, 5), 1)):
        rng = np.random.default_rng(seed)
        good, bad = (
            [rng.normal(size=(n, 4)) for _ in range(LAYERS)] for n in lengths
        )
        yield toy(good, bad, at), good, bad, 1


def cross(finish, good, bad, word, place=-1, turn=1):
    """Return the first layer that gives the word, or the last."""
    for layer in range(LAYERS)[::turn]:
        x = bad[layer].copy()
        if place is not None:
            x[place] = good[layer][place]
        if finish(layer, x).argmax() == word:
            return layer
    return None


check_crossing = Exercise(
    number=4,
    right=cross,
    cases=honey,
    mistakes={
        "this is one layer late": lambda *given: cross(*given) + 1,
        "this is the last layer that gives the word": lambda *given: cross(
            *given, turn=-1
        ),
        "the first token is exchanged; take the last": lambda *given: cross(
            *given, place=0
        ),
        "nothing is exchanged; put the good prompt's last row in": (
            lambda *given: cross(*given, place=None)
        ),
        "this is the good prompt itself; begin with the bad one": (
            lambda finish, good, bad, word: cross(finish, good, good, word)
        ),
    },
    otherwise="exchange the last row alone, layer by layer from 0 on",
)
