"""What an answer may be, and what is said of what is no answer."""

import numpy as np
import pytest

from cellbycell.exercises.embedding import (
    check_frequent_vocabulary,
    check_strict_lookup,
    check_table_gradient,
)
from cellbycell.exercises.position_similarity import (
    check_mean_cosine,
    check_norm_of_mean,
)

pytestmark = pytest.mark.xdist_group("frameworks")


def gradient_torch(token_ids, upstream, vocab_size):
    import torch

    table = torch.zeros(vocab_size, upstream.shape[1], requires_grad=True)
    (table[torch.tensor(token_ids)] * torch.tensor(upstream)).sum().backward()
    return table.grad.requires_grad_()


def gradient_tf(token_ids, upstream, vocab_size):
    import tensorflow as tf

    return tf.math.unsorted_segment_sum(upstream, token_ids, vocab_size)


def frequent_numpy(tokens, min_count):
    kept, counts = np.unique(tokens, return_counts=True)
    entries = ["<pad>", "<unk>", *kept[counts >= min_count]]
    return dict(zip(entries, np.arange(len(entries)), strict=True))


def lookup_bfloat16(token_ids, table):
    import tensorflow as tf

    return tf.cast(check_strict_lookup.right(token_ids, table), "bfloat16")


def norm_bfloat16(offset, d_model):
    import torch

    norm = check_norm_of_mean.right(offset, d_model)
    return torch.tensor(norm, dtype=torch.bfloat16)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (check_norm_of_mean, norm_bfloat16),
        (
            check_mean_cosine,
            lambda *x: np.float32(check_mean_cosine.right(*x)),
        ),
        (check_frequent_vocabulary, frequent_numpy),
        (check_strict_lookup, lookup_bfloat16),
        (check_table_gradient, gradient_torch),
        (check_table_gradient, gradient_tf),
    ],
)
def test_an_answer_may_be_in_either_framework(check, answer):
    assert check(answer).endswith(": correct.")


def in_two_lines(*given):
    raise ValueError("one\ntwo")


@pytest.mark.parametrize(
    ("says", "answer"),
    [
        ("your function raises ValueError: one.", in_two_lines),
        (
            "it returns a list that is no array of numbers.",
            lambda *given: [[1], [1, 2]],
        ),
        ("it returns complex, not numbers.", lambda *given: 1j),
        (
            "it returns a tuple; return the one that is asked for.",
            lambda *given: (np.eye(7), np.ones(2)),
        ),
        (
            "NaN or infinity is returned.",
            lambda *given: np.full((6, 2), np.inf),
        ),
        ("the shape is (7,) instead of (6, 2).", lambda *given: np.ones(7)),
    ],
)
def test_what_is_no_array_of_the_right_shape_is_named(says, answer):
    assert check_table_gradient(answer) == f"Exercise 4: {says}"


def test_an_answer_cannot_change_what_it_is_compared_with():
    def spoiling(token_ids, upstream, vocab_size):
        found = np.zeros((vocab_size, upstream.shape[1]))
        found[token_ids] = upstream
        token_ids[:], upstream[:] = 0, 0
        return found

    assert "only the last position" in check_table_gradient(spoiling)
