"""The chapter on embeddings: what its checkers say, and its functions.

test_exercises.py tries each checker on the stub and the solution.
"""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers


def frequent(tokens, min_count):
    """Return the frequent tokens, repeated as in the text."""
    return [token for token in tokens if tokens.count(token) >= min_count]


def numbered(tokens, pad=0, unk=1):
    """Return <pad>, <unk>, and the tokens numbered from two."""
    tokens = {token: i for i, token in enumerate(tokens, 2)}
    return {"<pad>": pad, "<unk>": unk} | tokens


def only_upper_end(token_ids, table):
    if max(token_ids) >= len(table):
        raise ValueError(f"no row {max(token_ids)}")
    return table[token_ids]


def without_the_id(token_ids, table):
    if min(token_ids) < 0 or max(token_ids) >= len(table):
        raise ValueError("there is an id without a row")
    return table[token_ids]


def summed(token_ids, upstream, vocab_size):
    return np.eye(vocab_size)[token_ids].T @ upstream


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
    "pad_share_of_gradient": {
        "padding learns nothing": lambda n, size: 0.0,
        "share of the tokens": lambda n, size: n / size,
        "between 0 and 1": lambda n, size: size - n,
        "0.9961 is wrong for 2 tokens": lambda n, size: 1020 / 1024,
        "with tokens alone": lambda n, size: (size - n) / n,
    },
    "frequent_vocabulary": {
        "nobody has the ids [2, 3, 4]": lambda tokens, n: numbered(
            sorted(frequent(tokens, n))
        ),
        "share an id": lambda tokens, n: (
            {"<pad>": 0, "<unk>": 1, "a": 0, "is": 1, "rose": 2}
        ),
        "`is` occurs 2 times: keep": lambda tokens, n: numbered(
            sorted({t for t in tokens if tokens.count(t) > n})
        ),
        "`and` occurs once": lambda tokens, n: numbered(sorted(set(tokens))),
        "then the tokens, sorted": lambda tokens, n: numbered(
            ["rose", "is", "a"]
        ),
    },
    "strict_lookup": {
        "raises IndexError": lambda ids, table: table[ids],
        "-1 does not exist, and wraps": only_upper_end,
        "5 does not exist, and is moved": lambda ids, table: table[
            np.clip(ids, 0, len(table) - 1)
        ],
        "a row of zeros": lambda ids, table: (
            (ids[:, None] == np.arange(len(table))) @ table
        ),
        "does not name the id 5": without_the_id,
    },
    "table_gradient": {
        "only the last position counts": overwritten,
        "add up; no mean": averaged,
        "(5, 2) instead of (6, 2)": lambda ids, upstream, n: upstream,
        "upstream is not used": lambda ids, upstream, n: summed(
            ids, 0 * upstream + 1, n
        ),
        "a step downhill": lambda ids, upstream, n: -summed(ids, upstream, n),
        "the rows of the ids": lambda ids, upstream, n: summed(
            ids, abs(upstream), n
        ),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


# A reader answers in the framework that they know


def gradient_torch(token_ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.shape[1], requires_grad=True)
    (table[torch.tensor(token_ids)] * torch.tensor(upstream)).sum().backward()
    return table.grad.requires_grad_()


def gradient_tf(token_ids, upstream, vocab_size):
    import tensorflow as tf

    return tf.math.unsorted_segment_sum(upstream, token_ids, vocab_size)


def frequent_numpy(tokens, min_count):
    kept, counts = np.unique(tokens, return_counts=True)
    return numbered(kept[counts >= min_count], np.int64(0), np.int64(1))


def lookup_bfloat16(token_ids, table):
    import tensorflow as tf

    if min(token_ids) < 0:
        raise ValueError(f"no row {min(token_ids)}")
    return tf.cast(only_upper_end(token_ids, table), "bfloat16")


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("frequent_vocabulary", frequent_numpy),
        ("strict_lookup", lookup_bfloat16),
        ("table_gradient", gradient_torch),
        ("table_gradient", gradient_tf),
    ],
)
def test_answers_in_either_framework_are_accepted(book, name, answer):
    assert book[f"check_{name}"](answer).endswith(": correct.")


def in_two_lines(*given):
    raise ValueError("one\ntwo")


@pytest.mark.parametrize(
    ("says", "answer"),
    [
        ("your function raises ValueError: one.", in_two_lines),
        ("it returns list, not numbers.", lambda *given: [[1], [1, 2]]),
        ("it returns complex, not numbers.", lambda *given: 1j),
        (
            "it returns a tuple; return the one that is asked for.",
            lambda *given: (np.eye(7), np.eye(7)),
        ),
        (
            "NaN or infinity is returned.",
            lambda *given: np.full((6, 2), np.inf),
        ),
        ("the shape is (7,) instead of (6, 2).", lambda *given: np.ones(7)),
    ],
)
def test_what_is_no_array_of_the_right_shape_is_named(book, says, answer):
    assert book["check_table_gradient"](answer) == f"Exercise 4: {says}"


def test_an_answer_cannot_change_what_it_is_compared_with(book):
    def spoiling(token_ids, upstream, vocab_size):
        found = overwritten(token_ids, upstream, vocab_size)
        token_ids[:], upstream[:] = 0, 0
        return found

    check = book["check_table_gradient"]
    assert check(spoiling) == check(overwritten)


# Lookups, for every type and size


@given(
    kind=st.sampled_from(["uint8", "uint16", "int8", "int32", "int64"]),
    table_kind=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    shape=st.sampled_from([(0,), (1,), (5,), (2, 3), (0, 4), (2, 0), (1, 1)]),
    N=st.integers(1, 6),
    D=st.integers(1, 4),
    step=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_lookups_hold_for_every_type_and_size(
    twins, kind, table_kind, shape, N, D, step, seed
):
    """Both ways, in both frameworks, are rows of the table, in its type."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, N, (*shape, 2)).astype(kind)[..., ::step]
    table = rng.standard_normal((D, N)).T.astype(table_kind)
    for lookup in (*twins("embed"), *twins("embed_one_hot")):
        found = lookup(ids, table)
        assert found.dtype == table.dtype
        np.testing.assert_array_equal(found, table[ids])
    for one_hot in twins("one_hot"):
        found = one_hot(ids, N)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.eye(N)[ids])


@pytest.mark.parametrize("kind", ["bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["embed", "one_hot", "embed_one_hot"])
def test_lookups_refuse_what_is_no_id(twins, kind, name):
    ids = np.array([[1, 0], [0, 1]], kind)
    last = 2 if name == "one_hot" else np.eye(2)
    for lookup in twins(name):
        with pytest.raises(TypeError, match=r"and ids are whole numbers\.$"):
            lookup(ids, last)


# What the chapter's functions refuse


def test_a_sequence_that_is_too_long_is_refused(book):
    assert book["pad"]([5, 6, 7], seq_len=3, pad_id=0) == [5, 6, 7]
    says = r"3 tokens do not fit in seq_len=2: make .* larger or cut .*\.$"
    with pytest.raises(ValueError, match=says):
        book["pad"]([5, 6, 7], seq_len=2, pad_id=0)


def test_tokens_that_look_like_special_ones_get_no_second_id(book):
    vocabulary = book["build_vocabulary"](["<unk>", "b", "<pad>", "b"])
    assert vocabulary == {"<pad>": 0, "<unk>": 1, "b": 2}


def test_the_check_of_the_shape_can_complain(book):
    """It does for no mistake of the chapter."""
    ids, table = np.array([2, 1, 0]), np.eye(3)[:, :2]
    vocabulary = {"<pad>": 0, "a": 1, "b": 2}
    for shape, wrong in [((3, 2), False), ((2, 3), True)]:
        found = book["complaints"](["b", "a"], shape, vocabulary, ids, table)
        assert found["shape"] == wrong


def test_with_all_consonants_the_groups_are_the_same(book):
    """The picture shows eleven of them."""
    letters = book["LETTERS"][1:27]
    rows = book["model"][0].weight.detach().numpy()[1:27]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    alike = rows @ rows.T
    vowel = np.array([letter in "aeiou" for letter in letters])
    others = ~vowel[:, None] & ~vowel & ~np.eye(26, dtype=bool)
    assert abs(alike[others].mean() - book["consonants"]) < 0.03
    assert abs(alike[vowel][:, ~vowel].mean() - book["between"]) < 0.03
