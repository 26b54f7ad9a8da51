"""The checkers of the first chapter: what they accept, and what they say.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math
from collections import Counter

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("embedding")


# Wrong answers: exercise, the verdict, the answer.


def frequent(words, min_count):
    """Return the frequent words, repeated as in the text."""
    return [word for word in words if words.count(word) >= min_count]


def numbered(words, **specials):
    """Return the special entries, then the words numbered from two."""
    entries = {f"<{name}>": token_id for name, token_id in specials.items()}
    return entries | {word: i for i, word in enumerate(words, 2)}


def only_upper_end(token_ids, table):
    if max(token_ids) >= len(table):
        raise ValueError(f"no row {max(token_ids)}")
    return table[token_ids]


def without_the_id(token_ids, table):
    if min(token_ids) < 0 or max(token_ids) >= len(table):
        raise ValueError("there is an id without a row")
    return table[token_ids]


def zeros_for_no_id(token_ids, table):
    columns = np.arange(len(table))
    return (token_ids[:, None] == columns) @ table


def from_the_end(token_ids, table):
    if max(token_ids) >= len(table) or min(token_ids) == -1:
        raise ValueError(f"no rows {token_ids}")
    return table[token_ids]


def refuses_the_next(token_ids, table):
    if len(table) in token_ids:
        raise ValueError(f"no row {len(table)}")
    return table[np.clip(token_ids, 0, len(table) - 1)]


def moved_to_the_first(token_ids, table):
    return only_upper_end(np.maximum(token_ids, 0), table)


def spoilt(row, number):
    """Return an answer that is right but for one row."""

    def gradient(token_ids, upstream, vocab_size):
        grad = np.eye(vocab_size)[token_ids].T @ upstream
        grad[row] = number
        return grad

    return gradient


def ones_tf(token_ids, upstream, vocab_size):
    import tensorflow as tf

    return tf.ones((vocab_size, upstream.shape[1]))


def overwritten(token_ids, upstream, vocab_size):
    grad = np.zeros((vocab_size, upstream.shape[1]))
    grad[token_ids] += upstream
    return grad


def first_place_only(token_ids, upstream, vocab_size):
    return overwritten(token_ids[::-1], upstream[::-1], vocab_size)


def averaged(token_ids, upstream, vocab_size):
    grad = np.eye(vocab_size)[token_ids].T @ upstream
    for token_id, count in Counter(token_ids).items():
        grad[token_id] /= count
    return grad


def drawn(std, zero_row=7):
    """Return an answer that draws with a standard deviation of std(d).

    zero_row: which row is zero, or which rows are; None for no row.
    """

    def table(vocab_size, d_model, pad_id, seed):
        rng = np.random.default_rng(seed)
        rows = std(d_model) * rng.standard_normal((vocab_size, d_model))
        if zero_row is not None:
            rows[zero_row] = 0
        return rows

    return table


def all_the_same(vocab_size, d_model, pad_id, seed):
    table = np.full((vocab_size, d_model), (2 * d_model) ** -0.5)
    table[pad_id] = 0
    return table


WRONG = [
    (
        "pad_share",
        (
            "Exercise 1: you believe that zero rows are ignored; a score of 0"
            " has the weight exp(0) = 1."
        ),
        lambda n, size: 0.0,
    ),
    (
        "pad_share",
        "Exercise 1: this is the share of the words, not of padding.",
        lambda n, size: n / size,
    ),
    (
        "pad_share",
        "Exercise 1: a share is at most 1; divide by all places.",
        lambda n, size: size - n,
    ),
    (
        "pad_share",
        "Exercise 1: a share is at most 1; divide by all places.",
        lambda n, size: size / (size - n),
    ),
    (
        "pad_share",
        (
            "Exercise 1: 1.0000 is wrong for 4 words in 1024 places; "
            "count the places."
        ),
        lambda n, size: 1.0,
    ),
    (
        "pad_share",
        (
            "Exercise 1: 0.9961 is wrong for 2 words in 5 places; "
            "count the places."
        ),
        lambda n, size: 1020 / 1024,
    ),
    (
        "frequent_vocabulary",
        (
            "Exercise 2: a repeated word was numbered more than once and "
            "leaves holes: nobody has the ids [2, 3, 4]."
        ),
        lambda words, n: numbered(sorted(frequent(words, n)), pad=0, unk=1),
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: no <pad> and <unk>; id 0 is the word ['a'].",
        lambda words, n: {"a": 0, "is": 1, "rose": 2},
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: two words share an id; is padding also a word?",
        lambda words, n: {"<pad>": 0, "<unk>": 1, "a": 0, "is": 1, "rose": 2},
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: `is` occurs twice, which is at least 2: keep it.",
        lambda words, n: numbered(["a", "rose"], pad=0, unk=1),
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: `and` occurs once and should have become <unk>.",
        lambda words, n: numbered(sorted(set(words)), pad=0, unk=1),
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: first <pad>, then <unk>, then the words, sorted.",
        lambda words, n: numbered(["rose", "is", "a"], pad=0, unk=1),
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: first <pad>, then <unk>, then the words, sorted.",
        lambda words, n: numbered(["a", "is", "rose"], pad=1, unk=0),
    ),
    (
        "frequent_vocabulary",
        "Exercise 2: min_count is not used.",
        lambda words, n: numbered(["a", "is", "rose"], pad=0, unk=1),
    ),
    (
        "strict_lookup",
        "Exercise 3: 5 raises IndexError instead.",
        lambda token_ids, table: table[token_ids],
    ),
    (
        "strict_lookup",
        "Exercise 3: the id -1 does not exist, and wraps round.",
        only_upper_end,
    ),
    (
        "strict_lookup",
        "Exercise 3: the id 5 does not exist, and is moved to row 4.",
        lambda token_ids, table: table[np.clip(token_ids, 0, len(table) - 1)],
    ),
    (
        "strict_lookup",
        "Exercise 3: the id 5 gives a row of zeros.",
        zeros_for_no_id,
    ),
    (
        "strict_lookup",
        "Exercise 3: the message does not name the id 5.",
        without_the_id,
    ),
    (
        "strict_lookup",
        "Exercise 3: the rows of good ids are wrong.",
        lambda token_ids, table: table[sorted(token_ids)],
    ),
    (
        "table_gradient",
        "Exercise 4: of a repeated word only the last counts.",
        overwritten,
    ),
    (
        "table_gradient",
        "Exercise 4: of a repeated word only the first counts.",
        first_place_only,
    ),
    (
        "table_gradient",
        "Exercise 4: repeated words add up; you took their mean.",
        averaged,
    ),
    (
        "table_gradient",
        (
            "Exercise 4: the shape is (5, 2); the gradient has the shape of "
            "the table, one row for each id: (6, 2)."
        ),
        lambda token_ids, upstream, n: upstream,
    ),
    (
        "table_gradient",
        "Exercise 4: ids 2, 4 and 5 do not occur; their rows are 0.",
        lambda token_ids, upstream, n: np.ones((n, upstream.shape[1])),
    ),
    (
        "table_gradient",
        "Exercise 4: the rows of ids 0, 1 and 3 are wrong.",
        lambda token_ids, upstream, n: np.zeros((n, upstream.shape[1])),
    ),
    (
        "balanced_table",
        "Exercise 5: the padding row was drawn over; zero it last.",
        drawn(lambda d: 1, zero_row=None),
    ),
    (
        "balanced_table",
        "Exercise 5: the padding row was drawn over; zero it last.",
        drawn(lambda d: 1, zero_row=0),
    ),
    (
        "balanced_table",
        "Exercise 5: the wrong rows are zero; only row 7 should.",
        drawn(lambda d: 0),
    ),
    (
        "balanced_table",
        "Exercise 5: your deviation is 1.000: PyTorch's default.",
        drawn(lambda d: 1),
    ),
    (
        "balanced_table",
        "Exercise 5: your deviation is 0.125: tensor2tensor's.",
        drawn(lambda d: d**-0.5),
    ),
    (
        "balanced_table",
        "Exercise 5: your deviation is 0.029: Keras' default.",
        drawn(lambda d: 0.05 / 3**0.5),
    ),
    (
        "balanced_table",
        (
            "Exercise 5: your deviation is 0.707: balanced only without the "
            "factor."
        ),
        drawn(lambda d: 0.5**0.5),
    ),
    (
        "balanced_table",
        "Exercise 5: 1.99 times the right deviation.",
        drawn(lambda d: (2 / d) ** 0.5),
    ),
    (
        "strict_lookup",
        "Exercise 3: the id 99 does not exist, and is moved to row 4.",
        refuses_the_next,
    ),
    (
        "strict_lookup",
        "Exercise 3: the id -1 does not exist, and is moved to row 0.",
        moved_to_the_first,
    ),
    (
        "strict_lookup",
        "Exercise 3: the id -5 does not exist, and wraps round.",
        from_the_end,
    ),
    *(
        (
            "table_gradient",
            "Exercise 4: the rows of ids 0, 1 and 3 are wrong.",
            spoilt(row, 0),
        )
        for row in (0, 1, 3)
    ),
    *(
        (
            "table_gradient",
            "Exercise 4: ids 2, 4 and 5 do not occur; their rows are 0.",
            spoilt(row, 1),
        )
        for row in (2, 4, 5)
    ),
    (
        "table_gradient",
        "Exercise 4: ids 2, 4 and 5 do not occur; their rows are 0.",
        ones_tf,
    ),
    (
        "balanced_table",
        "Exercise 5: the padding row was drawn over; zero it last.",
        drawn(lambda d: 0.01, zero_row=None),
    ),
    (
        "balanced_table",
        "Exercise 5: the wrong rows are zero; only row 7 should.",
        drawn(lambda d: 1, zero_row=[7, 299]),
    ),
    (
        "balanced_table",
        "Exercise 5: 2.00 times the right deviation.",
        drawn(lambda d: 128**-0.5),  # balanced for d = 64 only
    ),
    (
        "balanced_table",
        "Exercise 5: 1.05 times the right deviation.",
        drawn(lambda d: 1.05 * (2 * d) ** -0.5),
    ),
    (
        "balanced_table",
        "Exercise 5: 0.95 times the right deviation.",
        drawn(lambda d: 0.95 * (2 * d) ** -0.5),
    ),
    (
        "balanced_table",
        "Exercise 5: 0.00 times the right deviation.",
        all_the_same,
    ),
    (
        "balanced_table",
        "Exercise 5: 11.83 times the right deviation.",
        drawn(lambda d: 1.05),
    ),
]


@pytest.mark.parametrize(("name", "says", "answer"), WRONG)
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


# A reader answers in the framework that they know.


def gradient_torch(token_ids, upstream, vocab_size):
    import torch

    table = torch.zeros(vocab_size, upstream.shape[1], requires_grad=True)
    (table[torch.tensor(token_ids)] * torch.tensor(upstream)).sum().backward()
    return table.grad


def gradient_tf(token_ids, upstream, vocab_size):
    import tensorflow as tf

    return tf.math.unsorted_segment_sum(upstream, token_ids, vocab_size)


@pytest.mark.parametrize("answer", [gradient_torch, gradient_tf])
def test_answers_in_either_framework_are_accepted(book, answer):
    assert book["check_table_gradient"](answer) == "Exercise 4: correct."


# What the chapter's functions refuse.


def test_a_sentence_that_is_too_long_is_refused(book):
    says = "3 tokens do not fit in seq_len=2: make .* larger or cut .*\\.$"
    with pytest.raises(ValueError, match=says):
        book["pad"]([5, 6, 7], seq_len=2, pad_id=0)


def test_an_id_without_a_word_is_refused(book):
    with pytest.raises(KeyError):
        book["decode"]([99], book["vocabulary"])


def test_a_sentence_that_just_fits_is_not_padded(book):
    assert book["pad"]([5, 6, 7], seq_len=3, pad_id=0) == [5, 6, 7]


def test_the_strict_lookup_says_which_ids_there_are(book):
    message = r"^there is no row for the id 5: ids run from 0 to 4\.$"
    with pytest.raises(ValueError, match=message):
        book["strict_lookup_solution"](np.array([1, 5]), np.eye(5))


def test_words_that_look_like_special_tokens_get_no_second_id(book):
    vocabulary = book["build_vocabulary"](["<unk>", "b", "<pad>", "b"])
    assert vocabulary == {"<pad>": 0, "<unk>": 1, "b": 2}


# The numbers


def test_position_vectors_follow_the_paper(book):
    for (p, c), found in np.ndenumerate(book["position_vectors"](50, 6)):
        angle = p / 10000 ** (2 * (c // 2) / 6)
        right = math.cos(angle) if c % 2 else math.sin(angle)
        assert math.isclose(found, right, abs_tol=1e-12)
