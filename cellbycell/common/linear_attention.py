"""Attention without softmax: its common part, for what comes after it.

Built and explained in the chapter *Attention without softmax* of the book.
Written by `make package`: change it in the chapter.
"""

from types import SimpleNamespace

import numpy as np


def recall_rows(count, seed, things=8):
    """Return texts of 2 writings and a question a thing, and the answers.

    Ids (B, 4 * things): 9 * thing + colour for a writing, 9 * thing + 8 for a
    question, 0 to 7 for an answer.
    """
    rng = np.random.default_rng(seed)
    once = np.tile(np.arange(things), (count, 1))  # (B, C)
    again = rng.integers(things, size=(count, things))  # (B, C)
    order = rng.permuted(np.hstack([once, again]), axis=1)  # (B, T)
    colours = rng.integers(8, size=order.shape)
    last, texts = np.zeros((count, things), int), np.arange(count)
    for t in range(2 * things):  # what is written later stays
        last[texts, order[:, t]] = colours[:, t]
    asked = rng.permuted(once, axis=1)  # (B, C)
    answers = np.take_along_axis(last, asked, axis=1)  # (B, C)
    return np.hstack([9 * order + colours, 9 * asked + 8, answers])


def switches(config):
    """Return what norms and network of *Twenty models* have to know."""
    return SimpleNamespace(
        centred=False,
        scale_offset=1.0,  # norms store w of 1 + w
        epsilon=config.rms_norm_eps,
        biases=(),
        activation="silu",
    )
