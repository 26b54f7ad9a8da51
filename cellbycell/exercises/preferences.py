"""The exercises of *Learn from your own text*."""

import numpy as np

from . import Exercise

# 1: the advantages of groups


def against(divide=True, own=False, whole=False, turned=False, sign=1):
    """Return an answer that compares with something else.

    divide: by size - 1, not by size; own: the mean has one's own reward;
    whole: all are one group; turned: rows of groups lie the other way round.
    """

    def group_advantages(rewards, size):
        groups = rewards.reshape(-1, len(rewards) if whole else size)
        if turned:
            groups = rewards.reshape(size, -1).T
        count = groups.shape[-1]
        others = groups.sum(-1, keepdims=True) - (0 if own else groups)
        mean = others / (count if own or not divide else count - 1)
        found = sign * (groups - mean)
        return (found.T if turned else found).ravel()

    return group_advantages


def scaled(rewards, size):
    """Divide by the deviation, as GRPO's paper does."""
    groups = rewards.reshape(-1, size)
    return against()(rewards, size) / groups.std(-1, ddof=1).repeat(size)


check_group_advantages = Exercise(
    number=1,
    right=against(),
    cases=lambda: [
        (np.array([1.0, 0, 0, 0]), 4),
        (np.array([1.0, 0, 2, 3, 3, 1]), 3),
        (np.array([0.0, 1, 5, 2, 4, 4, 1, 0]), 2),
    ],
    mistakes={
        "one's own reward is in the mean": against(own=True),
        "there are size - 1 others": against(divide=False),
        "each group has a mean of its own": (
            against(whole=True),
            against(whole=True, own=True),
        ),
        "the rewards of a group stand side by side": (
            against(turned=True),
            against(turned=True, own=True),
        ),
        "a reward above the mean is an advantage": against(sign=-1),
        "nothing is divided by the deviation here": scaled,
        "these are the rewards": lambda rewards, size: rewards,
    },
    otherwise="a reward, less the mean of the others in its group",
)


# 2: what a reward was


def backwards(power=1, first=True, start=True, sign=1):
    """Return an answer that reads equation (3) otherwise."""

    def reward_of(q, p, beta):
        found = sign * beta**power * np.log(q / p if start else q)
        return found - found[0] if first else found

    return reward_of


def powers(q, p, beta):
    """Leave the logarithm out."""
    found = beta * q / p
    return found - found[0]


check_reward_of = Exercise(
    number=2,
    right=backwards(),
    cases=lambda: [
        (np.array([0.5, 0.5]), np.array([0.8, 0.2]), 2.0),
        (np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3]), 0.5),
    ],
    mistakes={
        "the first text's reward is 0": backwards(first=False),
        "the start counts: divide q by p": backwards(start=False),
        "beta multiplies the logarithm": (backwards(-1), backwards(0)),
        "what got likelier had the greater reward": backwards(sign=-1),
        "take the logarithm": powers,
    },
    otherwise="beta log(q / p), less that of the first text",
)


# 3: the slope of a pair


def slope(out=-1, inside=1, price=True, start=True, power=1):
    """Return an answer that differentiates equation (5) otherwise."""

    def pair_slope(won, lost, won_before, lost_before, beta):
        margin = won - lost
        if start:
            margin = margin - (won_before - lost_before)
        scale = beta if price else 1.0
        return out * scale**power / (1 + np.exp(inside * beta * margin))

    return pair_slope


check_pair_slope = Exercise(
    number=3,
    right=slope(),
    cases=lambda: [
        (*np.array([[-5.0], [-9.0], [-6.0], [-8.0]]), 0.5),
        (
            np.array([-3.0, -20.0]),
            np.array([-7.0, -12.0]),
            np.array([-4.0, -18.0]),
            np.array([-3.0, -14.0]),
            0.1,
        ),
    ],
    mistakes={
        "the loss falls when the winner rises: the slope is negative": slope(
            out=1
        ),
        "a pair that is told apart pulls less, not more": (
            slope(inside=-1),
            slope(out=1, inside=-1),
        ),
        "beta comes out of the logarithm, too": slope(price=False),
        "the margin is counted from the start": slope(start=False),
        "beta comes out once": slope(power=2),
    },
    otherwise="-beta sigma(-beta margin)",
)


# 4: who still pulls


def pulls(up=1, down=1, both=False, lost=True, zero=False):
    """Return an answer that clips elsewhere.

    both: on either side, whatever the advantage; lost: those that lost are
    clipped, too; zero: no advantage pulls as well.
    """

    def still_pulls(ratio, advantage, clip):
        low, high = ratio > 1 - clip, ratio < 1 + clip
        if both:
            return low & high & (advantage != 0)
        won = (advantage >= 0 if zero else advantage > 0) & high
        down = low if lost else np.ones_like(low)
        return won | ((advantage < 0) & down)

    return still_pulls


def turned_round(ratio, advantage, clip):
    """Clip on the side from which the advantage leads."""
    return pulls()(ratio, -advantage, clip)


check_still_pulls = Exercise(
    number=4,
    right=pulls(),
    cases=lambda: [
        (
            np.array([0.5, 0.9, 1.1, 1.5, 0.5, 0.9, 1.1, 1.5, 1.0]),
            np.array([1.0, 1, 1, 1, -1, -1, -1, -1, 0]),
            0.2,
        ),
        (np.array([0.7, 1.25, 1.4]), np.array([-2.0, 3, 3]), 0.3),
    ],
    mistakes={
        "only the side where the advantage leads is clipped": pulls(both=True),
        "it is the other side that is clipped": turned_round,
        "those that lost are clipped below 1 - clip": pulls(lost=False),
        "without an advantage nothing pulls": pulls(zero=True),
    },
    otherwise="won and below 1 + clip, or lost and above 1 - clip",
)
