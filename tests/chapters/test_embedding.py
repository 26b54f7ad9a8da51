"""The chapter on embeddings: its functions, and what it says of letters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


@given(
    kind=st.sampled_from(["int32", "int64"]),
    table_kind=st.sampled_from(["float32", "float64"]),
    shape=st.sampled_from([(0,), (1,), (2, 3), (0, 4), (2, 0)]),
    N=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_lookups_hold_for_every_type_and_size(
    twins, kind, table_kind, shape, N, seed
):
    """Both ways, in both frameworks, are rows of the table, in its type."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, N, (*shape, 2)).astype(kind)
    table = rng.standard_normal((N, 3)).astype(table_kind)
    for lookup in (*twins("embed"), *twins("embed_one_hot")):
        found = lookup(ids, table)
        assert found.dtype == table.dtype
        np.testing.assert_array_equal(found, table[ids])
    for one_hot in twins("one_hot"):
        found = one_hot(ids, N)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.eye(N)[ids])


def test_a_sequence_that_is_too_long_is_refused(book):
    assert book["pad"]([5, 6, 7], seq_len=3, pad_id=0) == [5, 6, 7]
    with pytest.raises(ValueError, match=r"^3 tokens do not fit in seq_len=2"):
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
