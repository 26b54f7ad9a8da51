"""The exercises of *Twenty models, one decoder*."""

import numpy as np

from . import Exercise, softmax

SLIDING, FULL = "sliding_attention", "full_attention"


# 1: windows and bases


def read(window=None, base=None, swap=()):
    """Return an answer that reads a config otherwise.

    window, base: one for all layers; swap: what is that of the other kind,
    "window" and "base".
    """
    other = {SLIDING: FULL, FULL: SLIDING}

    def windows_and_bases(config):
        rows = []
        for kind in config["layer_types"]:
            of_window = other[kind] if "window" in swap else kind
            of_base = other[kind] if "base" in swap else kind
            own = config["sliding_window"] if of_window == SLIDING else 0
            theta = config["rope_parameters"][of_base]["rope_theta"]
            rows.append((own if window is None else window, base or theta))
        return rows

    return windows_and_bases


def configs():
    for pattern in ("sssf", "sfs"):
        bases = {FULL: 1e6, SLIDING: 1e4}
        yield (
            {
                "sliding_window": 512,
                "layer_types": [
                    SLIDING if x == "s" else FULL for x in pattern
                ],
                "rope_parameters": {
                    kind: {"rope_theta": base, "rope_type": "default"}
                    for kind, base in bases.items()
                },
            },
        )


check_windows_and_bases = Exercise(
    number=1,
    right=read(),
    cases=configs,
    mistakes={
        "the two kinds are exchanged": read(swap=("window", "base")),
        "one base for all layers; full attention has its own": read(base=1e4),
        "one base for all layers; windows have their own": read(base=1e6),
        "every layer has a window; full attention sees all": read(window=512),
        "no layer has a window": read(window=0),
        "the bases are exchanged": read(swap=("base",)),
    },
    otherwise="each kind of layer has its window and its base",
)


# 2: the shares of experts


def best(scores, count):
    return np.argsort(-scores)[:count]


def routed(pick=best, share=lambda s, every, i: every[i], to_one=None):
    """Return a router that picks others, or gives other shares.

    share: of the scores, the softmax over all, and who is picked; to_one:
    whether shares are divided by their sum, None for what is asked.
    """

    def shares_of(scores, count, asked_to_one):
        kept, picked = np.zeros_like(scores), pick(scores, count)
        kept[picked] = share(scores, softmax(scores), picked)
        divide = asked_to_one if to_one is None else to_one
        return kept / kept.sum() if divide else kept

    return shares_of


def in_order_of_size(scores, count, to_one):
    found = np.zeros_like(scores)
    found[:count] = np.sort(routed()(scores, count, to_one))[::-1][:count]
    return found


check_shares_of = Exercise(
    number=2,
    right=routed(),
    cases=lambda: [
        (np.array([0.5, 2.0, -1.0, 1.2, 0.1]), count, to_one)
        for count, to_one in ((2, False), (3, True))
    ],
    mistakes={
        "the chosen shares are not divided by their sum": routed(to_one=False),
        "the shares are divided by their sum, or the softmax runs over the "
        "chosen scores only; to_one is False": (
            routed(to_one=True),
            routed(share=lambda s, every, i: softmax(s[i]), to_one=False),
        ),
        "every expert has a share; only the best should": routed(
            lambda scores, count: np.arange(5)
        ),
        "the softmax runs a second time, over the shares": routed(
            share=lambda s, every, i: softmax(every[i])
        ),
        "the chosen experts have equal shares": routed(
            share=lambda s, every, i: 1 / len(i)
        ),
        "the worst experts are chosen": routed(
            lambda scores, count: np.argsort(scores)[:count]
        ),
        "the shares are in the order of their size, not at their experts": (
            in_order_of_size
        ),
        "scores are no shares; take the softmax": routed(
            share=lambda s, every, i: s[i], to_one=False
        ),
    },
    otherwise="softmax over all, keep the best, divide by their sum if to_one",
)


# 3: a cap on the scores


def soft(x, cap):
    return cap * np.tanh(x / cap)


def masked(x, mask):
    return np.where(mask, x, -np.inf)


def capped(cap_it=soft):
    """Return an answer with another cap."""
    return lambda scores, cap, mask: softmax(masked(cap_it(scores, cap), mask))


def after_the_softmax(scores, cap, mask):
    return soft(softmax(masked(scores, mask)), cap)


def over_sums(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


def scores_and_mask():
    scores = 4 * np.random.default_rng(5).standard_normal((4, 4))
    return [(scores, 3.0, np.tri(4, dtype=bool))]


check_capped_weights = Exercise(
    number=3,
    right=capped(),
    cases=scores_and_mask,
    mistakes={
        "the scores are cut at the cap; a soft cap is a tanh": capped(
            lambda x, cap: x.clip(-cap, cap)
        ),
        "the cap comes after the mask, so blocked keys have a score of -cap": (
            lambda scores, cap, mask: softmax(soft(masked(scores, mask), cap))
        ),
        "the cap comes after the softmax": after_the_softmax,
        "the cap comes after the softmax and its rows are divided again": (
            lambda *given: over_sums(after_the_softmax(*given))
        ),
        "the tanh is not multiplied by the cap": capped(
            lambda x, cap: np.tanh(x / cap)
        ),
        "the scores are not divided by the cap": capped(
            lambda x, cap: cap * np.tanh(x)
        ),
        "there is no cap": capped(lambda x, cap: x),
        "the mask is missing": lambda scores, cap, mask: capped()(
            scores, cap, mask | True
        ),
        "the softmax runs over the queries": lambda scores, cap, mask: (
            softmax(masked(soft(scores, cap), mask).T).T
        ),
    },
    otherwise="cap, mask, softmax, in this order",
)
