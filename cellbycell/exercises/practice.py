"""The exercises of *A model at work*."""

import math

import numpy as np

from . import Exercise, as_array

# 1: the pads of a batch

check_pads_needed = Exercise(
    number=1,
    right=lambda lengths: len(lengths) * lengths.max() - lengths.sum(),
    cases=lambda: [
        (np.array(lengths),) for lengths in ([5, 9, 2, 6], [3, 3], [7, 1, 1])
    ],
    mistakes={
        "these are all positions": lambda lengths: (
            len(lengths) * lengths.max()
        ),
        "these are the tokens": lambda lengths: lengths.sum(),
        "this is a share; count the pads": lambda lengths: (
            1 - lengths.mean() / lengths.max()
        ),
        "these are the pads of the shortest sequence": np.ptp,
    },
    otherwise="{} is not the number of pads: all positions, less the tokens",
)


# 2: where an answer is predicted


def positions(test):
    """Return an answer: a test of position, start and end of the answer."""

    def answer_positions(prompt_lengths, answer_lengths):
        behind = prompt_lengths + answer_lengths
        at = np.arange(behind.max())
        return 1 * test(at, prompt_lengths[:, None], behind[:, None])

    return answer_positions


check_answer_positions = Exercise(
    number=2,
    right=positions(lambda t, a, b: (t >= a) & (t < b)),
    cases=lambda: [
        (np.array([3, 1, 4]), np.array([2, 5, 3])),
        (np.array([2, 2]), np.array([1, 4])),
    ],
    mistakes={
        "the first token of the answer is predicted where <start> is read": (
            positions(lambda t, a, b: (t > a) & (t < b))
        ),
        "the prompt is counted": positions(lambda t, a, b: t < b + 0 * a),
        "the pads are counted": positions(lambda t, a, b: t >= a),
        "the ones and the zeros are exchanged": positions(
            lambda t, a, b: (t < a) | (t >= b)
        ),
        "the answer has its <end> already": positions(
            lambda t, a, b: (t >= a) & (t <= b)
        ),
        "the last token of the prompt predicts nothing that counts": positions(
            lambda t, a, b: (t >= a - 1) & (t < b)
        ),
        "the ones begin one position early": positions(
            lambda t, a, b: (t >= a - 1) & (t < b - 1)
        ),
    },
    otherwise="{} (row, position) is wrong",
    reads=lambda found: 1 * as_array(found),
)


# 3: a gradient of parts

check_joint_gradient = Exercise(
    number=3,
    right=lambda gradients, tokens: tokens @ gradients / tokens.sum(),
    cases=lambda: [
        (
            np.random.default_rng(seed).uniform(1, 2, (len(tokens), 3)),
            np.array(tokens),
        )
        for seed, tokens in enumerate(([4, 9, 2], [5, 1]))
    ],
    mistakes={
        "this is divided by batches": lambda g, n: g.mean(axis=0),
        "this is the gradient of a sum": lambda g, n: n @ g,
        "this is not divided at all": lambda g, n: g.sum(axis=0),
        "the means are divided by the tokens of all": lambda g, n: (
            g.sum(axis=0) / n.sum()
        ),
        "this is divided by the parts": lambda g, n: n @ g / len(n),
        "a part with few tokens counts more here": lambda g, n: (
            (1 / n) @ g / (1 / n).sum()
        ),
    },
    otherwise="weigh each part by its share of the tokens",
)


# 4: the least loss


def entropy(mix):
    """Return an answer: a mix of counts, their shares, and the costs."""

    def least_loss(counts):
        share = counts / counts.sum(axis=1, keepdims=True)
        return mix(counts, share, -np.log(np.where(share > 0, share, 1)))

    return least_loss


def of_the_answers(counts, share, cost):
    return (counts * cost).sum() / counts.sum()


def without_question(counts):
    return entropy(of_the_answers)(counts.sum(axis=0, keepdims=True))


def with_logarithm_of_zero(counts):
    share = counts / counts.sum(axis=1, keepdims=True)
    return -(counts * np.log(share)).sum() / counts.sum()


check_least_loss = Exercise(
    number=4,
    right=entropy(of_the_answers),
    cases=lambda: [
        (np.array(counts, float),)
        for counts in ([[3, 1], [4, 0], [1, 1]], [[2, 0, 0], [1, 5, 2]])
    ],
    mistakes={
        "the entropy has a minus in front": entropy(
            lambda *given: -of_the_answers(*given)
        ),
        "this is a logarithm to base 2": entropy(
            lambda *given: of_the_answers(*given) / math.log(2)
        ),
        "a question counts as often as it has rows": entropy(
            lambda counts, share, cost: (share * cost).sum(axis=1).mean()
        ),
        "this is the sum over the rows": entropy(
            lambda counts, share, cost: (counts * cost).sum()
        ),
        "this model does not read the question": without_question,
        "this is a bound of equation (1)": lambda counts: (
            1 - counts.max(axis=1).sum() / counts.sum()
        ),
        "a count of zero has no logarithm; it costs nothing": (
            with_logarithm_of_zero
        ),
    },
    otherwise="{} is not the entropy of the answers, given the question",
)
