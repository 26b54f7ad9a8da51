"""The checkers of the chapter on masks: what they accept and what they say.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("masks")


# Wrong answers: exercise, what the verdict has to say, the answer.


def triangle(n):
    return n * (n + 1) // 2


def window(allowed):
    """Return an answer that allows what allowed(steps back, window) says."""

    def mask(seq_len, width):
        places = np.arange(seq_len)
        return allowed(places[:, None] - places, width)

    return mask


def packed(allowed):
    """Return an answer: allowed(same text, not in the future, a word)."""

    def mask(text_ids):
        same = text_ids[:, :, None] == text_ids[:, None, :]
        past = np.tri(text_ids.shape[1]) > 0
        return allowed(same, past, (text_ids != 0)[:, None, :])

    return mask


def itself(mask):
    return mask | np.eye(mask.shape[-1], dtype=bool)


def multiplied_mean(vectors, key_mask):
    counts = np.maximum(key_mask.sum(1), 1)
    return (vectors * key_mask[..., None]).sum(1) / counts[:, None]


def mean_by_counts(vectors, key_mask):
    kept = np.where(key_mask[..., None], vectors, 0)
    return kept.sum(1) / key_mask.sum(1)[:, None]


def where_words(reduce):
    """Return an answer that reduces the vectors with zeros for the pads."""

    def mean(vectors, key_mask):
        return reduce(np.where(key_mask[..., None], vectors, 0))

    return mean


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def renormalised(scores, mask):
    kept = softmax(scores) * mask
    total = kept.sum(-1, keepdims=True)
    return kept / np.where(mask.any(-1, keepdims=True), total, 1)


def over_queries(scores, mask):
    e = np.exp(scores) * mask
    return e / e.sum(0)


def no_maximum(scores, mask):
    e = np.exp(scores) * mask
    return e / e.sum(-1, keepdims=True)


WRONG = [
    ("count_pairs", "pads block keys", lambda n, size: triangle(size)),
    ("count_pairs", "padding mask alone", lambda n, size: n * size),
    ("count_pairs", "rows of pads are not", lambda n, size: triangle(n)),
    (
        "count_pairs",
        "pairs that are blocked",
        lambda n, size: size * size - triangle(n) - (size - n) * n,
    ),
    (
        "count_pairs",
        "the diagonal is missing",
        lambda n, size: triangle(n) + (size - n) * n - n,
    ),
    ("count_pairs", "4 for 2 words in 5, not 9", lambda n, size: n * n),
    ("window_mask", "bool of (3,)", lambda T, w: np.ones(3, bool)),
    (
        "window_mask",
        "float64 of (7, 7)",
        window(lambda back, w: 1.0 * (back < w)),
    ),
    (
        "window_mask",
        "True means may attend",
        window(lambda back, w: (back < 0) | (back >= w)),
    ),
    (
        "window_mask",
        "does not see itself",
        window(lambda back, w: (back > 0) & (back <= w)),
    ),
    (
        "window_mask",
        "one place too many",
        window(lambda back, w: (back >= 0) & (back <= w)),
    ),
    (
        "window_mask",
        "one place too few",
        window(lambda back, w: (back >= 0) & (back < w - 1)),
    ),
    (
        "window_mask",
        "also sees the future",
        window(lambda back, w: abs(back) < w),
    ),
    (
        "window_mask",
        "rows are queries",
        window(lambda back, w: (back <= 0) & (back > -w)),
    ),
    (
        "window_mask",
        "far past is not blocked",
        window(lambda back, w: back >= 0),
    ),
    ("window_mask", "row 5 should", window(lambda back, w: back < w)),
    (
        "packed_mask",
        "int64 of (2, 7, 7)",
        packed(lambda same, past, word: 1 * same),
    ),
    (
        "packed_mask",
        "True means may attend",
        packed(lambda same, past, word: ~itself(same & past & word)),
    ),
    (
        "packed_mask",
        "sees the texts before it",
        packed(lambda same, past, word: itself(past & word)),
    ),
    (
        "packed_mask",
        "sees the future of its text",
        packed(lambda same, past, word: itself(same & word)),
    ),
    (
        "packed_mask",
        "sees the pads before it",
        packed(lambda same, past, word: same & past),
    ),
    (
        "packed_mask",
        "pads' rows are blind",
        packed(lambda same, past, word: same & past & word),
    ),
    (
        "packed_mask",
        "rows are queries",
        packed(lambda same, past, word: itself(same & past.T & word)),
    ),
    (
        "packed_mask",
        "some pairs are wrong",
        packed(lambda same, past, word: itself(same & ~same)),
    ),
    ("mean_of_words", "pads are in the mean", lambda x, mask: x.mean(1)),
    (
        "mean_of_words",
        "all places instead",
        where_words(lambda kept: kept.mean(1)),
    ),
    (
        "mean_of_words",
        "this is the sum",
        where_words(lambda kept: kept.sum(1)),
    ),
    (
        "mean_of_words",
        "mean is (2.5, 3.5, 4.5)",
        where_words(lambda kept: kept.sum((0, 1)) / 5),
    ),
    ("mean_of_words", "nan at a pad gets through", multiplied_mean),
    ("mean_of_words", "no zeros without words", mean_by_counts),
    (
        "masked_softmax",
        "the mask has no effect",
        lambda scores, mask: softmax(scores),
    ),
    (
        "masked_softmax",
        "masked after the softmax",
        lambda scores, mask: softmax(scores) * mask,
    ),
    ("masked_softmax", "sum runs over the queries", over_queries),
    (
        "masked_softmax",
        "three small rows",
        lambda scores, mask: softmax(np.where(mask, scores, 0)),
    ),
    ("masked_softmax", "large scores fail", no_maximum),
    ("masked_softmax", "large scores fail", renormalised),
    (
        "masked_softmax",
        "a blind row gets nan",
        lambda scores, mask: softmax(np.where(mask, scores, -np.inf)),
    ),
    (
        "masked_softmax",
        "a blind row gets 0.33",
        lambda scores, mask: softmax(np.where(mask, scores, -1e9)),
    ),
]


@pytest.mark.parametrize(("name", "says", "answer"), WRONG)
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert says in book[f"check_{name}"](answer)


# A reader answers in the framework that they know.


def softmax_torch(scores, mask):
    import torch

    mask = torch.from_numpy(mask)
    some = mask.any(-1, keepdim=True)
    kept = torch.from_numpy(scores).masked_fill(~mask & some, -torch.inf)
    return torch.where(some, kept.softmax(-1), 0.0)


def softmax_tf(scores, mask):
    import tensorflow as tf

    some = mask.any(-1, keepdims=True)
    kept = tf.where(mask | ~some, scores, -np.inf)
    return tf.where(some, tf.nn.softmax(kept), 0.0)


@pytest.mark.parametrize("answer", [softmax_torch, softmax_tf])
def test_answers_in_either_framework_are_accepted(book, answer):
    assert book["check_masked_softmax"](answer) == "Exercise 5: correct."


# What the chapter's functions do at the edges.


def test_places_are_counted_in_words_wherever_the_padding_stands(book):
    import torch

    words = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]
    places = [[0, 0, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]]
    found = book["count_places"](torch.tensor(words) > 0)
    found_tf = book["count_places_tf"](np.array(words) > 0)
    assert found.tolist() == places == found_tf.numpy().tolist()


def test_a_blind_row_of_one_place_is_zero(book):
    import tensorflow as tf
    import torch

    one = torch.ones(1, 1, 1)
    blind = torch.zeros(1, 1, 1, dtype=torch.bool)
    output, weights = book["attend_or_zero"](one, one, one, blind)
    output_tf, weights_tf = book["attend_or_zero_tf"](
        *[tf.ones((1, 1, 1))] * 3, tf.zeros((1, 1, 1), tf.bool)
    )
    for found in (output, weights, output_tf, weights_tf):
        assert np.array_equal(found, [[[0]]])


def test_what_stands_at_a_pad_never_reaches_the_mean(book):
    import tensorflow as tf
    import torch

    values, words = [1.0, np.nan], [True, False]
    found = book["masked_mean"](torch.tensor(values), torch.tensor(words))
    found_tf = book["masked_mean_tf"](tf.constant(values), tf.constant(words))
    assert float(found) == float(found_tf) == 1
