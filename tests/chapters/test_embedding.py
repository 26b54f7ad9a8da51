"""The checkers of the first chapter: what they accept, and what they say.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


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


def summed(token_ids, upstream, vocab_size):
    return np.eye(vocab_size)[token_ids].T @ upstream


def spoilt(row, number):
    """Return an answer that is right but for one row."""

    def gradient(token_ids, upstream, vocab_size):
        grad = summed(token_ids, upstream, vocab_size)
        grad[row] = number
        return grad

    return gradient


def overwritten(token_ids, upstream, vocab_size):
    grad = np.zeros((vocab_size, upstream.shape[1]))
    grad[token_ids] += upstream
    return grad


def averaged(token_ids, upstream, vocab_size):
    grad = summed(token_ids, upstream, vocab_size)
    for token_id, times in Counter(token_ids).items():
        grad[token_id] /= times
    return grad


WRONG = {
    "pad_share_of_gradient": [
        (
            "you believe that padding learns nothing; it has a row, too.",
            lambda n, size: 0.0,
        ),
        ("this is the share of the words.", lambda n, size: n / size),
        (
            "a share lies between 0 and 1; divide by all places.",
            lambda n, size: size - n,
        ),
        (
            "0.9961 is wrong for 2 words in 5 places; count the places.",
            lambda n, size: 1020 / 1024,
        ),
        (
            "this compares padding with the words alone.",
            lambda n, size: (size - n) / n,
        ),
    ],
    "frequent_vocabulary": [
        (
            "a repeated word was numbered more than once and leaves holes: "
            "nobody has the ids [2, 3, 4].",
            lambda words, n: numbered(
                sorted(frequent(words, n)), pad=0, unk=1
            ),
        ),
        (
            "two entries share an id: words, or a word and padding.",
            lambda words, n: (
                {"<pad>": 0, "<unk>": 1, "a": 0, "is": 1} | {"rose": 2}
            ),
        ),
        (
            "`is` occurs 2 times: keep it.",
            lambda words, n: numbered(
                sorted({w for w in words if words.count(w) > n}), pad=0, unk=1
            ),
        ),
        (
            "`and` occurs once and should have become <unk>.",
            lambda words, n: numbered(sorted(set(words)), pad=0, unk=1),
        ),
        (
            "first <pad>, then <unk>, then the words, sorted.",
            lambda words, n: numbered(["rose", "is", "a"], pad=0, unk=1),
        ),
    ],
    "strict_lookup": [
        ("5 raises IndexError instead.", lambda ids, table: table[ids]),
        ("the id -1 does not exist, and wraps round.", only_upper_end),
        (
            "the id 5 does not exist, and is moved to row 4.",
            lambda ids, table: table[np.clip(ids, 0, len(table) - 1)],
        ),
        ("the id 5 gives a row of zeros.", zeros_for_no_id),
        ("the message does not name the id 5.", without_the_id),
    ],
    "table_gradient": [
        ("of a repeated word only the last place counts.", overwritten),
        ("repeated words add up; no mean.", averaged),
        (
            "the shape is (5, 2) instead of (6, 2).",
            lambda ids, upstream, n: upstream,
        ),
        (
            "upstream is not used: every place counts as 1.",
            lambda ids, upstream, n: spoilt(n - 1, 0)(
                ids, 0 * upstream + 1, n
            ),
        ),
        (
            "the sign is that of a step downhill.",
            lambda ids, upstream, n: -np.eye(n)[ids].T @ upstream,
        ),
    ],
}


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


def share_tf(num_words, seq_len):
    import tensorflow as tf

    return 1 - tf.constant(num_words / seq_len, tf.float64)


def frequent_numpy(words, min_count):
    kept, counts = np.unique(words, return_counts=True)
    return numbered([], pad=np.int64(0), unk=np.int64(1)) | {
        word: i for i, word in enumerate(kept[counts >= min_count], 2)
    }


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("pad_share_of_gradient", share_tf),
        ("frequent_vocabulary", frequent_numpy),
        ("table_gradient", gradient_torch),
        ("table_gradient", gradient_tf),
    ],
)
def test_answers_in_either_framework_are_accepted(book, name, answer):
    assert book[f"check_{name}"](answer).endswith(": correct.")


def spoiling(answer):
    """Return an answer that spoils what it is given, once it has used it."""

    def spoils(*given):
        found = np.array(answer(*given))
        for array in given[:2]:
            array[:] = 0
        return found

    return spoils


@pytest.mark.parametrize(
    ("exercise", "answer", "verdict"),
    [
        ("table_gradient", summed, "correct."),
        ("strict_lookup", without_the_id, "the message does not name the id"),
        (
            "strict_lookup",
            only_upper_end,
            "the id -1 does not exist, and wraps round.",
        ),
    ],
)
def test_an_answer_cannot_change_what_it_is_compared_with(
    book, exercise, answer, verdict
):
    check = book[f"check_{exercise}"]
    said = check(answer)
    assert verdict in said and check(spoiling(answer)) == said


def wraps_far_below(token_ids, table):
    if max(token_ids) >= len(table) or min(token_ids) >= -len(table):
        return refuses_all_but_good(token_ids, table)
    return table[token_ids % len(table)]


def refuses_all_but_good(token_ids, table):
    bad = [i for i in token_ids if not 0 <= i < len(table)]
    if bad:
        raise ValueError(f"no row {bad[0]}")
    return table[token_ids]


def first_column_of_the_first(token_ids, table):
    try:
        return refuses_all_but_good(token_ids, table)
    except ValueError:
        return np.tile(table[0] * [1, *[2] * (table.shape[1] - 1)], (3, 1))


def one_column_wrong(token_ids, upstream, vocab_size):
    grad = summed(token_ids, upstream, vocab_size)
    grad[token_ids[0], 0] += 1
    return grad


def raises_in_two_lines(*given):
    raise ValueError("one\ntwo")


@pytest.mark.parametrize(
    ("exercise", "answer", "verdict"),
    [
        ("strict_lookup", wraps_far_below, "does not exist, and wraps round."),
        ("strict_lookup", first_column_of_the_first, "and gives [1"),
        ("table_gradient", one_column_wrong, "the rows of the ids [3] are"),
        ("table_gradient", raises_in_two_lines, "raises ValueError: one."),
    ],
)
def test_the_verdict_tells_what_is_wrong_alone(
    book, exercise, answer, verdict
):
    assert verdict in book[f"check_{exercise}"](answer)


def test_answers_may_have_gradients_or_few_bits(book):
    tf, torch = book["tf"], book["torch"]

    def with_gradient(token_ids, upstream, vocab_size):
        right = summed(token_ids, upstream, vocab_size)
        return torch.tensor(right, requires_grad=True)

    def in_few_bits(token_ids, table):
        return tf.cast(refuses_all_but_good(token_ids, table), "bfloat16")

    assert book["check_table_gradient"](with_gradient).endswith(": correct.")
    assert book["check_strict_lookup"](in_few_bits).endswith(": correct.")


# Lookups, for every type and size.


@given(
    kind=st.sampled_from(["uint8", "uint16", "int8", "int32", "int64"]),
    table_kind=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    shape=st.sampled_from([(0,), (1,), (5,), (2, 3), (0, 4), (2, 0), (1, 1)]),
    N=st.integers(1, 6),
    D=st.integers(1, 4),
    strided=st.booleans(),
    seed=st.integers(0, 99),
)
def test_lookups_hold_for_every_type_and_size(
    book, kind, table_kind, shape, N, D, strided, seed
):
    """Both ways, in both frameworks, are rows of the table, in its type."""
    tf, torch = book["tf"], book["torch"]
    rng = np.random.default_rng(seed)
    ids = torch.tensor(rng.integers(0, N, (*shape, 2)).astype(kind))
    ids = ids[..., 0] if strided else ids[..., 0].contiguous()
    table = torch.tensor(rng.standard_normal((D, N))).T
    table = table.to(getattr(torch, table_kind))
    ids_tf = tf.constant(ids.numpy())
    table_tf = tf.constant(table.double().numpy(), table_kind)
    right = table.double().numpy()[ids.numpy()]
    for name in ("embed", "embed_one_hot"):
        found, twin = (
            book[name](ids, table),
            book[f"{name}_tf"](ids_tf, table_tf),
        )
        assert found.dtype == table.dtype and twin.dtype == table_tf.dtype
        np.testing.assert_array_equal(found.double(), right)
        np.testing.assert_array_equal(tf.cast(twin, "float64"), right)
    rows, rows_tf = book["one_hot"](ids, N), book["one_hot_tf"](ids_tf, N)
    assert rows.dtype == torch.float32 and rows_tf.dtype == tf.float32
    for found in (rows, rows_tf):
        np.testing.assert_array_equal(found, np.eye(N)[ids.numpy()])


@pytest.mark.parametrize("kind", ["bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["embed", "one_hot", "embed_one_hot"])
def test_lookups_refuse_what_is_no_id(book, kind, name):
    ids = np.array([[1, 0], [0, 1]], kind)
    table = np.eye(2, dtype=np.float32)
    for suffix, array in (
        ("", book["torch"].tensor),
        ("_tf", book["tf"].constant),
    ):
        last = 2 if name == "one_hot" else array(table)
        with pytest.raises(TypeError, match=r"and ids are whole numbers\.$"):
            book[f"{name}{suffix}"](array(ids), last)


# Which rows move.


def test_rows_that_move_are_those_of_the_optimiser(book):
    every, seen = list(range(6)), [1, 2, 3, 4]
    for moved in (book["moved"], book["moved_tf"]):
        assert list(moved.values()) == [[3, 4], seen, seen, every, every]


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


# The checks of "Wrong on purpose"


RIGHT = (
    ["b", "a"],
    (3, 2),
    {"<pad>": 0, "a": 1, "b": 2},
    np.array([2, 1, 0]),
    np.array([[0, 0], [1, 1], [2, 2]]),
)
FAULTS = {
    "shape": {1: (2, 3)},
    "decode": {0: ["a", "b"]},
    "holes": {2: {"<pad>": 0, "a": 1, "b": 2, "c": 4}},
    "range": {4: np.array([[0, 0], [1, 1]])},
    "count": {3: np.array([2, 1, 1])},
    "pad row": {4: np.array([[0, 1], [1, 1], [2, 2]])},
}


def test_right_words_ids_and_table_raise_no_complaint(book):
    assert not any(book["complaints"](*RIGHT).values())


@pytest.mark.parametrize("check", FAULTS)
def test_each_check_of_the_matrix_can_complain(book, check):
    given = [FAULTS[check].get(i, right) for i, right in enumerate(RIGHT)]
    says = book["complaints"](*given)
    assert says[check]
    # An id more than there are words is also decoded.
    assert sum(says.values()) == 1 + (check == "count")


def test_a_negative_id_is_out_of_range(book):
    words, shape, vocabulary, _, table = RIGHT
    vocabulary = vocabulary | {"c": -1}
    ids = np.array([2, 1, -1])
    says = book["complaints"](words, shape, vocabulary, ids, table)
    assert says["range"]


@pytest.mark.parametrize("mistake", ["no mistake", "pad row not zero"])
def test_what_the_matrix_prepares_has_the_shapes_asked_for(book, mistake):
    given = book["prepare"](["b", "a", "b"], 5, 3, mistake)
    vocabulary, ids, table = given
    assert list(vocabulary) == ["<pad>", "<unk>", "a", "b"]
    assert ids.tolist() == [3, 2, 3, 0, 0] and table.shape == (4, 3)
    assert table[0].any() == (mistake == "pad row not zero")
