"""The chapter on families of decoders: its checkers.

test_exercises.py tries each checker on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")

SLIDING = "sliding_attention"


def by_kind(window=None, base=None, swap=False):
    """Return a reading of a config with a mistake."""

    def read(config):
        rows = []
        for kind in config["layer_types"]:
            if swap:
                others = {*config["layer_types"]} - {kind}
                kind = others.pop()
            own = config["sliding_window"] if kind == SLIDING else 0
            theta = config["rope_parameters"][kind]["rope_theta"]
            rows.append((own if window is None else window, base or theta))
        return rows

    return read


def exchanged_bases(config):
    rows = by_kind()(config)
    return [(window, 1e4 if base == 1e6 else 1e6) for window, base in rows]


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def shares(pick=lambda x, n: np.argsort(-x)[:n], divide="asked", give=None):
    """Return a router with a mistake."""

    def shares_of(scores, count, to_one):
        kept, best = np.zeros_like(scores), pick(scores, count)
        every = softmax(scores)
        kept[best] = every[best] if give is None else give(scores, every, best)
        to_one = to_one if divide == "asked" else divide
        return kept / kept.sum() if to_one else kept

    return shares_of


def in_order(scores, count, to_one):
    right = shares()(scores, count, to_one)
    found = np.zeros_like(scores)
    found[:count] = np.sort(right)[::-1][:count]
    return found


def among_chosen(scores, every, best):
    return softmax(scores[best])


def capped(cap_it, late=False, masked_first=False, mask_it=True, axis=-1):
    """Return weights of attention with a mistake."""

    def weights(scores, cap, mask):
        mask = mask if mask_it else np.ones_like(mask)
        if masked_first:
            return softmax(cap_it(np.where(mask, scores, -np.inf), cap))
        if late:
            return cap_it(softmax(np.where(mask, scores, -np.inf)), cap)
        scores = np.where(mask, cap_it(scores, cap), -np.inf)
        return softmax(scores) if axis == -1 else softmax(scores.T).T

    return weights


def soft(x, cap):
    return cap * np.tanh(x / cap)


def divided(x, cap):
    return soft(x, cap) / soft(x, cap).sum(axis=-1, keepdims=True)


WRONG = {
    "windows_and_bases": {
        "two kinds are exchanged": by_kind(swap=True),
        "full attention has its own": by_kind(base=1e4),
        "windows have their own": by_kind(base=1e6),
        "full attention sees all": by_kind(window=512),
        "no layer has a window": by_kind(window=0),
        "bases are exchanged": exchanged_bases,
        "its window and its base": by_kind(window=511),
    },
    "shares_of": {
        "not divided by their sum": shares(divide=False),
        "to_one is False": [
            shares(divide=True),
            shares(divide=False, give=among_chosen),
        ],
        "every expert is asked": shares(lambda x, n: np.arange(5)),
        "a second time": shares(give=lambda s, e, b: softmax(e[b])),
        "equal shares": shares(give=lambda s, e, b: 1 / len(b)),
        "worst experts": shares(lambda x, n: np.argsort(x)[:n]),
        "order of their size": in_order,
        "take the softmax": shares(divide=False, give=lambda s, e, b: s[b]),
        "keep the best": lambda scores, count, to_one: np.ones(5),
    },
    "capped_weights": {
        "cut at the cap": capped(lambda x, cap: x.clip(-cap, cap)),
        "score of -cap": capped(soft, masked_first=True),
        "after the softmax.": capped(soft, late=True),
        "rows are divided again": capped(divided, late=True),
        "not multiplied": capped(lambda x, cap: np.tanh(x / cap)),
        "not divided by the cap": capped(lambda x, c: c * np.tanh(x)),
        "there is no cap": capped(lambda x, cap: x),
        "mask is missing": capped(soft, mask_it=False),
        "over the queries": capped(soft, axis=0),
        "in this order": lambda scores, cap, mask: scores,
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict
